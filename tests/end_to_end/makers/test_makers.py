"""Right numbers on brokers of every maker, compared with what franz-go's client reads from them."""

from typing import Any

import pytest

from adapter.metrics.problems import NoMatch
from local.kafka.tools import commit, create_topic, delete_topic, produce
from local.makers.brokers import MakerBrokers
from local.processes import wait_until
from tests.support.real.changes import (
    WAIT_SECONDS,
    commit_as_member,
    delete_group,
    member,
    rebalancing,
    state_of,
)
from tests.support.real.in_process import InProcess, in_process


def rule(group: str, topic: str, **more: str) -> dict[str, Any]:
    return {"group": group, "topics": [topic], **more}


def as_the_client_says(brokers: MakerBrokers, rig: InProcess, group: str) -> bool:
    """Whether every partition has the same lag."""
    said = brokers.lags(group)[group]
    found = {(topic, partition): rig.lag(group, topic, partition=str(partition)) for topic, partition in said}
    return bool(said) and found == {partition: described.lag for partition, described in said.items()}


def test_what_is_produced_counts_until_it_is_committed(brokers: MakerBrokers) -> None:
    topic = group = "produced"
    create_topic(brokers.kafka, topic, partitions=3)
    produce(brokers.kafka, topic, 30)
    commit(brokers.kafka, group, {(topic, 0): 4, (topic, 1): 10, (topic, 2): 0})
    with in_process(brokers.kafka, rules=[rule(group, topic)]) as rig:
        rig.run_once()
        assert rig.lag(group) == 6 + 0 + 10
        assert as_the_client_says(brokers, rig, group)

        produce(brokers.kafka, topic, 5, partition=1)
        commit(brokers.kafka, group, {(topic, 2): 7})
        rig.run_once()
        assert rig.lag(group) == 6 + 5 + 3
        assert as_the_client_says(brokers, rig, group)


def test_groups_are_found_by_their_listing(brokers: MakerBrokers) -> None:
    """With members, which Event Hubs asks for; several, so that each broker coordinates some."""
    topic = "listed"
    groups = [f"listed-{number}" for number in range(6)]
    create_topic(brokers.kafka, topic)
    produce(brokers.kafka, topic, 10)
    for number, group in enumerate(groups):
        commit(brokers.kafka, group, {(topic, 0): number})
    with member(brokers.kafka, "listed-member", topic) as consumer, in_process(brokers.kafka) as rig:
        commit_as_member(consumer, topic, 9)
        rig.run_full_cycle()
        assert rig.lag("listed-member") == 1
        if brokers.preset != "event-hubs":
            assert [rig.lag(group) for group in groups] == [10, 9, 8, 7, 6, 5]


def test_a_rebalance_in_progress_changes_no_number(brokers: MakerBrokers) -> None:
    topic = group = "rebalancing"
    create_topic(brokers.kafka, topic, partitions=2)
    produce(brokers.kafka, topic, 10, partition=0)
    commit(brokers.kafka, group, {(topic, 0): 4, (topic, 1): 0})
    with member(brokers.kafka, group, topic), in_process(brokers.kafka) as rig:
        rig.wait_for_lag(6, group)
        with rebalancing(brokers.kafka, group, topic):
            rig.run_full_cycle()
            assert rig.lag(group) == 6
            produce(brokers.kafka, topic, 5, partition=1)
            rig.run_once()
            assert rig.lag(group) == 11
            assert as_the_client_says(brokers, rig, group)


def test_a_group_that_stopped_keeps_its_lag(brokers: MakerBrokers) -> None:
    """By its rule, where it is no longer listed."""
    topic = group = "came-to-rest"
    create_topic(brokers.kafka, topic)
    produce(brokers.kafka, topic, 10)
    with in_process(brokers.kafka, rules=[rule(group, topic)]) as rig:
        with member(brokers.kafka, group, topic) as consumer:
            commit_as_member(consumer, topic, 4)
            rig.wait_for_lag(6, group)
        wait_until(lambda: state_of(brokers.kafka, group) == "Empty", "the group to be Empty", WAIT_SECONDS)
        produce(brokers.kafka, topic, 3)
        for _ in range(8):
            rig.run_full_cycle()
            assert rig.lag(group) == 9
        assert as_the_client_says(brokers, rig, group)


def test_a_group_that_does_not_exist_is_not_found(brokers: MakerBrokers) -> None:
    topic = "read-by-nobody"
    create_topic(brokers.kafka, topic)
    produce(brokers.kafka, topic, 10)
    with in_process(brokers.kafka, rules=[rule("unborn", topic)]) as rig:
        rig.wait_for(lambda: rig.is_unknown(group="nobody"), "a group to be unknown")

        assert isinstance(rig.refusal("lag", group="nobody"), NoMatch)
        assert rig.lag("unborn") == 10
        assert rig.uncommitted("unborn") == 1


def test_a_deleted_group_is_not_found_and_never_0(brokers: MakerBrokers) -> None:
    if brokers.preset == "event-hubs":
        pytest.skip("a group without members is not listed, so none is known that no rule names")
    topic = group = "deleted-group"
    create_topic(brokers.kafka, topic)
    produce(brokers.kafka, topic, 10)
    commit(brokers.kafka, group, {(topic, 0): 4})
    with in_process(brokers.kafka) as rig:
        rig.wait_for_lag(6, group)
        delete_group(brokers.kafka, group)
        seen: set[int] = set()

        def is_unknown() -> bool:
            rig.run_full_cycle()
            error = rig.refusal("lag", group=group)
            if error is None:
                seen.add(rig.lag(group))
            return isinstance(error, NoMatch)

        wait_until(is_unknown, "the group to be unknown", WAIT_SECONDS)
        assert seen <= {6}


def test_a_deleted_group_that_a_rule_names_counts_from_its_last_commit(brokers: MakerBrokers) -> None:
    topic = group = "deleted-ruled"
    create_topic(brokers.kafka, topic)
    produce(brokers.kafka, topic, 10)
    commit(brokers.kafka, group, {(topic, 0): 4})
    with in_process(brokers.kafka, rules=[rule(group, topic)]) as rig:
        rig.wait_for_lag(6, group)
        delete_group(brokers.kafka, group)
        rig.wait_for(lambda: rig.uncommitted(group) == 1, "the commit to be gone")
        produce(brokers.kafka, topic, 2)
        rig.wait_for_lag(8, group)


def test_a_topic_made_again_is_another_topic(brokers: MakerBrokers) -> None:
    topic = group = "made-again"
    create_topic(brokers.kafka, topic)
    produce(brokers.kafka, topic, 100)
    commit(brokers.kafka, group, {(topic, 0): 10})
    with in_process(brokers.kafka, rules=[rule(group, topic, offsetReset="earliest")]) as rig:
        rig.run_once()
        assert rig.lag(group) == 90

        delete_topic(brokers.kafka, topic)
        create_topic(brokers.kafka, topic)
        produce(brokers.kafka, topic, 5)
        rig.wait_for(lambda: rig.uncommitted(group) == 1, "the old commit to be gone")
        assert rig.lag(group) == 5

        commit(brokers.kafka, group, {(topic, 0): 2})
        rig.run_once()
        assert rig.lag(group) == 3
        assert as_the_client_says(brokers, rig, group)


def test_a_broker_that_is_away_makes_no_number_wrong(brokers: MakerBrokers) -> None:
    topic = group = "restarted"
    create_topic(brokers.kafka, topic, partitions=6)
    produce(brokers.kafka, topic, 60)
    commit(brokers.kafka, group, {(topic, partition): 4 for partition in range(6)})
    with in_process(brokers.kafka, rules=[rule(group, topic)], call_seconds=3.0) as rig:
        rig.wait_for_lag(36, group)
        brokers.stop(0)
        try:
            for _ in range(2):
                rig.run_once()
                assert rig.refusal("lag", group=group) is None, "values are kept until maxAge"
                assert rig.lag(group) == 36
            rig.put_forward()
            rig.run_once()
        finally:
            brokers.start(0)
        produce(brokers.kafka, topic, 6)
        rig.wait_for_lag(42, group)
        assert as_the_client_says(brokers, rig, group)


def test_leaders_and_coordinators_that_move_make_no_number_wrong(brokers: MakerBrokers) -> None:
    topic = group = "moved"
    create_topic(brokers.kafka, topic, partitions=6)
    produce(brokers.kafka, topic, 60)
    commit(brokers.kafka, group, {(topic, partition): 4 for partition in range(6)})
    with in_process(brokers.kafka, rules=[rule(group, topic)]) as rig:
        rig.wait_for_lag(36, group)
        brokers.move()
        produce(brokers.kafka, topic, 6)
        seen: set[int] = set()

        def is_new() -> bool:
            rig.run_full_cycle()
            if rig.refusal("lag", group=group) is None:
                seen.add(rig.lag(group))
            return 42 in seen

        wait_until(is_new, "what was produced since", WAIT_SECONDS)
        # A partition keeps its row until its new leader has been read.
        assert seen <= set(range(36, 43))
        assert as_the_client_says(brokers, rig, group)


def test_a_throttled_adapter_keeps_its_values_and_says_so(brokers: MakerBrokers) -> None:
    topic = group = "throttled"
    create_topic(brokers.kafka, topic)
    produce(brokers.kafka, topic, 10)
    commit(brokers.kafka, group, {(topic, 0): 4})
    with in_process(brokers.kafka, rules=[rule(group, topic)], call_seconds=1.0) as rig:
        rig.wait_for_lag(6, group)
        brokers.throttle(2_000)
        try:
            rig.wait_for(lambda: any(failure.cause == "throttled" for failure in rig.run_once().failures), "a throttle")
            assert rig.lag(group) == 6
        finally:
            brokers.throttle(0)
        produce(brokers.kafka, topic, 1)
        rig.wait_for_lag(7, group)
