"""The consumer of demos and tests in troubles that a real broker shows only by chance: commits that fail, and joins
that outlast a poll."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import CommitFailedError, KafkaTimeoutError, RebalanceInProgressError
from kafka.structs import ConsumerGroupMetadata, MemberState

from local.kafka.consumer import consume

KEPT, LOST = TopicPartition("orders", 0), TopicPartition("orders", 1)
MESSAGES = 3


@dataclass(frozen=True)
class Message:
    offset: int


class FailingConsumer:
    """A member whose first commits fail. From then on, LOST is not its own any more; KEPT keeps its position, as in
    kafka-python."""

    def __init__(self, failures: Sequence[Exception]) -> None:
        self.failures = list(failures)
        self.positions = {KEPT: 0, LOST: 0}
        self.committed: dict[TopicPartition, int] = {}

    def assignment(self) -> set[TopicPartition]:
        return set(self.positions)

    def group_metadata(self) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata("billing", 1, "member", None, MemberState.STABLE)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.positions[partition] = offset

    def poll(self, **_: Any) -> Mapping[TopicPartition, Sequence[Message]]:  # noqa: ANN401 - as kafka-python has it
        read = {
            partition: [Message(at) for at in range(begin, MESSAGES)] for partition, begin in self.positions.items()
        }
        self.positions = dict.fromkeys(self.positions, MESSAGES)
        return {partition: messages for partition, messages in read.items() if messages}

    def commit(self) -> None:
        if self.failures:
            self.positions.pop(LOST, None)
            raise self.failures.pop(0)
        self.committed = dict(self.positions)


@pytest.mark.parametrize("error", [CommitFailedError, RebalanceInProgressError, KafkaTimeoutError])
def test_what_was_not_committed_is_read_and_committed_again_even_if_no_message_follows(error: type[Exception]) -> None:
    consumer = FailingConsumer([error(), error()])
    done: list[Mapping[TopicPartition, Sequence[Any]]] = []
    rounds = iter(range(4))

    consume(consumer, 1000.0, lambda: next(rounds, None) is None, done.append)

    assert consumer.committed == {KEPT: MESSAGES}
    assert done == [{KEPT: [Message(at) for at in range(MESSAGES)]}]


class ForgetfulConsumer(FailingConsumer):
    """A member that gets its partitions at the poll after `request_rejoin`, and without it never."""

    def __init__(self) -> None:
        super().__init__([])
        self.state = MemberState.REBALANCING
        self.is_asked = False
        self._coordinator = self

    def group_metadata(self) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata("billing", 1, "member", None, self.state)

    def request_rejoin(self) -> None:
        self.is_asked = True

    def poll(self, **_: Any) -> Mapping[TopicPartition, Sequence[Message]]:  # noqa: ANN401 - as kafka-python has it
        if self.is_asked:
            self.state = MemberState.STABLE
        return super().poll() if self.state is MemberState.STABLE else {}


def test_a_member_whose_join_outlasted_a_poll_gets_its_partitions() -> None:
    consumer = ForgetfulConsumer()
    rounds = iter(range(3))

    consume(consumer, 1000.0, lambda: next(rounds, None) is None, lambda _: None)

    assert consumer.committed == {KEPT: MESSAGES, LOST: MESSAGES}
