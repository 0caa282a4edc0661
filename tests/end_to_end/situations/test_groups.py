"""Groups that come, sleep and go on a real broker, and what their members do and do not read."""

import contextlib
from collections.abc import Callable

import pytest
from kafka import KafkaConsumer, TopicPartition

from adapter.metrics.problems import NoMatch, ValueUnavailable
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.processes import wait_until
from tests.support.real.changes import (
    WAIT_SECONDS,
    commit_and_expire,
    commit_as_member,
    delete_commits,
    delete_group,
    member,
    rebalancing,
    state_of,
)
from tests.support.real.in_process import InProcess, in_process
from tests.support.real.versions import needs_listed_states


def test_a_deleted_group_is_not_found_and_never_0(one_broker: Kafka) -> None:
    topic = group = "deleted-group"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 10)
    commit(one_broker, group, {(topic, 0): 4})
    commit(one_broker, "undeleted-group", {(topic, 0): 4})
    with in_process(one_broker) as rig:
        rig.wait_for_lag(6, group)
        delete_group(one_broker, group)
        for _ in range(3):
            rig.run_full_cycle()
            assert not rig.is_unknown(group=group), "one answer proves nothing"
        seen = _until_unknown(rig, lambda: rig.lag(group), group=group)

        assert set(seen) <= {6}
        assert str(rig.refusal("lag", group=group)).startswith(
            "no group 'deleted-group' is known; known groups are undeleted-group"
        )
        assert isinstance(rig.refusal("uncommitted_partitions", group=group), NoMatch)


def test_commits_that_are_gone_take_their_topic_out(one_broker: Kafka) -> None:
    """As after offsets.retention.minutes: the group stays, as it has commits for another topic.

    For the selector of an HPA that names the topic, it counts from its last commit, as if a rule did."""
    kept, gone, group = "commits-kept", "commits-gone", "commits-gone"
    for topic in (kept, gone):
        create_topic(one_broker, topic)
        produce(one_broker, topic, 10)
    commit(one_broker, group, {(kept, 0): 4, (gone, 0): 1})
    with in_process(one_broker) as rig:
        rig.cycle.asked = {group: (gone,)}
        rig.wait_for_lag(6 + 9, group)
        delete_commits(one_broker, group, [(gone, 0)])
        rig.wait_for_lag(6, group)
        produce(one_broker, gone, 2)
        rig.wait_for(lambda: rig.lag(group, gone) == 9 + 2, "the topic that the selector names")

        assert rig.lag(group) == 6
        assert rig.uncommitted(group) == 0


def test_a_partition_whose_commit_is_gone_counts_from_it(one_broker: Kafka) -> None:
    topic = group = "one-commit-gone"
    create_topic(one_broker, topic, partitions=2)
    produce(one_broker, topic, 10, partition=0)
    produce(one_broker, topic, 10, partition=1)
    commit(one_broker, group, {(topic, 0): 4, (topic, 1): 9})
    with in_process(one_broker, rules=[{"group": group, "offsetReset": "earliest"}]) as rig:
        rig.wait_for_lag(6 + 1, group)
        delete_commits(one_broker, group, [(topic, 1)])
        produce(one_broker, topic, 3, partition=1)
        rig.wait_for_lag(6 + 4, group)

        assert rig.uncommitted(group) == 1


def test_a_group_all_of_whose_commits_are_gone_is_not_found(one_broker: Kafka) -> None:
    topic = group = "all-commits-gone"
    create_topic(one_broker, topic, partitions=2)
    produce(one_broker, topic, 10, partition=0)
    commit(one_broker, group, {(topic, 0): 4, (topic, 1): 0})
    with in_process(one_broker) as rig:
        rig.wait_for_lag(6, group)
        delete_commits(one_broker, group, [(topic, 0), (topic, 1)])
        seen = _until_unknown(rig, lambda: rig.lag(group), group=group)

        assert set(seen) <= {6}


def test_a_group_at_zero_wakes_up_after_its_commits_expired(one_broker: Kafka) -> None:
    """With the rule of the README. The broker itself removes the commits, and then the group."""
    topic = group = "expired-commits"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 30)
    commit(one_broker, group, {(topic, 0): 30})
    with in_process(one_broker, rules=[{"group": group, "topics": [topic]}]) as rig:
        rig.wait_for_lag(0, group)
        commit_and_expire(one_broker, group, topic, 30)
        rig.wait_for(lambda: rig.uncommitted(group) == 1, "the group's commit to expire")
        assert rig.lag(group) == 0

        produce(one_broker, topic, 5)
        rig.run_once()

        assert rig.lag(group) == 5


@pytest.mark.parametrize(("policy", "expected"), [("latest", 0), ("earliest", 30)])
def test_a_group_given_with_its_topics_has_lag_before_its_first_commit_and_after_its_last(
    one_broker: Kafka, policy: str, expected: int
) -> None:
    """What lets an HPA at zero replicas wake its consumers up."""
    topic = group = f"sleeping-{policy}"
    create_topic(one_broker, topic, partitions=2)
    produce(one_broker, topic, 30, partition=0)
    rules = [{"group": group, "topics": [topic], "offsetReset": policy}]
    with in_process(one_broker, rules=rules) as rig:
        rig.run_once()
        assert (rig.lag(group), rig.uncommitted(group)) == (expected, 2)

        commit(one_broker, group, {(topic, 0): 10, (topic, 1): 0})
        rig.run_once()
        assert (rig.lag(group), rig.uncommitted(group)) == (20, 0)

        delete_group(one_broker, group)
        seen = []

        def has_no_commit() -> bool:
            seen.append(rig.lag(group))
            return rig.uncommitted(group) == 2

        rig.wait_for(has_no_commit, "the group's commits to be gone")

        assert set(seen) == {20}


def test_a_subscribed_group_without_commits_has_no_number_unless_a_rule_gives_its_topics(one_broker: Kafka) -> None:
    topic = group = "subscribed"
    create_topic(one_broker, topic, partitions=2)
    produce(one_broker, topic, 30)
    rules = [{"group": group, "topics": [topic], "offsetReset": "earliest"}]
    with (
        member(one_broker, group, topic),
        in_process(one_broker) as plain,
        in_process(one_broker, rules=rules) as ruled,
    ):
        assert state_of(one_broker, group) == "Stable"
        plain.run_once()
        ruled.run_once()

        assert str(plain.refusal("lag", group=group)) == (
            "the selector matches nothing of group 'subscribed' for kafka_consumergroup_lag"
            " (a partition needs a commit, or a rule or an HPA that names group and topics)"
        )
        assert isinstance(plain.refusal("uncommitted_partitions", group=group), NoMatch)
        assert ruled.lag(group) == 30
        assert ruled.uncommitted(group) == 2


@needs_listed_states
def test_a_topic_that_the_members_no_longer_read_is_left_out(one_broker: Kafka) -> None:
    """The group had read both topics; its only member is subscribed to one of them."""
    read, left, group = "still-read", "no-longer-read", "moved-on"
    for topic in (read, left):
        create_topic(one_broker, topic)
        produce(one_broker, topic, 10)
    commit(one_broker, group, {(read, 0): 4, (left, 0): 1})
    given = {"group": group, "topics": [read, left]}
    named = {"name": "moved-on-backlog", "value": "lag", "group": group, "topics": [read, left]}
    with in_process(one_broker) as plain, in_process(one_broker, rules=[given]) as ruled:
        plain.run_once()
        assert plain.lag(group) == 15, "an Empty group may come back to both"

        with member(one_broker, group, read), in_process(one_broker, metrics=[named]) as own:
            for rig in (plain, ruled, own):
                rig.run_full_cycle()

            assert plain.lag(group) == 6
            assert isinstance(plain.refusal("lag", group=group, topic=left), NoMatch)
            assert plain.value("lead_min", group=group) == 4
            assert ruled.lag(group) == 15
            assert own.value("moved-on-backlog") == 15

        wait_until(lambda: state_of(one_broker, group) == "Empty", "the member to be gone", WAIT_SECONDS)
        plain.run_full_cycle()
        assert plain.lag(group) == 6, "one listing proves nothing: a coordinator that has just taken over says so, too"

        plain.run_full_cycle()
        assert plain.lag(group) == 15


def test_a_topic_that_is_left_out_stays_so_while_the_group_rebalances(one_broker: Kafka) -> None:
    """Else every new replica would bring the old topic's lag back, and ask for one more."""
    read, left, group = "read-on", "left-behind", "rebalancing-on"
    for topic in (read, left):
        create_topic(one_broker, topic)
        produce(one_broker, topic, 10)
    commit(one_broker, group, {(read, 0): 4, (left, 0): 1})
    with member(one_broker, group, read), in_process(one_broker) as rig:
        rig.wait_for_lag(6, group)
        with rebalancing(one_broker, group, read):
            for _ in range(2):
                rig.run_full_cycle()

                assert rig.lag(group) == 6


def test_a_topic_counts_as_soon_as_its_commits_move(one_broker: Kafka) -> None:
    """A deployment that adds a topic the group had given up, between two descriptions."""
    read, added, group = "read-before", "read-again", "reads-more"
    for topic in (read, added):
        create_topic(one_broker, topic)
        produce(one_broker, topic, 10)
    commit(one_broker, group, {(read, 0): 4, (added, 0): 1})
    with member(one_broker, group, read) as consumer, in_process(one_broker) as rig:
        rig.run_once()
        assert rig.lag(group) == 6

        consumer.subscribe([read, added])
        # As in `joining`: before it knows the topic, it may assign itself nothing and never be heard of again.
        consumer.partitions_for_topic(added)
        wait_until(lambda: _is_assigned(consumer, added), f"{added} to be assigned", WAIT_SECONDS)
        commit_as_member(consumer, added, 3)
        rig.run_once()

        assert rig.lag(group) == 6 + 7


def test_a_stale_topic_is_in_doubt_while_a_member_does_not_rejoin(one_broker: Kafka) -> None:
    """The group waits for the member for as long as its rebalance timeout, five minutes here."""
    read, left, group = "waiting-read", "waiting-left", "waiting-on"
    for topic in (read, left):
        create_topic(one_broker, topic)
        produce(one_broker, topic, 10)
    commit(one_broker, group, {(read, 0): 4, (left, 0): 1})
    with member(one_broker, group, read) as consumer, in_process(one_broker) as rig:
        rig.wait_for_lag(6, group)
        with rebalancing(one_broker, group, read):
            for _ in range(3):
                rig.run_full_cycle()
            reported = rig.refusal("lag", group=group)

            assert isinstance(reported, ValueUnavailable)
            assert str(reported).startswith(
                f"lag of group {group} is not known: the group has not been described as Stable since 20"
            )
            assert str(reported).endswith(
                f"did not read topic {left} then; whether it reads the topic now is not known"
            )
            assert rig.lag(group, read) == 6

        wait_until(lambda: _is_stable(one_broker, group, consumer), f"{group} to be Stable again", WAIT_SECONDS)
        rig.run_full_cycle()
        assert rig.lag(group) == 6


def test_a_topic_outside_of_its_rule_does_not_count(one_broker: Kafka) -> None:
    inside, outside, group = "inside-rule", "outside-rule", "ruled"
    for topic in (inside, outside):
        create_topic(one_broker, topic)
        produce(one_broker, topic, 10)
    commit(one_broker, group, {(inside, 0): 4, (outside, 0): 1})
    with in_process(one_broker, rules=[{"group": group, "topics": [inside]}]) as rig:
        rig.run_once()

        assert rig.lag(group) == 6
        assert isinstance(rig.refusal("lag", group=group, topic=outside), NoMatch)


def _is_assigned(consumer: KafkaConsumer, topic: str) -> bool:
    # As in local.kafka.consumer: a leader whose join outlasts its poll may never learn which partitions are its own.
    consumer.poll(timeout_ms=10_000, max_records=1)
    return TopicPartition(topic, 0) in consumer.assignment()


def _is_stable(cluster: Kafka, group: str, consumer: KafkaConsumer) -> bool:
    consumer.poll(timeout_ms=100, max_records=1)
    return state_of(cluster, group) == "Stable"


def _until_unknown(rig: InProcess, read: Callable[[], int], **labels: str) -> list[int]:
    """Run cycles until what the labels choose is not found (404); gives every number that `read` gave meanwhile."""
    seen: list[int] = []

    def is_unknown_now() -> bool:
        rig.run_full_cycle()
        if rig.is_unknown(**labels):
            return True
        with contextlib.suppress(ValueUnavailable):
            seen.append(read())
        return False

    wait_until(is_unknown_now, f"{labels} to be unknown", WAIT_SECONDS)
    return seen
