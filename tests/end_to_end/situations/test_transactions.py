"""Transactions on a real broker: which records count, and what the markers between them do to the number."""

from collections.abc import Iterator
from contextlib import contextmanager

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata

from adapter.verdicts.waits import RESIDUE_SECONDS
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.processes import wait_until
from tests.support.real.changes import WAIT_SECONDS, commit_as_member, member, state_of, transactions
from tests.support.real.in_process import InProcess, in_process
from tests.support.real.versions import needs_listed_states


@contextmanager
def two_groups(cluster: Kafka, topic: str) -> Iterator[InProcess]:
    """`…-all` counts every record, `…-committed` the committed ones; both have read nothing of three messages."""
    create_topic(cluster, topic)
    produce(cluster, topic, 3)
    for group in (f"{topic}-all", f"{topic}-committed"):
        commit(cluster, group, {(topic, 0): 0})
    with in_process(cluster, rules=[{"group": f"{topic}-committed", "isolation": "read_committed"}]) as rig:
        rig.run_once()
        assert lags(rig, topic) == (3, 3)
        yield rig


@contextmanager
def before_the_marker(cluster: Kafka, topic: str, **rule: str) -> Iterator[tuple[InProcess, KafkaConsumer]]:
    """A member of the group `topic` has read the only message and committed the offset after it; nobody moves."""
    create_topic(cluster, topic)
    rules = [{"group": topic, **rule}] if rule else []
    with member(cluster, topic, topic) as consumer, transactions(cluster, topic) as producer:
        last = send_in_transaction(producer, topic)
        commit_as_member(consumer, topic, last + 1)
        with in_process(cluster, rules=rules) as rig:
            rig.wait_for_lag(1, topic)
            yield rig, consumer


def send_in_transaction(producer: KafkaProducer, topic: str) -> int:
    """One message; gives its offset."""
    producer.begin_transaction()
    sent = producer.send(topic, b"message")
    producer.commit_transaction()
    return int(sent.get().offset)


def lags(rig: InProcess, topic: str) -> tuple[int, int]:
    return rig.lag(f"{topic}-all"), rig.lag(f"{topic}-committed")


def test_an_open_transaction_does_not_count_for_who_reads_committed_records_only(one_broker: Kafka) -> None:
    topic = "open-transaction"
    with two_groups(one_broker, topic) as rig, transactions(one_broker, topic) as producer:
        producer.begin_transaction()
        for _ in range(5):
            producer.send(topic, b"message")
        producer.flush()
        produce(one_broker, topic, 2)
        rig.run_once()

        assert lags(rig, topic) == (3 + 5 + 2, 3), "what comes after an open transaction waits for it, too"

        producer.commit_transaction()
        rig.wait_for(lambda: lags(rig, topic) == (11, 11), "the transaction and its marker to count")


def test_an_aborted_transaction_counts_until_it_has_been_passed(one_broker: Kafka) -> None:
    """Nobody will get its records, but offsets do not tell which ones those are."""
    topic = "aborted-transaction"
    with two_groups(one_broker, topic) as rig, transactions(one_broker, topic) as producer:
        producer.begin_transaction()
        for _ in range(5):
            producer.send(topic, b"message")
        producer.flush()
        producer.abort_transaction()

        rig.wait_for(lambda: lags(rig, topic) == (3 + 5 + 1, 9), "the aborted records and the marker to count")
        commit(one_broker, f"{topic}-committed", {(topic, 0): 9})
        rig.run_once()

        assert lags(rig, topic) == (9, 0)


def test_a_commit_inside_of_an_open_transaction_does_not_count_yet(one_broker: Kafka) -> None:
    """Until then the commit before it stands; should the transaction be aborted, the group begins there again."""
    topic = group = "commit-in-transaction"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 10)
    commit(one_broker, group, {(topic, 0): 4})
    positions = {TopicPartition(topic, 0): OffsetAndMetadata(9, "", -1)}
    with in_process(one_broker) as rig, transactions(one_broker, topic) as producer:
        rig.run_once()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(positions, ConsumerGroupMetadata(group, -1, "", None))
        for _ in range(3):
            rig.run_once()
            assert rig.lag(group) == 6

        producer.commit_transaction()
        rig.wait_for_lag(1, group)


def test_the_marker_after_the_last_record_counts_as_a_message(one_broker: Kafka) -> None:
    """For groups that commit the offset after the last record they got, instead of their position."""
    topic = "marker"
    with two_groups(one_broker, topic) as rig, transactions(one_broker, topic) as producer:
        producer.begin_transaction()
        last = producer.send(topic, b"message")
        producer.commit_transaction()
        commit(one_broker, f"{topic}-all", {(topic, 0): last.get().offset + 1})

        rig.wait_for(lambda: rig.lag(f"{topic}-all") == 1, "the marker to be left")


@needs_listed_states
def test_a_marker_that_a_stable_group_does_not_pass_counts_no_more_after_a_while(one_broker: Kafka) -> None:
    topic = group = "passed-over"
    with before_the_marker(one_broker, topic, isolation="read_committed") as (rig, _):
        rig.put_forward(RESIDUE_SECONDS / 2)
        rig.run_once()
        assert rig.lag(group) == 1

        rig.put_forward(RESIDUE_SECONDS / 2)
        rig.run_once()
        assert rig.lag(group) == 0
        assert rig.value("records_lag_max", group=group) == 0

        with transactions(one_broker, f"{topic}-more") as producer:
            send_in_transaction(producer, topic)
        rig.wait_for_lag(1 + 2, group)


@needs_listed_states
def test_a_marker_that_has_been_passed_over_wakes_no_group_that_has_gone_to_sleep(one_broker: Kafka) -> None:
    topic = group = "asleep"
    with before_the_marker(one_broker, topic, isolation="read_committed") as (rig, consumer):
        rig.put_forward(RESIDUE_SECONDS)
        rig.run_once()
        assert rig.lag(group) == 0

        consumer.close()
        wait_until(lambda: state_of(one_broker, group) == "Empty", "the member to be gone", WAIT_SECONDS)
        for _ in range(3):
            rig.run_full_cycle()

            assert rig.lag(group) == 0


def test_without_its_rule_a_last_message_is_never_taken_for_a_marker(one_broker: Kafka) -> None:
    with before_the_marker(one_broker, "no-rule") as (rig, _):
        rig.put_forward(2 * RESIDUE_SECONDS)
        rig.run_once()

        assert rig.lag("no-rule") == 1


def test_without_a_member_to_read_it_a_last_message_is_never_taken_for_a_marker(one_broker: Kafka) -> None:
    topic = group = "nobody-there"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 5)
    commit(one_broker, group, {(topic, 0): 4})
    with in_process(one_broker, rules=[{"group": group, "isolation": "read_committed"}]) as rig:
        for _ in range(3):
            rig.put_forward(RESIDUE_SECONDS)
            rig.run_once()

            assert rig.lag(group) == 1
