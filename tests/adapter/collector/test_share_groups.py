"""What becomes of the rows, topics and coordinators of share groups."""

from uuid import UUID

import numpy as np
import pytest

from adapter.cluster.coordinators import SHARE_STATE_TOPIC
from adapter.cluster.groups import Directory, GroupStatus, Kind, Phase
from adapter.cluster.topics import Topic, Topology
from adapter.collector.share_groups import (
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
from adapter.lag.snapshot import Cause, Causes, Observed, nothing_observed
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


def test_a_lag_beyond_a_log_that_was_cut_is_no_negative_offset() -> None:
    reported, _ = seen({"orders": shared((0, 10, 150))})

    assert reported.committed[ORDERS][0] == 0


@pytest.mark.parametrize(
    "reported", [shared((0, 10, 7), error=3), shared((0, -7, -1)), shared((0, 2**62, -1)), shared((0, -7, -7))]
)
def test_what_is_no_offset_is_an_error_of_that_row_alone(reported: SharedPartitions) -> None:
    _, why = seen({"orders": reported})

    assert why[ORDERS] == [UNREADABLE.text, "", ""]


def test_a_topic_that_was_begun_and_is_missing_is_not_known() -> None:
    observed, causes = nothing_observed(LAYOUT), Causes()
    outcome = ShareRound({"workers": ShareAnswer({"orders": shared((0, 1, 1))}, 5.0, False)}, {})
    with_shares(observed, LAYOUT, {"workers": {"orders", "refunds"}}, outcome, causes)

    assert causes.table()[observed.commit_cause[REFUNDS][0]] == NOT_REPORTED


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


def test_a_share_group_that_became_another_kind_is_forgotten() -> None:
    reads = Reads()
    reads.run()
    reads.lists(workers=GroupStatus(Kind.CLASSIC, Phase.STABLE), helpers=SHARE)

    assert reads.run().answers.keys() == {"helpers"}
    assert reads.shares.topics.keys() == {"helpers"}


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
