"""What a member can do, beside a few lines of plain Python that compute the same from the same windows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.verdicts.capacity import ENOUGH_WINDOWS, BusyWindows, Capacity, capacity_of

MINUTE = 60.0


@dataclass(frozen=True)
class Window:
    begin: float
    rate: float
    messages: float = 1000.0
    commits: int = 6
    hour: int = 0


def capacity(*windows: Window) -> Capacity | None:
    columns = [np.array([getattr(it, name) for it in windows]) for name in ("begin", "rate", "messages", "commits")]
    begin, rate, messages, commits = (column.astype(float) for column in columns)
    length = np.full(len(windows), MINUTE)
    hours = np.array([it.hour for it in windows], np.intp)
    return capacity_of(BusyWindows(begin, length, length, rate, messages, commits, hours))


def learned(*windows: Window) -> Capacity:
    found = capacity(*windows)
    assert found is not None
    return found


def minutes(*rates: float, begin: float = 0.0, **other: float) -> list[Window]:
    return [Window(begin + MINUTE * at, rate, **other) for at, rate in enumerate(rates)]  # type: ignore[arg-type]  # numbers


def percentile(values: Sequence[float], percent: float) -> float:
    """Interpolated as SQL's percentile_cont."""
    ordered = sorted(values)
    place = percent / 100 * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def plainly_advised(windows: Sequence[Window]) -> float:
    """NaN: none."""
    rates = [it.rate for it in windows]
    if percentile(rates, 95) <= 1.5 * percentile(rates, 25):
        return percentile(rates, 25)
    by_hour = [[it.rate for it in windows if it.hour == hour] for hour in range(24)]
    known = [of_hour for of_hour in by_hour if len(of_hour) >= ENOUGH_WINDOWS]
    steady = [of_hour for of_hour in known if percentile(of_hour, 95) <= 1.5 * percentile(of_hour, 25)]
    if sum(map(len, steady)) < 0.75 * len(windows):
        return math.nan
    return min(percentile(of_hour, 25) for of_hour in known)


RATES = st.floats(1, 1000)
WINDOWS = st.lists(st.tuples(RATES, st.integers(0, 23) | st.just(3)), min_size=1, max_size=120)


@given(WINDOWS)
def test_what_is_advised_is_what_plain_python_advises(drawn: list[tuple[float, int]]) -> None:
    windows = [Window(MINUTE * at, rate, hour=hour) for at, (rate, hour) in enumerate(drawn)]
    found = learned(*windows)

    assert found.advised == pytest.approx(plainly_advised(windows), nan_ok=True)
    rates = [rate for rate, _ in drawn]
    assert (found.p25, found.p50, found.p95) == pytest.approx(tuple(percentile(rates, it) for it in (25, 50, 95)))
    assert (found.windows, sum(found.windows_by_hour)) == (len(drawn), len(drawn))


@given(st.integers(0, 23), st.floats(2, 20), st.lists(st.floats(0.9, 1.1), min_size=30, max_size=60))
def test_hours_that_explain_the_difference_advise_what_the_slowest_has(
    slow: int, times: float, noise: list[float]
) -> None:
    rates = [10 * each * (1 if hour == slow else times) for each in noise for hour in range(24)]
    windows = [Window(MINUTE * at, rate, hour=at % 24) for at, rate in enumerate(rates)]
    found = learned(*windows)

    assert found.is_by_hour or found.is_steady
    assert found.advised <= 1.1 * 10 * (1 if found.is_by_hour else times)
    assert slow in found.slowest_hours


def test_it_is_never_more_than_the_lower_quartile_of_any_hour_that_has_windows_enough() -> None:
    """By day a member does 40/s, at night 100/s; three windows of the evening are slower, and too few to count."""
    by_day, at_night = minutes(*[40.0] * 200, hour=10), minutes(*[100.0] * 300, hour=2, begin=1e6)
    found = learned(*by_day, *at_night, *minutes(*[5.0] * 3, hour=20, begin=2e6))

    assert (found.is_by_hour, found.advised, found.slowest_hours) == (True, 40, (10,))


def test_a_capacity_that_scatters_within_the_hours_has_no_number() -> None:
    found = learned(*minutes(*[20.0, 60.0] * 100, hour=9))

    assert math.isnan(found.advised)
    assert not found.is_by_hour


def test_no_window_shows_no_capacity() -> None:
    assert capacity() is None


def test_commits_that_are_rarer_than_windows_make_longer_windows() -> None:
    """Members read 10/s and commit every five minutes: in one window of five, what was read in all five."""
    steps = [50.0, 0.0, 0.0, 0.0, 0.0]
    found = learned(
        *(
            Window(MINUTE * at, steps[at % 5], messages=3000.0 * (at % 5 == 0), commits=int(at % 5 == 0))
            for at in range(300)
        )
    )

    assert (found.p25, found.p95, found.windows) == (10, 10, 20)


def test_few_messages_make_longer_windows_because_a_short_one_counts_by_chance() -> None:
    """One message a minute or none, or three: 1/60 a second."""
    numbers = [0, 1, 2, 1, 3, 0, 1, 0, 1, 1] * 60
    windows = (Window(MINUTE * at, it / 60, messages=it, commits=min(it, 1)) for at, it in enumerate(numbers))
    found = learned(*windows)

    assert found.advised == pytest.approx(1 / 60, rel=0.1)
    assert found.windows == 6


def test_what_is_left_of_a_stretch_is_no_window() -> None:
    """Stretches of 7 and of 3 minutes, put together by five: only the first has one."""
    few = {"messages": 20.0, "commits": 1}
    found = learned(*minutes(*[2.0] * 7, **few), *minutes(*[2.0] * 3, begin=9000, **few))

    assert (found.windows, found.seconds) == (1, 5 * MINUTE)


def test_time_in_which_a_group_stands_still_is_no_slow_work() -> None:
    """Five hours without a commit, in the middle of good work."""
    good, still = minutes(*[10.0] * 30), minutes(*[0.0] * 300, begin=1800, messages=0, commits=0)
    found = learned(*good, *still, *minutes(*[10.0] * 30, begin=19_800))

    assert (found.advised, found.windows) == (10, 60)
