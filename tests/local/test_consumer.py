"""The consumer of demos and tests when a commit fails, which a real broker shows only by chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import CommitFailedError, KafkaTimeoutError, RebalanceInProgressError

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
