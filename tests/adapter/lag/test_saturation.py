"""From which cycles the capacity of a member is learned, and which ones show nothing."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from adapter.lag.owners import NOT_ASKED
from adapter.lag.ring import Ring, Tick, Track
from adapter.lag.saturation import BusyWindow, Saturation, capacity_in, newest_of
from tests.support import samples

LAYOUT = samples.layout([("billing", "orders", 3), ("mail", "letters", 0)])
"""Rows 0 to 3 of billing, and 4 of mail."""
OWNERS = np.array([10, 10, 20, 20, 30], np.int64)
INTERVAL = 10.0
ROWS = np.arange(5)


def track(at: float, offsets: Sequence[int], age: Sequence[float], begun: float = 0.0) -> Track:
    tick = Tick(at, np.array(offsets, np.int64), np.array(age, np.float32))
    return Track((tick,), np.zeros(5, np.int64), np.full(5, begun))


def ring(at: float, committed: Sequence[int], end: Sequence[int], age: Sequence[float] = (0.0,) * 5) -> Ring:
    commits = track(at, committed, age)
    return Ring(LAYOUT, track(at, end, age), commits, commits)


def followed(
    rates: Mapping[int, float], lag: int = 100_000, seconds: int = 60, produced: float = 0.0, **changes: object
) -> Mapping[str, BusyWindow]:
    """What a window shows in which members read these rows at these rates; all others read nothing and have no lag."""
    saturation = None
    for at in range(0, seconds + 1, 10):
        committed = [round(rates.get(row, 0.0) * at) for row in range(5)]
        end = [(lag if row in rates else 0) + round(produced * at) for row in range(5)]
        owners = changes.get("owners", OWNERS) if at > 30 else OWNERS
        age = [60.0 if (row, at) == changes.get("unread") else 0.0 for row in range(5)]
        newest = ring(float(at), committed, end, age)
        saturation = (
            Saturation.begun(newest, ROWS, OWNERS)
            if saturation is None
            else saturation.followed_by(newest, np.asarray(owners))
        )
    assert saturation is not None
    assert saturation.is_over(INTERVAL) == (seconds >= 60)
    return saturation.windows()


def test_a_member_that_always_had_something_to_read_shows_what_it_can() -> None:
    assert followed({0: 30.0, 1: 20.0}) == {"billing": BusyWindow(0.0, 60.0, 50.0, 3000.0, 6)}


def test_several_members_are_averaged() -> None:
    (window,) = followed({0: 30.0, 1: 20.0, 2: 35.0, 3: 35.0}).values()

    assert window.rate == 60.0


def test_a_member_with_a_partition_that_keeps_up_shows_nothing() -> None:
    assert followed({0: 50.0}) == {}


def test_a_lag_that_arrives_within_half_a_minute_is_no_backlog() -> None:
    assert followed({4: 100.0}, lag=2900, produced=100.0) == {}
    assert followed({4: 100.0}, lag=3100, produced=100.0).keys() == {"mail"}


@pytest.mark.parametrize(
    "changes",
    [
        {"owners": [10, 20, 20, 20, 30]},
        {"owners": [10, NOT_ASKED, 20, 20, 30]},
        {"unread": (1, 30)},
    ],
)
def test_a_change_of_members_or_a_cycle_without_an_answer_shows_nothing(changes: dict[str, object]) -> None:
    assert followed({0: 30.0, 1: 20.0}, **changes) == {}  # type: ignore[arg-type]  # of `changes`


def test_each_group_is_learned_from_its_own_members() -> None:
    found = followed({0: 30.0, 1: 20.0, 4: 7.0})

    assert {group: window.rate for group, window in found.items()} == {"billing": 50.0, "mail": 7.0}


def test_windows_of_two_processes_do_not_count_twice() -> None:
    ours = [BusyWindow(60.0 * at, 60.0, 50.0, 3000.0, 6) for at in range(5)]
    theirs = [window._replace(begin=window.begin + 20.0) for window in ours]

    assert newest_of({*ours, *theirs}) == tuple(ours)


def test_only_the_newest_hour_of_windows_is_kept() -> None:
    many = [BusyWindow(60.0 * at, 60.0, 50.0, 3000.0, 6) for at in range(100)]

    assert newest_of(many) == tuple(many[-60:])


def test_hours_in_which_nothing_is_read_do_not_make_the_capacity_unknown() -> None:
    busy = [BusyWindow(60.0 * at, 60.0, 50.0, 3000.0, 6) for at in range(60)]
    known = newest_of(busy)

    for at in range(60, 180):
        known = newest_of({*known, BusyWindow(60.0 * at, 60.0, 0.0, 0.0, 0)})
        capacity = capacity_in(known)
        assert capacity is not None
        assert (capacity.is_firm, capacity.p25) == (True, 50.0)


def test_the_capacity_is_the_lower_quartile_of_the_windows() -> None:
    windows = [BusyWindow(60.0 * at, 60.0, 40.0 + at % 4, 3000.0, 6) for at in range(40)]
    capacity = capacity_in(windows)

    assert capacity is not None
    assert (capacity.p25, capacity.windows) == (40.75, 40)


def test_no_window_shows_no_capacity() -> None:
    assert capacity_in([]) is None
