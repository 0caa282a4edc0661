"""Clusters whose brokers differ from each other, or have no leaders: right numbers, and no doubt that stays."""

import time
from pathlib import Path

import pytest

from adapter.cluster.coordinators import OFFSETS_TOPIC, partition_of
from adapter.collector import takeovers
from adapter.kafka.liveness import DISTRUST_SECONDS
from adapter.metrics.problems import NoMatch, ValueUnavailable
from local.kafka.admin import admin
from local.kafka.tools import commit, create_topic, produce
from local.makers.brokers import MakerBrokers, maker_brokers
from local.processes import wait_until
from tests.support.real.changes import WAIT_SECONDS, commit_as_member, member
from tests.support.real.in_process import in_process
from tests.support.real.placing import leader

TOPIC = "orders"
GROUPS = tuple(f"billing-{number}" for number in range(8))


@pytest.mark.parametrize("preset", ["agents", "one-address"])
def test_brokers_that_all_serve_everything_are_believed(preset: str, rig_home: Path) -> None:
    """Every Metadata names other leaders and every FindCoordinator another broker; with and without one address."""
    with maker_brokers(rig_home, preset) as agents:
        create_topic(agents.kafka, TOPIC, partitions=6)
        produce(agents.kafka, TOPIC, 60)
        for group in GROUPS:
            commit(agents.kafka, group, {(TOPIC, partition): 4 for partition in range(6)})
        with member(agents.kafka, "member", TOPIC) as consumer, in_process(agents.kafka) as rig:
            commit_as_member(consumer, TOPIC, 1)
            rig.wait_for(lambda: rig.is_unknown(group="nobody"), "a group that does not exist to be unknown")
            for cycle in range(5):
                produce(agents.kafka, TOPIC, 6)
                rig.run_full_cycle()
                assert [rig.lag(group) for group in GROUPS] == [36 + 6 * (cycle + 1)] * len(GROUPS)
                assert rig.lag("member", TOPIC, partition="0") == 9 + cycle + 1
                assert isinstance(rig.refusal("lag", group="nobody"), NoMatch)


@pytest.mark.parametrize(
    ("older", "newer"), [("kafka-2.4", "kafka-2.8"), ("redpanda-24.3", "redpanda-25.3"), ("kafka-2.8", "agents")]
)
def test_a_rolling_upgrade_makes_no_number_wrong(older: str, newer: str, rig_home: Path) -> None:
    """One broker after the other offers newer versions from its restart on, and then older ones again."""
    with maker_brokers(rig_home, newer) as brokers:
        create_topic(brokers.kafka, TOPIC, partitions=6)
        produce(brokers.kafka, TOPIC, 60)
        for group in GROUPS:
            commit(brokers.kafka, group, {(TOPIC, partition): 4 for partition in range(6)})
        nodes = range(len(brokers.ports))
        for node in nodes:
            brokers.offer(node, older)
        expected = 36
        with in_process(brokers.kafka) as rig:
            rig.wait_for_lag(expected, GROUPS[0], TOPIC)
            for offered, node in [*((newer, node) for node in nodes), *((older, node) for node in nodes)]:
                brokers.offer(node, offered)
                produce(brokers.kafka, TOPIC, 6)
                seen: set[int] = set()

                def is_read(expected: int = expected + 6, seen: set[int] = seen) -> bool:
                    rig.run_full_cycle()
                    for group in GROUPS:
                        if rig.refusal("lag", group=group) is None:
                            seen.add(rig.lag(group))
                    return all(
                        rig.refusal("lag", group=group) is None and rig.lag(group) == expected for group in GROUPS
                    )

                wait_until(is_read, f"what was produced since node {node} offers {offered}", WAIT_SECONDS)
                # A partition keeps its row while its leader or its group's coordinator is away.
                assert seen <= set(range(expected, expected + 7))
                expected += 6


@pytest.mark.parametrize("preset", ["redpanda-24.3", "msk-serverless"])
def test_a_broker_that_never_listed_its_groups_counts_for_every_unknown_one(preset: str, rig_home: Path) -> None:
    """As Kafka's hash does not place them: with another hash in sight, and without the offsets topic."""
    with maker_brokers(rig_home, preset) as brokers:
        create_topic(brokers.kafka, TOPIC)
        produce(brokers.kafka, TOPIC, 10)
        for group in GROUPS:
            commit(brokers.kafka, group, {(TOPIC, 0): 4})
        led_by, silent = leader_and_another(brokers)
        brokers.stop(silent)
        with in_process(brokers.kafka, call_seconds=3.0) as rig:
            for _ in range(4):
                rig.run_full_cycle()
            refusals = [rig.refusal("lag", group=f"nobody-{number}") for number in range(30)]
            known = [group for group in GROUPS if rig.refusal("lag", group=group) is None]
            brokers.start(silent)
            rig.wait_for(lambda: all(rig.lag(group) == 6 for group in GROUPS), "all groups")
            rig.wait_for(lambda: rig.is_unknown(group="nobody-0"), "a group that does not exist to be unknown")

        assert {type(refusal) for refusal in refusals} == {ValueUnavailable}
        assert all(f"127.0.0.1:{brokers.ports[silent]}" in str(refusal) for refusal in refusals)
        assert 0 < len(known) < len(GROUPS), led_by


@pytest.mark.parametrize("older", ["redpanda-24.3", "redpanda-25.3"])
def test_groups_that_another_hash_places_are_read_though_acls_hide_all_others(older: str, rig_home: Path) -> None:
    """Nothing is listed, and FindCoordinator answers for too few groups to prove or refute Kafka's hash."""
    with maker_brokers(rig_home, "redpanda-acls") as brokers:
        create_topic(brokers.kafka, TOPIC)
        produce(brokers.kafka, TOPIC, 10)
        alike, elsewhere = groups_by_placement(brokers)
        groups = [*alike[:8], elsewhere[0]]
        for group in groups:
            commit(brokers.kafka, group, {(TOPIC, 0): 4})
        for node in range(len(brokers.ports)):
            brokers.offer(node, older)
        with in_process(brokers.kafka, rules=[{"group": group, "topics": [TOPIC]} for group in groups]) as rig:
            rig.run_once()
            refused = str(rig.refusal("lag", group=elsewhere[0]))
            rig.wait_for(lambda: all(rig.lag(group) == 6 for group in groups), "all groups")

        assert f"has just taken over group {elsewhere[0]}" in refused


def groups_by_placement(brokers: MakerBrokers) -> tuple[list[str], list[str]]:
    """Returns names of groups that are where Kafka's hash places them, and of others."""
    names = [f"billing-{number}" for number in range(60)]
    with admin(brokers.kafka.bootstrap_servers) as client:
        (topic,) = client.describe_topics([OFFSETS_TOPIC])
        leaders = {one["partition_index"]: one["leader_id"] for one in topic["partitions"]}
        found = {name: client._manager.run(client._find_coordinator_id, name) for name in names}
    alike = [name for name in names if found[name] == leaders[partition_of(name, len(leaders))]]
    return alike, [name for name in names if name not in alike]


def leader_and_another(brokers: MakerBrokers) -> tuple[int, int]:
    """Returns the leader of the topic's only partition, and a broker that is not."""
    with admin(brokers.kafka.bootstrap_servers) as client:
        led_by = leader(client, TOPIC, 0)
    return led_by, next(node for node in range(len(brokers.ports)) if node != led_by)


def test_a_broker_that_is_too_old_is_told_with_the_request_that_it_lacks(rig_home: Path) -> None:
    with maker_brokers(rig_home, "kafka-1.1") as brokers:
        create_topic(brokers.kafka, TOPIC)
        produce(brokers.kafka, TOPIC, 10)
        commit(brokers.kafka, "billing", {(TOPIC, 0): 4})
        with in_process(brokers.kafka, rules=[{"group": "billing", "topics": [TOPIC]}]) as rig:
            outcome = rig.run_full_cycle()
            refused = rig.refusal("lag", group="billing")

        assert {failure.cause for failure in outcome.failures} == {"version"}
        texts = {failure.text for failure in outcome.failures}
        assert any("offers OffsetFetch up to 3; 5 or newer is needed" in text for text in texts), texts
        assert isinstance(refused, ValueUnavailable)
        assert "offers OffsetFetch up to 3; 5 or newer is needed" in str(refused)


def test_a_group_that_was_reset_while_its_coordinator_was_away_is_believed_where_the_offsets_topic_is_hidden(
    rig_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After five and a half minutes, shortened here. Nothing shows that the coordinator does not report old commits."""
    monkeypatch.setattr(takeovers, "TAKEOVER_SECONDS", 1.0)
    monkeypatch.setattr(takeovers, "UNSETTLED_SECONDS", 2 * DISTRUST_SECONDS)
    with maker_brokers(rig_home, "msk-serverless") as brokers:
        create_topic(brokers.kafka, TOPIC)
        produce(brokers.kafka, TOPIC, 60)
        commit(brokers.kafka, GROUPS[0], {(TOPIC, 0): 40})
        with in_process(brokers.kafka, collection={"maxAge": "10m"}) as rig:
            rig.wait_for_lag(20, GROUPS[0])
            nodes = range(len(brokers.ports))
            for node in nodes:
                brokers.stop(node)
            assert rig.run_once().completeness == "failed"
            for node in nodes:
                brokers.start(node)
            commit(brokers.kafka, GROUPS[0], {(TOPIC, 0): 10})
            began, seen = time.monotonic(), set[int]()

            def is_believed() -> bool:
                rig.run_once()
                seen.add(rig.lag(GROUPS[0]))
                return 50 in seen

            wait_until(is_believed, "the new commit to count", WAIT_SECONDS)

    assert seen == {20, 50}
    assert time.monotonic() - began >= takeovers.UNSETTLED_SECONDS
