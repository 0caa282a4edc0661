"""Where a group's commits can stand on a real broker, and what is served for each."""

import contextlib

import pytest
from kafka import TopicPartition
from kafka.errors import NoError, RetriableError
from kafka.structs import OffsetAndMetadata

from adapter.metrics.problems import ValueUnavailable
from local.kafka.admin import admin
from local.kafka.broker import Kafka
from local.kafka.tools import Described, commit, create_topic, described, produce
from local.processes import wait_until
from tests.support.real.changes import (
    WAIT_SECONDS,
    commit_as_member,
    create_topic_with,
    delete_records,
    member,
    rebalancing,
    set_property,
    state_of,
)
from tests.support.real.in_process import in_process


@pytest.mark.parametrize(("policy", "expected"), [("latest", 6), ("earliest", 6 + 40)])
def test_a_partition_without_commit_counts_by_its_rule(one_broker: Kafka, policy: str, expected: int) -> None:
    """One of the two without a commit has 40 messages, the other none."""
    topic = group = f"no-commit-{policy}"
    create_topic(one_broker, topic, partitions=3)
    produce(one_broker, topic, 10, partition=0)
    produce(one_broker, topic, 40, partition=1)
    commit(one_broker, group, {(topic, 0): 4})

    with in_process(one_broker, rules=[{"group": group, "offsetReset": policy}]) as rig:
        rig.run_once()

        assert rig.lag(group) == expected
        assert rig.uncommitted(group) == 2
        assert rig.value("lead_min", group=group) == 4
    assert described(one_broker, group)[topic, 0] == Described(4, 10, 6)


def test_without_commit_deleted_records_do_not_count(one_broker: Kafka) -> None:
    topic = group = "no-commit-deleted"
    create_topic(one_broker, topic, partitions=2)
    produce(one_broker, topic, 10, partition=1)
    delete_records(one_broker, topic, 1, before=7)
    commit(one_broker, group, {(topic, 0): 0})

    with in_process(one_broker, rules=[{"group": group, "offsetReset": "earliest"}]) as rig:
        rig.run_once()

        assert rig.lag(group) == 3


def test_a_commit_below_the_log_start_counts_what_is_left(one_broker: Kafka) -> None:
    """Kafka's own command still counts what was deleted."""
    topic = group = "truncated"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 10)
    commit(one_broker, group, {(topic, 0): 4})
    with in_process(one_broker) as rig:
        rig.run_once()
        assert rig.value("lead_min", group=group) == 4

        delete_records(one_broker, topic, 0, before=7)
        rig.run_full_cycle()

        assert rig.lag(group) == 3
        assert rig.value("lead_min", group=group) == 0
    assert described(one_broker, group)[topic, 0] == Described(4, 10, 6)


def test_what_retention_has_deleted_does_not_count(one_broker: Kafka) -> None:
    topic = group = "expired"
    create_topic_with(one_broker, topic, retention_ms="100")
    produce(one_broker, topic, 10)
    commit(one_broker, group, {(topic, 0): 4})
    with in_process(one_broker) as rig:
        rig.wait_for_lag(0, group)
        set_property(one_broker, topic, "retention.ms", "-1")
        produce(one_broker, topic, 5)
        rig.run_full_cycle()

        assert rig.lag(group) == 5
        assert rig.value("lead_min", group=group) == 0


def test_a_commit_beyond_the_end_is_refused_in_words_until_it_is_right(one_broker: Kafka) -> None:
    topic = group = "ahead"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 10)
    commit(one_broker, group, {(topic, 0): 500})
    with in_process(one_broker) as rig:
        rig.run_once()
        once = str(rig.refusal("lag", group=group))
        rig.run_once()
        twice = rig.refusal("lag", group=group)

        assert once == (
            "lag of group ahead is not known: ahead/0: "
            "the commit is beyond the log end, which may be temporary after an election"
        )
        assert isinstance(twice, ValueUnavailable)
        assert str(twice) == "lag of group ahead is not known: ahead/0: committed 500 is beyond the log end 10"
        assert isinstance(rig.refusal("lead_min", group=group), ValueUnavailable)
        assert rig.uncommitted(group) == 0

        commit(one_broker, group, {(topic, 0): 8})
        rig.run_once()

        assert rig.lag(group) == 2


def test_a_commit_that_can_be_no_offset_is_an_error_of_its_partition(one_broker: Kafka) -> None:
    """Brokers take any number."""
    topic = group = "absurd"
    create_topic(one_broker, topic, partitions=2)
    produce(one_broker, topic, 10, partition=1)
    commit(one_broker, group, {(topic, 0): 2**63 - 1, (topic, 1): 4})
    with in_process(one_broker) as rig:
        for _ in range(3):
            rig.run_once()

            refusal = rig.refusal("lag", group=group)
            assert isinstance(refusal, ValueUnavailable)
            assert str(refusal) == "lag of group absurd is not known: absurd/0: its commit cannot be read"
        assert rig.lag(group, topic, partition="1") == 6


@pytest.mark.parametrize("group", ["Größe ✓/eu", 'with spaces, commas and "quotes"', "g" * 1_000])
def test_a_group_of_any_name_has_its_lag(one_broker: Kafka, group: str) -> None:
    """Clients that commit text beside their offsets, as Kafka Streams does, make rows of any length."""
    topic = f"any-name-{len(group)}"
    create_topic(one_broker, topic, partitions=3)
    produce(one_broker, topic, 30)
    texts = ("", "of seven", "x" * 4_000)
    offsets = {TopicPartition(topic, p): OffsetAndMetadata(p, text, -1) for p, text in enumerate(texts)}
    with admin(one_broker.bootstrap_servers) as client, in_process(one_broker) as rig:

        def is_committed() -> bool:
            """False at a cluster's first commit, while the offsets topic is still being created."""
            with contextlib.suppress(RetriableError):
                return set(client.alter_group_offsets(group, offsets).values()) == {NoError}
            return False

        wait_until(is_committed, "the commit with texts", WAIT_SECONDS)
        rig.run_once()

        assert rig.lag(group) == 30 - 0 - 1 - 2


def test_a_group_without_members_keeps_its_lag(one_broker: Kafka) -> None:
    topic = group = "empty"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 10)
    with member(one_broker, group, topic) as consumer, in_process(one_broker) as rig:
        commit_as_member(consumer, topic, 4)
        rig.wait_for_lag(6, group)
        consumer.close()
        wait_until(lambda: state_of(one_broker, group) == "Empty", "the group to be Empty", WAIT_SECONDS)
        produce(one_broker, topic, 10)

        for _ in range(5):
            rig.run_full_cycle()
            assert rig.lag(group) == 16
    assert described(one_broker, group)[topic, 0] == Described(4, 20, 16)


def test_a_rebalance_in_progress_changes_no_number(one_broker: Kafka) -> None:
    """One member does not come back from its work, so the others wait for it."""
    topic = group = "rebalancing"
    create_topic(one_broker, topic, partitions=2)
    produce(one_broker, topic, 10, partition=0)
    commit(one_broker, group, {(topic, 0): 4, (topic, 1): 0})
    with member(one_broker, group, topic), in_process(one_broker) as rig, rebalancing(one_broker, group, topic):
        for _ in range(3):
            rig.run_full_cycle()
            assert rig.lag(group) == 6
        produce(one_broker, topic, 5, partition=1)
        rig.run_once()

        assert rig.lag(group) == 11
