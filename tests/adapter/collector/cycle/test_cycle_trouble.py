"""Cycles in trouble: silent brokers, moved leaders, absurd answers, everything replaced."""

import pytest

from adapter.lag.snapshot import State
from adapter.metrics.problems import Reason
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import BILLING, ORDERS_0, ORDERS_1, ORDERS_2, SILENT_2, kafka, running


def test_a_silent_coordinator_costs_freshness_and_then_an_error_in_words() -> None:
    rig = running()
    rig.kafka.silent = {2}
    rig.kafka.ends[ORDERS_0] = 1000
    assert rig.run().completeness == "failed"
    assert rig.lag() == 13
    rig.run(5)
    assert rig.lag() == 13
    rig.run()

    for metric in ("lag", "uncommitted_partitions"):
        assert rig.reasons(metric, group="billing") == [Reason.NOT_READ_SINCE]
        assert str(rig.refusal(metric, group="billing")).endswith(SILENT_2)


def test_a_silent_leader_keeps_only_its_own_partitions_back() -> None:
    cluster = kafka()
    cluster.coordinators["billing"] = 1
    rig = running(cluster)
    cluster.silent = {2}
    cluster.commits["billing"] = {ORDERS_0: 10, ORDERS_1: 20, ORDERS_2: 5}
    outcome = rig.run()

    # Partition 1 keeps its commit of the cycle that read its end.
    assert (outcome.completeness, outcome.read, rig.lag()) == ("partial", 2, 10)
    assert rig.view.snapshot.state.tolist() == [State.OK, State.UNKNOWN, State.OK]
    rig.run(6)
    (problem,) = rig.refusal(group="billing").problems
    assert (problem.reason, problem.partition) == (Reason.NOT_READ_SINCE, 1)


def test_a_broker_that_missed_its_deadline_is_not_asked_until_its_probe_is_answered() -> None:
    rig = running()
    rig.kafka.silent = {2}
    rig.run()
    assert rig.brokers.requests.count(("probe", 2)) == 1

    rig.run(2)
    assert [kind for kind, node in rig.brokers.requests if node == 2] == []

    rig.kafka.silent.clear()
    rig.run()
    assert ("OffsetFetch", 2) in rig.brokers.requests
    assert rig.run().completeness == "complete"


def test_a_broker_that_missed_its_deadline_is_not_asked_again_in_the_same_cycle() -> None:
    rig = running()
    rig.kafka.silent = {2}
    rig.run()

    assert [kind for kind, node in rig.brokers.requests if node == 2] == ["OffsetFetch", "probe"]


def test_a_partition_without_leader_keeps_its_last_good_row() -> None:
    rig = running()
    rig.kafka.topics["orders"] = [1, -1, 3]
    rig.run(4)

    assert rig.view.snapshot.state.tolist() == [State.OK, State.LEADERLESS, State.OK]
    assert rig.lag() == 13
    rig.run(5)
    assert str(rig.refusal(group="billing")).endswith("the partition has no leader")


def test_a_leader_that_moved_is_found_in_the_next_cycle() -> None:
    rig = running()
    rig.kafka.topics["orders"] = [1, 3, 3]
    assert rig.run().completeness == "partial"
    assert rig.view.snapshot.cause_of(1).text == "its leadership is moving"

    assert rig.run().completeness == "complete"


HIDDEN = "the adapter may not describe topic orders (ACL Describe on the topic is missing)"


@pytest.mark.parametrize(
    ("error", "text", "looks"),
    [*((moved, "its leadership is moving", 1) for moved in (3, 5, 6, 74, 75, 100)), (29, HIDDEN, 0)],
)
def test_an_error_of_a_leader_is_of_its_partition_alone(error: int, text: str, looks: int) -> None:
    """Metadata is requested again if leadership moves."""
    rig = running()
    rig.kafka.end_errors = {ORDERS_1: error}
    rig.run()
    assert [rig.view.snapshot.cause_of(row).text for row in range(3)] == ["", text, ""]

    rig.run()
    assert rig.counted()["Metadata"] == looks


def test_a_commit_beyond_the_end_is_refused_in_the_second_cycle() -> None:
    rig = running()
    rig.kafka.commits["billing"][ORDERS_0] = 500
    rig.run()
    assert rig.lag() == 13
    rig.run()

    assert rig.reasons(group="billing") == [Reason.COMMIT_BEYOND_END]


@pytest.mark.parametrize("absurd", [-5, 2**60])
def test_a_commit_that_can_be_no_offset_is_an_error_of_its_partition(absurd: int) -> None:
    rig = running()
    rig.kafka.commits["billing"][ORDERS_0] = absurd
    rig.run(7)

    assert rig.view.snapshot.state.tolist() == [State.ERROR, State.OK, State.OK]
    assert rig.reasons(group="billing") == [Reason.NOT_READ_SINCE]
    assert rig.view.snapshot.cause_of(0).text == "its commit cannot be read"


def test_a_truncated_partition_counts_from_its_log_start() -> None:
    cluster = kafka()
    cluster.starts = {ORDERS_1: 15}
    rig = running(cluster)

    assert rig.view.snapshot.state.tolist()[1] == State.TRUNCATED
    assert rig.lag() == 3 + 5
    assert rig.read("lead_min", BILLING).values[0].milli // 1000 == 0

    cluster.start_errors, cluster.starts[ORDERS_0] = {ORDERS_1: 6}, 8
    rig.run(13)
    assert rig.lag() == 2 + 5, "a start that cannot be read stays as it was"


def test_a_log_start_that_could_not_be_read_when_it_was_due_is_read_in_the_next_cycle() -> None:
    rig = running()
    rig.kafka.starts, rig.kafka.start_errors = {ORDERS_0: 2}, {ORDERS_0: 6}
    rig.run()
    while not rig.counted()["ListOffsets earliest"]:
        rig.run()
    assert lead_of_orders_0(rig) == 7
    rig.kafka.start_errors = {}
    rig.run()

    assert lead_of_orders_0(rig) == 5
    assert rig.asked("ListOffsets earliest") == [{1: {"orders": (0,)}}]


def lead_of_orders_0(rig: Rig) -> int:
    return rig.read("lead_min", samples.wants(group="billing", partition="0")).values[0].milli // 1000


def test_a_group_that_may_not_be_described_is_an_error_of_its_own() -> None:
    rig = running()
    rig.kafka.commits["audit"] = {ORDERS_0: 1}
    rig.kafka.commit_errors["billing"] = 30
    rig.run(8)

    assert rig.reasons(group="billing") == [Reason.NOT_READ_SINCE]
    assert rig.lag("audit") == 9


def test_a_group_whose_commits_were_never_read_says_why() -> None:
    cluster = kafka()
    cluster.commit_errors["billing"] = 30
    rig = running(cluster)

    (problem,) = rig.refusal(group="billing").problems
    assert problem.reason is Reason.NOT_READ_YET
    assert problem.text == "the adapter may not describe group billing (ACL Describe on the group is missing)"


def test_steps_backward_of_a_broker_that_was_silent_are_not_believed_for_five_seconds() -> None:
    rig = running()
    rig.kafka.silent = {2}
    rig.run()
    rig.kafka.silent.clear()
    rig.kafka.stale_commits = {2: {"billing": {ORDERS_0: 1, ORDERS_1: 1, ORDERS_2: 1}}}
    rig.run()

    assert rig.lag() == 13
    assert "older offsets than before" in rig.view.snapshot.cause_of(0).text
    # Ten seconds later it stands by them: someone reset the group.
    rig.run()
    assert rig.lag() == 9 + 19 + 4


def test_an_end_of_a_broker_that_was_silent_is_not_believed_though_others_delay_the_cycle() -> None:
    topics, commits = {"orders": [2], "bills": [3]}, {"billing": {ORDERS_0: 0}, "etl": {("bills", 0): 0}}
    cluster = Kafka(topics, commits, {"billing": 1, "etl": 3}, ends={ORDERS_0: 100})
    rig = running(cluster)
    cluster.silent = {2}
    rig.run(2)

    cluster.silent, cluster.ends[ORDERS_0] = set(), 50
    cluster.delays = {("OffsetFetch", 3): (2.9, 0.0), **{("Metadata", node): (2.5, 0.0) for node in (1, 2, 3)}}
    # A second look at Metadata comes before the answers are read.
    cluster.topics["new"], cluster.commits["etl"]["new", 0] = [3], 0
    rig.run()

    assert rig.lag() == 100


OLD = {ORDERS_0: 1, ORDERS_1: 1}
"""Commits of before: smaller ones, and none for partition 2."""


def taken_over(rig: Rig) -> None:
    """Broker 3 coordinates billing now, and reports what it knew as a follower."""
    rig.kafka.coordinators["billing"] = 3
    rig.kafka.stale_commits = {3: {"billing": OLD}}
    rig.run(2)


def test_what_a_new_coordinator_reports_is_not_believed_where_it_steps_backward() -> None:
    rig = running()
    taken_over(rig)
    assert rig.lag() == 13
    assert "taken over the group" in rig.view.snapshot.cause_of(0).text

    rig.kafka.stale_commits.clear()
    rig.run()
    assert rig.lag() == 13


def test_a_new_coordinator_that_reports_nothing_at_all_takes_no_topic_away() -> None:
    rig = running()
    rig.kafka.coordinators["billing"] = 3
    rig.kafka.stale_commits = {3: {"billing": {}}}
    rig.run(3)
    assert rig.lag() == 13

    rig.kafka.stale_commits.clear()
    rig.run()
    assert rig.lag() == 13


def test_a_coordinator_that_refused_a_group_is_a_new_one_when_it_reports_it_again() -> None:
    """Leadership may have gone to another broker and back between two cycles."""
    rig = running()
    rig.kafka.commit_errors["billing"] = 14
    rig.run()
    rig.kafka.commit_errors.clear()
    rig.kafka.stale_commits = {2: {"billing": OLD}}
    rig.run()

    assert rig.lag() == 13


@pytest.mark.parametrize("interval", ["10s", "30s", "1m"])
@pytest.mark.parametrize("stale", [OLD, {}], ids=["older commits", "no commits"])
def test_a_new_coordinator_that_stays_behind_is_not_believed_until_its_report_changes(
    stale: dict[tuple[str, int], int], interval: str
) -> None:
    """It missed its followers' confirmation, so it stays behind until the next record of its partition.

    No log end shows that record here, so the doubt lasts five minutes."""
    rig = running(settings=samples.settings(collection={"interval": interval, "maxAge": "3m"}))
    rig.kafka.coordinators["billing"] = 3
    rig.kafka.stale_commits = {3: {"billing": stale}}
    rig.run(240 // int(rig.settings.collection.interval))
    assert rig.reasons(group="billing") == [Reason.NOT_READ_SINCE]

    rig.kafka.stale_commits.clear()
    rig.run()
    assert rig.lag() == 13


def test_a_second_coordinator_that_stays_behind_is_doubted_as_long_as_the_first() -> None:
    """The group may have committed while no coordinator could be reached."""
    rig = running()
    taken_over(rig)
    rig.run(20)
    rig.kafka.silent = {3}
    rig.run(6)
    rig.kafka.silent, rig.kafka.coordinators["billing"], rig.kafka.stale_commits = set(), 1, {1: {"billing": OLD}}
    rig.run(27)
    assert rig.reasons(group="billing") == [Reason.NOT_READ_SINCE]

    rig.run(9)
    assert rig.lag() == (10 - 1) + (20 - 1)


def test_commits_that_were_reset_after_a_takeover_are_believed_half_a_minute_later() -> None:
    """The last good row is younger than maxAge until then."""
    rig = running()
    taken_over(rig)
    rig.kafka.stale_commits = {3: {"billing": {ORDERS_0: 0, ORDERS_1: 1}}}
    rig.run()
    assert rig.lag() == 13
    rig.run(3)

    assert rig.lag() == 10 + (20 - 1) + 0


def test_another_group_that_comes_ends_no_doubt_about_a_takeover_and_begins_none() -> None:
    doubted, settled = running(), running()
    taken_over(doubted)
    settled.run(2)
    for rig in (doubted, settled):
        rig.kafka.commits["audit"] = {ORDERS_0: 1}
    settled.kafka.commits["billing"] = {ORDERS_0: 0, ORDERS_1: 0, ORDERS_2: 0}
    for rig in (doubted, settled):
        rig.run()

    assert (doubted.lag("audit"), doubted.lag()) == (9, 13)
    assert (settled.lag("audit"), settled.lag()) == (9, 35)


def test_a_log_start_beyond_the_last_known_end_makes_the_lag_unknown() -> None:
    """The records of the last good row are gone, and how many came after them is not known."""
    rig = running()
    rig.kafka.silent = {2}  # coordinates billing
    rig.run()
    assert rig.lag() == 13
    rig.kafka.ends[ORDERS_0], rig.kafka.starts[ORDERS_0] = 5000, 1200
    rig.run(5)

    assert rig.reasons(group="billing") == [Reason.START_BEYOND_END]


def test_after_three_cycles_without_any_answer_everything_begins_anew() -> None:
    rig = running()
    rig.kafka.silent = {1, 2, 3}
    rig.run(2)
    assert (rig.brokers.closes, rig.brokers.connects) == (0, 1)
    rig.run()
    assert (rig.brokers.closes, rig.brokers.connects) == (1, 1)

    rig.kafka.silent.clear()
    assert rig.run().completeness == "complete"
    assert (rig.brokers.closes, rig.brokers.connects) == (1, 2)


def test_brokers_that_were_all_replaced_are_found_again() -> None:
    rig = running()
    rig.kafka.nodes = (4, 5, 6)
    rig.kafka.topics["orders"] = [4, 5, 6]
    rig.kafka.coordinators["billing"] = 5
    rig.kafka.ends[ORDERS_0] = 11
    rig.run(6)

    assert rig.run().completeness == "complete"
    assert rig.lag() == 14


def test_metadata_without_brokers_as_of_one_that_was_fenced_is_read_again_in_the_next_cycle() -> None:
    rig = running()
    rig.kafka.living = dict.fromkeys(rig.kafka.nodes, ())
    rig.run(2)

    rig.kafka.living.clear()
    rig.kafka.commits["billing"] = {ORDERS_0: 8, ORDERS_1: 20, ORDERS_2: 5}
    assert (rig.run().completeness, rig.lag()) == ("complete", 2)


def test_a_cluster_whose_first_metadata_has_no_brokers_is_read_in_the_next_cycle() -> None:
    cluster = kafka()
    cluster.living = dict.fromkeys(cluster.nodes, ())
    rig = Rig(cluster)
    rig.run()

    cluster.living.clear()
    assert (rig.run().completeness, rig.lag()) == ("complete", 13)


def test_metadata_is_asked_of_three_brokers_at_most_however_many_are_silent() -> None:
    """Twenty of thirty would cost twenty deadlines before any offset is read. A missing topic is looked for often."""
    nodes = tuple(range(1, 31))
    cluster = Kafka(topics={"orders": [30]}, commits={"billing": {ORDERS_0: 7}}, coordinators={"billing": 30})
    cluster.ends, cluster.nodes = {ORDERS_0: 10}, nodes
    rig = running(cluster, samples.settings(rules=[{"group": "audit", "topics": ["orders", "refunds"]}]))
    cluster.silent = set(nodes[:20])
    asked = []
    for _ in range(9):
        rig.run()
        asked.append(rig.counted()["Metadata"])
        assert rig.lag() == 3

    assert max(asked) == 3
    assert asked[-1] == 1
