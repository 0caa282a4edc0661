"""Topics that are made again, grow, shrink and go on a real broker."""

import pytest

from adapter.metrics.problems import NoMatch
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, delete_topic, described, produce
from local.processes import wait_until
from tests.support.real.changes import WAIT_SECONDS, add_partitions, create_topic_with, produce_with_key, readable
from tests.support.real.in_process import in_process
from tests.support.real.versions import HAS_TOPIC_IDS

LOOK_SECONDS = 30.0
"""So often the adapter looks which partitions there are, while all is well."""


def test_a_topic_made_again_is_another_topic(one_broker: Kafka) -> None:
    """Old commits and ends would say 90, 5 or a commit beyond the end; none of it is ever served."""
    topic = group = "made-again"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 100)
    commit(one_broker, group, {(topic, 0): 10})
    rules = [{"group": group, "topics": [topic], "offsetReset": "earliest"}]
    with in_process(one_broker, rules=rules) as rig:
        rig.run_once()
        assert rig.lag(group) == 90

        delete_topic(one_broker, topic)
        create_topic(one_broker, topic)
        produce(one_broker, topic, 5)
        seen = []

        def is_without_commit() -> bool:
            seen.append(rig.lag(group))
            return rig.uncommitted(group) == 1

        rig.wait_for(is_without_commit, "the old commit to be gone")
        # Without topic ids, offsets that go backward are doubted first, and the row from before stays meanwhile.
        assert set(seen) - {5} <= (set() if HAS_TOPIC_IDS else {90})

        commit(one_broker, group, {(topic, 0): 2})
        rig.run_once()

        assert rig.lag(group) == 3
        assert rig.value("lead_min", group=group) == 2


def test_a_commit_of_the_topic_before_is_beyond_the_end_of_the_new_one(one_broker: Kafka) -> None:
    """Written once more by a consumer that did not notice: it waits for messages that will not come for long."""
    topic = group = "made-again-ahead"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 100)
    commit(one_broker, group, {(topic, 0): 90})
    with in_process(one_broker) as rig:
        rig.run_once()
        delete_topic(one_broker, topic)
        create_topic(one_broker, topic)
        produce(one_broker, topic, 5)
        commit(one_broker, group, {(topic, 0): 90})
        rig.run_full_cycle()
        rig.run_once()

        assert str(rig.refusal("lag", group=group)).endswith("committed 90 is beyond the log end 5")


def test_a_deleted_topic_no_longer_counts_for_its_group(one_broker: Kafka) -> None:
    kept, gone, group = "topic-kept", "topic-gone", "topic-gone"
    for topic in (kept, gone):
        create_topic(one_broker, topic)
        produce(one_broker, topic, 10)
    commit(one_broker, group, {(kept, 0): 4, (gone, 0): 1})
    with in_process(one_broker) as rig:
        rig.wait_for_lag(6 + 9, group)
        delete_topic(one_broker, gone)
        rig.wait_for_lag(6, group)

        assert rig.value("uncommitted_partitions", group=group) == 0
        assert isinstance(rig.refusal("lag", group=group, topic=gone), NoMatch)


def test_a_deleted_topic_that_a_rule_gives_is_named(one_broker: Kafka) -> None:
    kept, gone, group = "given-kept", "given-gone", "given-gone"
    for topic in (kept, gone):
        create_topic(one_broker, topic)
        produce(one_broker, topic, 10)
    commit(one_broker, group, {(kept, 0): 4, (gone, 0): 1})
    with in_process(one_broker, rules=[{"group": group, "topics": [kept, gone]}]) as rig:
        rig.wait_for_lag(15, group)
        delete_topic(one_broker, gone)
        rig.wait_for(lambda: rig.is_unknown(group=group), "the topic to be missing")

        assert str(rig.refusal("lag", group=group)).startswith(
            "topic given-gone of group given-gone does not exist in cluster main"
        )
        assert rig.lag(group, kept) == 6


@pytest.mark.parametrize(("policy", "expected"), [("latest", 6), ("earliest", 6 + 5)])
def test_added_partitions_are_seen_with_the_next_look(one_broker: Kafka, policy: str, expected: int) -> None:
    topic = group = f"grown-{policy}"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 10)
    commit(one_broker, group, {(topic, 0): 4})
    with in_process(one_broker, rules=[{"group": group, "offsetReset": policy}]) as rig:
        rig.run_once()
        add_partitions(one_broker, topic, total=3)
        produce(one_broker, topic, 5, partition=2)
        rig.put_forward(LOOK_SECONDS)
        rig.run_once()

        assert rig.lag(group) == expected
        assert rig.uncommitted(group) == 2


def test_an_added_partition_with_a_commit_is_seen_at_once(one_broker: Kafka) -> None:
    topic = group = "grown-committed"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 10)
    commit(one_broker, group, {(topic, 0): 4})
    with in_process(one_broker) as rig:
        rig.run_once()
        add_partitions(one_broker, topic, total=2)
        produce(one_broker, topic, 5, partition=1)
        commit(one_broker, group, {(topic, 1): 2})
        rig.run_once()

        assert rig.lag(group) == 6 + 3


def test_the_lag_of_a_compacted_topic_is_no_less_than_its_messages(one_broker: Kafka) -> None:
    """Offsets stay where messages go: all are of one key here, and only the last of them stays."""
    topic = group = "compacted"
    create_topic_with(one_broker, topic, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01")
    commit(one_broker, group, {(topic, 0): 0})
    produced = 0

    def has_lost_messages() -> bool:
        nonlocal produced
        produce_with_key(one_broker, topic, 5, b"same")
        produced += 5
        return readable(one_broker, topic) < produced

    wait_until(has_lost_messages, "the topic to be compacted", WAIT_SECONDS)
    with in_process(one_broker) as rig:
        rig.run_once()

        assert rig.lag(group) == produced
    assert described(one_broker, group)[topic, 0].lag == produced
