"""Groups that no broker lists, as other makers' brokers do with those that have stopped: found by a rule or an HPA."""

from dataclasses import replace
from unittest import mock

import pytest

from adapter.cluster.coordinators import OFFSETS_TOPIC
from adapter.collector.coordinator_search import MOST_TRIED
from adapter.kafka.versions import Versions
from adapter.metrics.problems import NoMatch
from adapter.protocol.apis import FIND_COORDINATOR
from tests.support.kafka.coordinators import cluster, is_absent, rig_of
from tests.support.kafka.fake_cluster import NOBODY
from tests.support.kafka.other_makers import OLD, of_another_maker
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import ORDERS_0

RULE = {"group": "billing", "topics": ["orders"], "offsetReset": "earliest"}


def asking(rig: Rig, group: str) -> None:
    rig.cycle.asked = {group: ("orders",)}


@pytest.mark.parametrize("is_single", [True, False], ids=["OffsetFetch 7", "OffsetFetch 8"])
def test_a_group_that_stopped_and_is_not_listed_counts_from_its_last_commits_where_an_hpa_names_it(
    *, is_single: bool
) -> None:
    kafka = of_another_maker("billing", unlisted={"billing"})
    if is_single:
        kafka.versions = dict.fromkeys(kafka.nodes, OLD)
    rig = rig_of(kafka, 2)
    assert is_absent(rig, "billing")
    asking(rig, "billing")
    rig.run(2)

    assert rig.lag("billing") == 3


def test_a_group_is_found_beside_more_that_have_no_commits_than_are_looked_for_at_a_time() -> None:
    kafka = of_another_maker("billing", unlisted={"billing"})
    rig = rig_of(kafka, 2)
    rig.cycle.asked = dict.fromkeys(["billing", *(f"a-typo-{number}" for number in range(MOST_TRIED))], ("orders",))
    rig.run(6)

    assert rig.lag("billing") == 3


def without_coordinators(count: int) -> Rig:
    """Groups that have been read one by one, and whose coordinators have all stopped; no broker lists them yet."""
    kafka = of_another_maker(*(f"group-{number:03}" for number in range(count)))
    kafka.versions = dict.fromkeys(kafka.nodes, OLD)
    rig = rig_of(kafka, 2)
    commits = rig.cycle._commits
    commits.directory = replace(commits.directory, coordinators={})
    kafka.unlisted = set(kafka.commits)
    return rig


def read_since(rig: Rig, began: float) -> int:
    """How many groups have been read since then."""
    snapshot = rig.view.snapshot
    return sum(float(snapshot.received[rows].min()) > began for rows in rig.view.layout.spans.values())


def test_the_coordinators_of_all_groups_that_are_asked_one_by_one_are_found_in_one_cycle() -> None:
    rig = without_coordinators(200)
    began = rig.clock.seconds
    rig.run()

    assert read_since(rig, began) == 200


def test_groups_without_a_coordinator_keep_no_others_from_a_broker_that_is_too_slow_to_tell_all() -> None:
    rig = without_coordinators(12)
    rig.brokers.kafka.coordinators = dict.fromkeys((f"group-{number:03}" for number in range(4)), NOBODY)
    told, began = rig.brokers.coordinators, rig.clock.seconds
    with mock.patch.object(rig.brokers, "coordinators", lambda node, groups: told(node, groups[:4])):
        seen = [read_since(rig, began) for _ in range(3) if rig.run()]

    assert seen == [0, 4, 8]


def test_groups_whose_partition_stays_offline_are_sought_some_at_a_time_and_all_once_one_is_found() -> None:
    """Each takes a request before FindCoordinator 4."""
    count = 3 * MOST_TRIED
    rig = without_coordinators(count)
    rig.kafka.coordinators = dict.fromkeys((f"group-{number:03}" for number in range(count)), NOBODY)
    sought: list[tuple[str, ...]] = []
    for _ in range(4):
        rig.run()
        sought += [groups for plan in rig.asked("FindCoordinator") for groups in plan.values()]  # type: ignore[attr-defined]
    reasons = [rig.view.snapshot.cause_of(row).text for row in range(count)]
    rig.kafka.coordinators, began = {}, rig.clock.seconds
    rig.run(2)

    assert [len(groups) for groups in sought] == [count, MOST_TRIED, MOST_TRIED, MOST_TRIED]
    assert len(set().union(*sought[1:])) == count
    assert reasons == [f"the coordinator of group group-{number:03} is moving" for number in range(count)]
    assert read_since(rig, began) == count


def test_that_no_broker_tells_coordinators_in_a_known_version_is_said_of_groups_that_need_it() -> None:
    kafka = of_another_maker("billing", unlisted={"billing"})
    older = Versions(offset_fetch=7, find_coordinator=None, offered={FIND_COORDINATOR.key: (0, 1)})
    kafka.versions = dict.fromkeys(kafka.nodes, older)
    rig = rig_of(kafka, 2, rules=[RULE])

    assert "offers FindCoordinator up to 1; 2 or newer is needed" in str(rig.refusal(group="billing"))


def test_a_group_without_commits_that_an_hpa_names_is_not_found() -> None:
    kafka = of_another_maker("billing")
    rig = rig_of(kafka, 2)
    asking(rig, "typo")
    for _ in range(12):
        rig.run()
        with pytest.raises(NoMatch):
            rig.lag_of("typo", "orders")


def test_in_kafka_an_unlisted_group_does_not_exist_and_is_not_looked_for() -> None:
    rig = rig_of(cluster([1, 2, 3, 4], "billing"), 2)
    asking(rig, "typo")
    for _ in range(8):
        rig.run()
        assert (rig.counted()["FindCoordinator"], rig.counted()["OffsetFetch"]) == (0, 1)


@pytest.mark.parametrize("versions", [OLD, Versions()], ids=["OffsetFetch 7", "OffsetFetch 8"])
def test_brokers_are_not_sent_what_makes_kafka_create_its_offsets_topic(versions: Versions) -> None:
    """FindCoordinator and, before Kafka 2.8, Metadata by its name do, in a cluster that has had no group yet."""
    kafka = cluster([1, 2, 3, 4])
    del kafka.topics[OFFSETS_TOPIC]
    kafka.versions = dict.fromkeys(kafka.nodes, versions)
    kafka.coordinators = dict.fromkeys(["billing", "typo"], NOBODY)
    rig = rig_of(kafka, rules=[RULE])
    asking(rig, "typo")
    named = set(rig.asked("Metadata"))
    for _ in range(8):
        rig.run()
        named |= set(rig.asked("Metadata"))
        assert rig.counted()["FindCoordinator"] == 0

    assert named == {frozenset({"orders"})}
    assert rig.lag("billing") == 10
    kafka.topics[OFFSETS_TOPIC], kafka.coordinators = [1, 2, 3, 4], {}
    kafka.commits["billing"] = {ORDERS_0: 7}
    rig.run(4)
    assert rig.lag("billing") == 3


@pytest.mark.parametrize("rules", [[RULE], []], ids=["by a rule", "by an HPA"])
def test_an_unlisted_group_is_found_without_an_offsets_topic_in_sight(rules: list[dict[str, object]]) -> None:
    """A service that hides the topic may as well say that it does not exist."""
    kafka = cluster([1, 2, 3, 4], "billing")
    del kafka.topics[OFFSETS_TOPIC]
    kafka.versions = dict.fromkeys(kafka.nodes, OLD)
    kafka.coordinators, kafka.unlisted = {"billing": 3}, {"billing"}
    rig = rig_of(kafka, rules=rules)
    asking(rig, "billing")
    rig.run(2)

    assert rig.lag("billing") == 3
