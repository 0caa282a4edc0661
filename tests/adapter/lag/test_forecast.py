"""What a weekly pattern says of the time soon after now, beside plain Python."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.lag.forecast import MOST, Pattern, pattern_of

MONDAY = datetime(2026, 10, 5, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
WEEKS = 3
AFTER = MONDAY + timedelta(weeks=WEEKS)
OPEN, CLOSED = 300.0, 100.0


def shop(local: datetime) -> float:
    """Open from 9 to 17 o'clock, but on Sundays."""
    return OPEN if 9 <= local.hour < 17 and local.weekday() != 6 else CLOSED


def pattern(zone: ZoneInfo = BERLIN) -> Pattern:
    times = [MONDAY + timedelta(hours=hour) for hour in range(WEEKS * 168)]
    start = np.array([time.replace(tzinfo=None) for time in times], "datetime64[us]")
    found = pattern_of(start, np.array([shop(time.astimezone(zone)) for time in times]), zone)
    assert found is not None
    return found


def test_the_rate_of_the_next_hour_is_expected_shortly_before_it() -> None:
    """On Monday, 26 October, Berlin's clock shows nine an hour later than a week before."""
    opens = datetime(2026, 10, 26, 9, tzinfo=BERLIN).timestamp()
    known = pattern()

    assert known.rate_at(opens + 5, opens - 60, CLOSED) == OPEN
    assert known.rate_at(opens - 5, opens - 70, CLOSED) == CLOSED
    assert known.until == AFTER.timestamp()


def test_a_day_that_is_twice_as_busy_goes_on_twice_as_busy_and_not_more_than_three_times() -> None:
    opens = datetime(2026, 10, 27, 9, tzinfo=BERLIN).timestamp()
    rates = [pattern().rate_at(opens + 5, opens - 60, rate) for rate in (2 * CLOSED, 9 * CLOSED, 0.0)]

    assert rates == [2 * OPEN, MOST * OPEN, OPEN / MOST]


def test_a_group_that_rests_is_woken_before_a_rise_and_not_at_the_end_of_every_hour() -> None:
    opens, noon, closes = (datetime(2026, 10, 27, hour, tzinfo=BERLIN).timestamp() for hour in (9, 12, 17))

    assert [pattern().rate_at(at + 5, at - 60, 0.0) for at in (opens, noon, closes)] == [OPEN / MOST, 0.0, 0.0]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 14 * 86_400), st.integers(1, 1800), st.floats(1, 1000))
def test_the_rate_is_that_of_plain_python(second: int, ahead: int, rate: float) -> None:
    now = AFTER.timestamp() + second
    here, there = (datetime.fromtimestamp(at, UTC).astimezone(BERLIN) for at in (now, now + ahead))
    expected = rate
    if (here.weekday(), here.hour) != (there.weekday(), there.hour):
        least = 1 / MOST if shop(there) >= MOST * shop(here) else 0.0
        expected = shop(there) * min(max(rate / shop(here), least), MOST)

    assert pattern().rate_at(now + ahead, now, rate) == pytest.approx(expected)


def test_without_enough_hours_there_is_no_pattern() -> None:
    start = np.datetime64("2026-10-05", "us") + np.arange(13 * 24) * np.timedelta64(1, "h")

    assert pattern_of(start, np.full(len(start), 5.0), BERLIN) is None
