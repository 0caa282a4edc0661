"""One line for each group, in the order in which people should look at them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from adapter.cluster.groups import GroupStatus, Kind, MemberCount, Phase
from adapter.lag.ring import Ring, Tick, Track, empty_ring
from adapter.metrics.query import Metrics
from adapter.metrics.store import ClusterView
from adapter.overview.lines import SURE_SECONDS, Attention, GroupLine, lines_of
from tests.support.samples import NEVER_READ, NOW, Key, Row, SteppedClock, row, settings, store_of, view

SECONDS = 60.0


def lines(*views: ClusterView, window: float = SECONDS) -> list[GroupLine]:
    clock = SteppedClock()
    known = Metrics(settings(), store_of(*views), clock).known()
    return lines_of(known._replace(window=window))


def moved(made: ClusterView, ends: Mapping[str, int], commits: Mapping[str, int]) -> ClusterView:
    """The log end and the commit of each group's only row moved by this much in a minute."""
    layout, snapshot, nothing = made.layout, made.snapshot, np.zeros(len(made.layout), dtype=np.float32)

    def track(now: Sequence[int], by: Mapping[str, int]) -> Track:
        after = np.array(now, dtype=np.int64)
        before = after - np.array([by.get(layout.groups[code], 0) for code in layout.group.tolist()])
        ticks = (Tick(NOW - SECONDS, before, nothing), Tick(NOW, after, nothing))
        return Track(ticks, before, np.full(len(after), NOW - SECONDS))

    starts = empty_ring(layout).starts
    ring = Ring(layout, track(snapshot.log_end.tolist(), ends), track(snapshot.committed.tolist(), commits), starts)
    return replace(made, ring=ring)


def with_members(made: ClusterView, members: Mapping[str, int]) -> ClusterView:
    counts = {group: MemberCount(count, NOW) for group, count in members.items()}
    phases = {group: Phase.STABLE if count else Phase.EMPTY for group, count in members.items()}
    statuses = {group: GroupStatus(Kind.CLASSIC, phase) for group, phase in phases.items()}
    return replace(made, members_of=counts.get, statuses=statuses)


ROWS: dict[Key, Row] = {(group, "orders", 0): row(90, 100) for group in ("empty", "stuck", "growing", "falling")}
ROWS[("done", "orders", 0)] = row(100, 100)
ROWS[("silent", "orders", 0)] = NEVER_READ


def test_groups_come_in_the_order_of_their_urgency() -> None:
    members = {"empty": 0, "stuck": 1, "growing": 1, "falling": 1, "done": 1}
    made = with_members(view(ROWS), members)
    made = moved(made, dict.fromkeys(members, 50), {"growing": 45, "falling": 80, "done": 50})

    assert [(line.group, line.attention) for line in lines(made)] == [
        ("silent", Attention.UNKNOWN),
        ("empty", Attention.NO_MEMBERS),
        ("stuck", Attention.STUCK),
        ("growing", Attention.GROWING),
        ("falling", Attention.LAGGING),
        ("done", Attention.NONE),
    ]


def test_of_two_groups_alike_the_one_with_the_larger_lag_comes_first() -> None:
    rows = {("a", "orders", 0): row(90, 100), ("b", "orders", 0): row(10, 100)}

    assert [line.group for line in lines(view(rows))] == ["b", "a"]


def test_a_group_is_not_stuck_before_it_was_followed_for_long_enough() -> None:
    made = moved(with_members(view({("stuck", "orders", 0): row(90, 100)}), {"stuck": 1}), {"stuck": 50}, {})

    assert [line.attention for line in lines(made, window=SURE_SECONDS - 1)] == [Attention.GROWING]
    assert [line.attention for line in lines(made)] == [Attention.STUCK]


@pytest.mark.parametrize("interval", ["2s", "15s", "20s", "60s"])
def test_a_group_can_be_called_stuck_at_any_interval(interval: str) -> None:
    given = settings(collection={"interval": interval, "maxAge": "5m"})

    assert Metrics(given, store_of(view(ROWS)), SteppedClock()).known().window >= SURE_SECONDS


def test_a_line_has_state_members_partitions_wait_and_rates() -> None:
    made = moved(with_members(view({("mail", "orders", 0): row(90, 100)}), {"mail": 3}), {"mail": 60}, {"mail": 30})

    (line,) = lines(made)
    assert (line.state, line.members, line.partitions, line.lag) == ("stable", 3, 1, 10)
    assert [line.production, line.consumption] == pytest.approx([1, 0.5])
    assert line.wait == pytest.approx(10, abs=0.1)
    assert not line.wait_is_bound


def test_what_is_not_known_is_none() -> None:
    (line,) = lines(view({("mail", "orders", 0): row(90, 100)}))

    assert (line.state, line.members, line.production, line.consumption) == ("", None, None, None)
    assert (line.wait, line.wait_is_bound) == (0, True)


def test_a_group_without_a_known_lag_says_why() -> None:
    (line,) = lines(with_members(view({("silent", "orders", 0): NEVER_READ}), {"silent": 2}))

    assert line == GroupLine(
        "main", "silent", "stable", Attention.UNKNOWN, 2, reason="orders/0: broker 2 at kafka-2:9092 does not answer"
    )


def test_groups_that_only_a_silent_broker_knows_are_one_line() -> None:
    first = lines(view({("mail", "orders", 0): row(90, 100)}, silence="broker 2 does not answer"))[0]

    assert (first.group, first.attention, first.lag) == ("(others)", Attention.UNKNOWN, None)
    assert "broker 2 does not answer" in first.reason


def test_a_group_of_which_no_partition_counts_is_there_without_a_lag() -> None:
    rows = {("mail", "orders", 0): row(90, 100)}
    (line,) = lines(with_members(view(rows, members_read={"mail": frozenset({"refunds"})}), {"mail": 1}))

    assert (line.lag, line.attention, line.members) == (None, Attention.NONE, 1)
    assert line.reason.startswith("no partition counts")
