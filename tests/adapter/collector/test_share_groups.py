"""How far share groups are: what their coordinators say, and the rows that come of it."""

from uuid import UUID

import numpy as np
import pytest

from adapter.cluster.coordinators import SHARE_STATE_TOPIC
from adapter.cluster.groups import Directory, GroupStatus, Kind, Phase
from adapter.cluster.topics import Topic, Topology
from adapter.collector.share_groups import (
    END_NOT_KNOWN,
    NOT_REPORTED,
    UNREADABLE,
    ShareAnswer,
    ShareRound,
    Shares,
    with_shares,
)
from adapter.kafka.answers import Failure
from adapter.kafka.liveness import Liveness
from adapter.lag.layout import layout_of
from adapter.lag.rules import Watching
from adapter.lag.snapshot import Cause, Causes, Observed, State, nothing_observed
from adapter.protocol.group_responses import SharedPartitions
from tests.support import samples
from tests.support.kafka.fake_brokers import FakeBrokers
from tests.support.kafka.fake_cluster import Kafka
from tests.support.samples import SteppedClock

LAYOUT = layout_of(
    {"billing": {"orders"}, "workers": {"orders", "refunds"}},
    Topology(
        topics={
            "orders": Topic(None, np.array([1, 1, 1], dtype=np.int32)),
            "refunds": Topic(None, np.array([1], dtype=np.int32)),
        }
    ),
)
ORDERS = LAYOUT.pairs["workers", "orders"]
REFUNDS = LAYOUT.pairs["workers", "refunds"]
SHARE = GroupStatus(Kind.SHARE, Phase.STABLE)


def shared(*rows: tuple[int, int, int], error: int = 0) -> SharedPartitions:
    """Rows of partition, start and lag."""
    partition, start, lag = np.array(rows, dtype=np.int64).T
    return SharedPartitions(partition.astype(np.int32), start, lag, np.full(len(rows), error, dtype=np.int32))


def seen(topics: dict[str, SharedPartitions], end: int = 100) -> tuple[Observed, list[str]]:
    """What becomes of one group's answer where every log ends at `end`; second: why each row was not read."""
    observed = nothing_observed(LAYOUT)
    observed.log_end[:] = end
    causes = Causes()
    outcome = ShareRound({"workers": ShareAnswer(topics, 5.0, False)}, {})
    with_shares(observed, LAYOUT, {"workers": topics.keys()}, outcome, causes)
    return observed, [causes.table()[code].text for code in observed.commit_cause]


def test_the_brokers_own_lag_is_what_is_behind_the_end() -> None:
    reported, why = seen({"orders": shared((2, 10, 7), (0, 20, 0))})

    assert (reported.log_end - reported.committed)[ORDERS].tolist() == [0, 101, 7]
    assert reported.commit_received[ORDERS].tolist() == [5.0] * 3
    assert set(why) == {""}


def test_without_a_lag_the_first_record_that_is_not_done_is_the_commit() -> None:
    reported, _ = seen({"orders": shared((0, 10, -1))})

    assert reported.committed[ORDERS].tolist() == [10, -1, -1]


def test_a_partition_that_was_not_begun_has_no_commit() -> None:
    reported, why = seen({"orders": shared((0, -1, -1))})

    assert reported.committed[ORDERS].tolist() == [-1, -1, -1]
    assert set(why) == {""}


def test_a_lag_beyond_a_log_that_was_cut_is_no_negative_offset() -> None:
    reported, _ = seen({"orders": shared((0, 10, 150))})

    assert reported.committed[ORDERS][0] == 0


def test_a_lag_without_a_log_end_yields_no_offset() -> None:
    reported, why = seen({"orders": shared((0, 10, 7))}, end=-1)

    assert reported.committed[ORDERS][0] == 0
    assert why[ORDERS.start] == END_NOT_KNOWN.text


@pytest.mark.parametrize(
    "reported", [shared((0, 10, 7), error=3), shared((0, -7, -1)), shared((0, 2**62, -1)), shared((0, -7, -7))]
)
def test_what_is_no_offset_is_an_error_of_that_row_alone(reported: SharedPartitions) -> None:
    _, why = seen({"orders": reported})

    assert why[ORDERS] == [UNREADABLE.text, "", ""]


def test_partitions_that_the_layout_does_not_have_go_nowhere() -> None:
    reported, why = seen({"orders": shared((7, 10, 7)), "unknown": shared((0, 1, 1))})

    assert reported.committed.tolist() == [-1] * len(LAYOUT)
    assert set(why) == {""}


def test_a_topic_that_was_begun_and_is_missing_is_not_known() -> None:
    observed, causes = nothing_observed(LAYOUT), Causes()
    outcome = ShareRound({"workers": ShareAnswer({"orders": shared((0, 1, 1))}, 5.0, False)}, {})
    with_shares(observed, LAYOUT, {"workers": {"orders", "refunds"}}, outcome, causes)

    assert causes.table()[observed.commit_cause[REFUNDS][0]] == NOT_REPORTED


def test_a_group_with_a_problem_leaves_the_others_alone() -> None:
    observed, causes = nothing_observed(LAYOUT), Causes()
    with_shares(observed, LAYOUT, {}, ShareRound({}, {"workers": Cause(State.ERROR, "why")}), causes)

    assert [causes.table()[code].text for code in observed.commit_cause] == [""] * 3 + ["why"] * 4


def test_rows_of_a_broker_that_was_silent_are_doubtful() -> None:
    outcome = ShareRound({"workers": ShareAnswer({}, 5.0, True)}, {})

    doubtful = with_shares(nothing_observed(LAYOUT), LAYOUT, {}, outcome, Causes())
    assert doubtful.tolist() == [False] * 3 + [True] * 4


class Reads:
    """Share groups of a fake cluster: `workers` at broker 2, `helpers` at broker 3."""

    def __init__(self) -> None:
        self.kafka = Kafka(
            coordinators={"workers": 2, "helpers": 3, "billing": 1},
            shares={"workers": {("orders", 0): (10, 7)}, "helpers": {("orders", 0): (3, 0)}},
        )
        self.clock = SteppedClock()
        self.brokers = FakeBrokers(self.kafka, self.clock)
        self.liveness = Liveness(self.brokers.probe, self.clock.monotonic)
        self.shares = Shares(self.brokers, self.liveness, Watching(samples.settings(), "main"))
        self.topology = Topology()
        self.lists(workers=SHARE, helpers=SHARE, billing=GroupStatus(Kind.CLASSIC, Phase.STABLE))

    def lists(self, **statuses: GroupStatus) -> None:
        groups = frozenset(self.kafka.coordinators)
        self.directory = Directory(groups, self.kafka.coordinators, statuses=statuses)

    def run(self) -> ShareRound:
        self.brokers.requests.clear()
        self.liveness.begin_cycle()
        calls = self.shares.ask(self.directory, self.topology)
        while self.brokers.wait(calls, together=0.0):
            self.shares.take(calls, 0)
        self.clock.seconds += 10.0
        return self.shares.newest

    def problem(self, group: str = "workers") -> Cause:
        """Of that group; the other one is answered for."""
        outcome = self.run()
        assert outcome.answers.keys() == {"workers", "helpers"} - {group}
        return outcome.problems[group]


def test_every_coordinator_of_share_groups_is_asked_once() -> None:
    reads = Reads()
    outcome = reads.run()

    assert reads.brokers.requests == [("DescribeShareGroupOffsets", 3), ("DescribeShareGroupOffsets", 2)]
    assert outcome.answers.keys() == {"workers", "helpers"}
    assert reads.shares.topics == {"workers": {"orders": 0}, "helpers": {"orders": 0}}


def test_without_share_groups_nothing_is_requested() -> None:
    reads = Reads()
    reads.lists()

    assert reads.run() == ShareRound()
    assert reads.brokers.requests == []


def test_a_share_group_that_is_not_listed_for_a_moment_is_still_one() -> None:
    """As while its coordinator moves: OffsetFetch says that it has no commits, which would be a lag of 0."""
    reads = Reads()
    reads.run()
    reads.lists()

    assert reads.run().answers.keys() == {"workers", "helpers"}


def test_a_share_group_that_became_another_kind_is_forgotten() -> None:
    reads = Reads()
    reads.run()
    reads.lists(workers=GroupStatus(Kind.CLASSIC, Phase.STABLE), helpers=SHARE)

    assert reads.run().answers.keys() == {"helpers"}
    assert reads.shares.topics.keys() == {"helpers"}


def test_a_coordinator_that_moves_is_not_believed() -> None:
    reads = Reads()
    reads.directory = Directory(reads.directory.groups, {"workers": 1, "helpers": 3}, statuses=reads.directory.statuses)

    assert reads.problem() == Cause(State.UNKNOWN, "the coordinator of share group workers is moving")


def test_a_group_without_coordinator_is_not_known() -> None:
    reads = Reads()
    reads.directory = Directory(reads.directory.groups, {"helpers": 3}, statuses=reads.directory.statuses)

    assert reads.problem() == Cause(State.UNKNOWN, "no broker coordinates share group workers")


@pytest.mark.parametrize(("error", "text"), [(30, "may not describe group workers"), (87, "returned error 87")])
def test_an_error_of_one_group_is_that_groups_alone(error: int, text: str) -> None:
    reads = Reads()
    reads.kafka.share_errors["workers"] = error
    problem = reads.problem()

    assert problem.state is State.ERROR
    assert text in problem.text


def test_a_broker_that_is_too_old_is_an_error_of_its_groups_and_no_failure_of_the_broker() -> None:
    reads = Reads()
    reads.kafka.ignorant_of_shares = {2}

    assert reads.problem() == Cause(State.ERROR, "broker 2 is too old to report the progress of share group workers")
    assert reads.liveness.failures == []


def test_a_silent_coordinator_is_reported_and_not_asked_again() -> None:
    reads = Reads()
    reads.kafka.silent = {2}

    assert reads.problem() == Cause(State.UNKNOWN, "broker 2 at kafka-2:9092 does not answer")
    assert reads.problem() == Cause(State.UNKNOWN, "broker 2 at kafka-2:9092 does not answer")
    assert ("DescribeShareGroupOffsets", 2) not in reads.brokers.requests


def test_a_group_is_unread_until_it_was_read_once() -> None:
    reads = Reads()
    reads.kafka.share_errors["workers"] = 87
    reads.run()
    assert reads.shares.unread().keys() == {"workers"}

    reads.kafka.share_errors.clear()
    reads.run()
    reads.kafka.share_errors["workers"] = 87
    reads.run()
    assert reads.shares.unread() == {}


def test_a_topic_that_a_group_no_longer_has_is_dropped_after_three_answers() -> None:
    reads = Reads()
    reads.run()
    reads.kafka.shares["workers"] = {("refunds", 0): (1, 0)}
    remembered = []
    for _ in range(3):
        reads.run()
        remembered.append(set(reads.shares.topics["workers"]))

    assert remembered == [{"orders", "refunds"}, {"orders", "refunds"}, {"refunds"}]


def test_a_coordinator_that_waited_for_a_silent_keeper_of_state_is_not_asked_again_for_the_group() -> None:
    reads = Reads()
    reads.run()
    reads.topology = samples.topology({"orders": [1], SHARE_STATE_TOPIC: [4]}, {"orders": str(UUID(int=7))})
    silent = Failure("timed_out", "broker 4 at kafka-4:9092 does not answer")
    reads.kafka.nodes, reads.kafka.silent = (1, 2, 3, 4), {4}
    reads.liveness.note({4: silent})
    assert reads.run().problems == {}, "other brokers may reach it: only we do not"

    reads.kafka.silent = {2, 4}
    reads.run()
    reads.kafka.silent = {4}
    outcome = reads.run()
    assert ("DescribeShareGroupOffsets", 2) not in reads.brokers.requests
    assert outcome.problems["workers"].text == f"{silent.text}, and it stores the state of share group workers"
    assert outcome.answers.keys() == {"helpers"}

    problems = [reads.run().problems.keys() for _ in range(3)]
    assert problems == [{"workers"}, {"workers"}, set()], "it may have been silent for a reason of its own"
