"""Groups, coordinators, topics and partitions that come and go between cycles."""

from collections import Counter

import pytest

from adapter.metrics.problems import Reason
from tests.support import samples
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import BILLING, ORDERS_0, ORDERS_1, ORDERS_2, given, kafka, running


def test_a_coordinator_that_moved_is_found_by_asking_everywhere() -> None:
    rig = running()
    rig.kafka.coordinators["billing"] = 3
    rig.kafka.ends[ORDERS_0] = 11
    rig.run()
    assert rig.lag() == 13

    rig.run()
    assert rig.asked("OffsetFetch") == [{1: ("billing",), 2: ("billing",), 3: ("billing",)}]
    assert rig.lag() == 14
    rig.run()
    assert rig.asked("OffsetFetch") == [{3: ("billing",)}]


@pytest.mark.parametrize("error", [14, 30])
def test_a_broker_that_reports_what_is_wrong_with_a_group_is_its_coordinator(error: int) -> None:
    cluster = kafka()
    cluster.unlisted, cluster.commit_errors = {"billing"}, {"billing": error}
    rig = running(cluster, given())
    rig.run()

    assert rig.asked("OffsetFetch") == [{2: ("billing",)}]


def test_a_group_of_a_dead_coordinator_is_found_at_another() -> None:
    rig = running()
    rig.kafka.nodes = (1, 3)
    rig.kafka.topics["orders"] = [1, 3, 3]
    rig.kafka.coordinators["billing"] = 3
    rig.run(2)

    assert rig.run().completeness == "complete"


def test_a_frozen_broker_is_replaced_as_soon_as_the_cluster_says_so() -> None:
    rig = running()
    rig.kafka.silent = {2}
    rig.run(3)
    rig.kafka.nodes = (1, 3)
    rig.kafka.topics["orders"] = [1, 3, 3]
    rig.kafka.coordinators["billing"] = 3

    assert rig.run().completeness == "complete"


def test_a_deposed_coordinator_that_does_not_know_it_is_not_asked_once_another_broker_counts_it_as_dead() -> None:
    """Its commits of before come without an error. In the first look it may itself be asked who is alive."""
    for cycles_before in (1, 2, 3):
        rig = running()
        rig.run(cycles_before)
        rig.kafka.stale_commits = {2: {"billing": rig.kafka.commits["billing"]}}
        rig.kafka.coordinators["billing"] = 3
        rig.kafka.commits["billing"] = {ORDERS_0: 8, ORDERS_1: 10, ORDERS_2: 5}
        rig.kafka.living = {1: (1, 3), 3: (1, 3)}
        rig.run(2)

        assert rig.lag() == 12


def test_a_commit_beyond_the_end_has_metadata_asked_as_others_may_lead_by_now() -> None:
    rig = running()
    rig.kafka.commits["billing"][ORDERS_0] = 1000
    looks = [rig.run() and rig.counted()["Metadata"] for _ in range(2)]

    assert looks == [0, 1]


def test_a_new_group_is_seen_within_half_a_minute() -> None:
    rig = running()
    rig.kafka.commits["audit"] = {ORDERS_0: 1}
    rig.run(3)

    assert rig.lag("audit") == 9


def test_a_group_that_was_never_listed_is_found_gone_as_well() -> None:
    """Given by a rule, it committed and was deleted between two rounds of ListGroups."""
    rig = running(settings=given(offsetReset="earliest"))
    rig.kafka.unlisted = {"billing"}
    del rig.kafka.commits["billing"]
    rig.run(10)
    assert "billing" in rig.view.assumed

    rig.kafka.commits["billing"] = {ORDERS_0: 7, ORDERS_1: 10, ORDERS_2: 5}
    rig.run()
    assert "billing" not in rig.view.assumed
    del rig.kafka.commits["billing"]
    rig.run(10)

    assert "billing" in rig.view.assumed


def test_a_group_is_gone_only_after_three_complete_rounds_without_it() -> None:
    rig = running()
    rig.kafka.commits["audit"] = {ORDERS_0: 1}
    del rig.kafka.commits["billing"]
    rig.run(8)
    assert "billing" in rig.view.layout.groups

    rig.run(2)
    assert rig.reasons(group="billing") == [Reason.GROUP_UNKNOWN]


@pytest.mark.parametrize("trouble", ["loading", "refusing"])
def test_a_broker_that_does_not_list_its_groups_makes_none_go(trouble: str) -> None:
    rig = running()
    del rig.kafka.commits["billing"]
    setattr(rig.kafka, trouble, {3})
    rig.run(30)

    assert "billing" in rig.view.layout.groups


def test_a_listed_group_without_commits_for_a_topic_loses_it_after_three_answers() -> None:
    cluster = kafka()
    cluster.topics["refunds"] = [1]
    cluster.commits["billing"]["refunds", 0] = 0
    cluster.ends["refunds", 0] = 100
    rig = running(cluster)
    del cluster.commits["billing"]["refunds", 0]
    rig.run(2)
    assert rig.lag() == 113
    rig.run()

    assert rig.lag() == 13


def test_a_deleted_topic_is_dropped_after_three_answers() -> None:
    cluster = kafka()
    cluster.topics["refunds"] = [1]
    cluster.commits["billing"]["refunds", 0] = 0
    rig = running(cluster)
    del cluster.topics["refunds"]
    rig.run(3)
    assert "refunds" in rig.view.layout.topics
    rig.run(3)

    assert "refunds" not in rig.view.layout.topics
    assert rig.lag() == 13


def test_two_metadata_responses_in_one_cycle_count_once_for_a_deletion() -> None:
    cluster = kafka()
    cluster.topics["refunds"] = [1]
    cluster.commits["billing"]["refunds", 0] = 0
    rig = running(cluster)
    rig.run(2)
    del cluster.topics["refunds"]
    for number in range(2):
        cluster.commits["billing"][f"new-{number}", 0] = 0
        rig.run()
        assert rig.counted()["Metadata"] == 2

    assert "refunds" in rig.view.layout.topics


def test_answers_that_count_for_a_deletion_come_from_different_brokers() -> None:
    rig = running()
    rig.kafka.ignorant = {2: {"orders"}}
    rig.run(12)

    assert rig.run().completeness == "complete"


def test_a_topic_that_was_made_again_begins_anew() -> None:
    cluster = kafka()
    cluster.generations["orders"] = "A"
    rig = running(cluster)
    cluster.generations["orders"] = "B"
    cluster.commits["billing"] = {ORDERS_0: 0, ORDERS_1: 0, ORDERS_2: 0}
    cluster.ends = {ORDERS_0: 1, ORDERS_1: 1, ORDERS_2: 1}
    rig.run(3)

    assert rig.lag() == 3


def test_new_partitions_are_read_in_the_cycle_that_sees_their_commits() -> None:
    rig = running()
    rig.kafka.topics["orders"] = [1, 2, 3, 1]
    rig.kafka.ends["orders", 3] = 8
    rig.kafka.starts["orders", 3] = 2
    rig.kafka.commits["billing"]["orders", 3] = 4
    rig.run()

    assert rig.lag() == 13 + 4
    assert rig.asked("ListOffsets earliest") == [{1: {"orders": (3,)}}]


def test_a_new_partition_without_commit_counts_from_its_start_where_the_rule_says_earliest() -> None:
    rig = running(settings=given(offsetReset="earliest"))
    rig.kafka.topics["orders"] = [1, 2, 3, 1]
    rig.kafka.ends["orders", 3] = 8
    rig.kafka.starts["orders", 3] = 2
    rig.run(3)

    assert rig.lag() == 13 + 6
    assert rig.read("uncommitted_partitions", BILLING).values[0].milli // 1000 == 1


def partitions_seen(rig: Rig) -> int:
    return rig.view.layout.partition[rig.view.layout.spans["billing"]].size


@pytest.mark.parametrize("begins_after", [1, 2, 3])
def test_new_partitions_that_an_hpa_follows_are_seen_within_ten_seconds_and_those_of_others_within_thirty(
    begins_after: int,
) -> None:
    """Another broker is asked each time, and the next one for all topics."""
    seen = {}
    for following in (frozenset({"billing"}), frozenset({"audit"})):
        rig = running(settings=samples.settings(collection={"interval": "5s"}))
        rig.cycle.partitions_asked = following
        rig.run(begins_after)
        rig.kafka.topics["orders"] = [1, 2, 3, 1]
        rig.run(2)
        seen[following] = partitions_seen(rig)

    assert list(seen.values()) == [4, 3]


def test_partitions_that_an_hpa_follows_cost_no_request_more_until_there_are_new_ones() -> None:
    counts = []
    for following in (frozenset[str](), frozenset({"billing"})):
        rig = running()
        rig.cycle.partitions_asked = following
        asked: Counter[str] = Counter()
        for _ in range(30):
            rig.run()
            asked += rig.counted()
        counts.append(asked)

    assert counts[0] == counts[1]
