from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from spark.advice.weekly_pattern import hours_in_words, week_of
from tests.support.history.report_groups import MONDAY, hours

BERLIN = ZoneInfo("Europe/Berlin")


def test_hours_are_those_of_the_readers_clock() -> None:
    """07:00 UTC on a Monday in June is 09:00 in Berlin, and 12:00 in Kolkata (12:30, the hour in which it begins)."""
    one = hours(24, lambda hour: 100 if hour == 7 else 0, since=MONDAY)

    assert week_of(one, BERLIN).busiest(1) == (("Mon 09:00", 100.0),)
    assert week_of(one, ZoneInfo("Asia/Kolkata")).busiest(1) == (("Mon 12:00", 100.0),)


def test_a_peak_by_the_clock_stays_at_its_hour_when_the_clocks_change() -> None:
    """In Berlin the clocks went forward on 29 March 2026: 08:00 UTC before is 07:00 UTC after."""
    before_and_after = hours(
        14 * 24,
        lambda hour: 100 if (hour % 24) == (8 if hour < 7 * 24 + 1 else 7) else 0,
        since=datetime(2026, 3, 22, tzinfo=UTC),
    )
    week = week_of(before_and_after, BERLIN)

    assert set(np.flatnonzero(np.nansum(week.rates, axis=0))) == {9}
    assert week.peak_hours() == (9,)


def test_the_hour_that_a_change_of_clocks_leaves_out_has_no_data() -> None:
    day = hours(24, since=datetime(2026, 3, 28, 23, tzinfo=UTC))  # Sunday 29 March in Berlin: 02:00 is missing
    seen = week_of(day, BERLIN).hours_seen

    assert seen[6, 2] == 0
    assert seen[6, 3] == 1


def test_the_hour_that_comes_twice_is_a_mean_of_two() -> None:
    day = hours(25, lambda hour: 10.0 * hour, since=datetime(2026, 10, 24, 22, tzinfo=UTC))
    week = week_of(day, BERLIN)

    assert week.hours_seen[6, 2] == 2
    assert week.rates[6, 2] == pytest.approx((20 + 30) / 2)


def test_the_same_hours_every_day_explain_all_and_one_day_explains_nothing() -> None:
    of_the_clock = hours(7 * 24, lambda hour: float(hour % 24))
    one_day = hours(24, lambda hour: float(hour % 24))

    assert week_of(of_the_clock, BERLIN).explained == pytest.approx(1)
    assert week_of(one_day, BERLIN).explained == 0


def test_stretches_of_hours_are_told_as_one() -> None:
    assert hours_in_words((7, 8, 9, 18)) == "07:00-10:00 and 18:00-19:00"


def test_hours_that_are_not_covered_have_no_rate() -> None:
    assert np.isnan(week_of(hours(48, covered_seconds=60), BERLIN).rates).all()


def test_a_peak_hour_is_one_on_most_days() -> None:
    """Every night at 01:00 UTC, and once, on the Thursday, at 15:00, with ten times as much."""
    nightly_and_once = hours(7 * 24, lambda hour: 1000 if hour == 3 * 24 + 15 else 100 if hour % 24 == 1 else 10)

    assert week_of(nightly_and_once, BERLIN).peak_hours() == (3,)


def test_a_week_is_seven_days_wherever_its_midnight_lies() -> None:
    """From Monday 02:00 to the next Monday 02:00 in Berlin the calendar shows eight."""
    assert week_of(hours(7 * 24), BERLIN).days_seen == 7
    assert week_of(hours(7 * 24), ZoneInfo("UTC")).days_seen == 7


def test_the_hours_of_a_last_day_that_is_not_whole_make_no_row_look_like_the_first_day() -> None:
    """A week of UTC is one from Monday 02:00 to the next Monday 02:00 in Berlin's summer."""
    of = hours(168, lambda hour: 1.0 if hour < 166 else 900.0)
    week = week_of(of, ZoneInfo("Europe/Berlin"))

    assert np.isnan(week.rates[0, :2]).all()
    assert np.nanmax(week.rates) == 1
    assert np.isnan(week.rates).sum() == 2
    assert week_of(of, ZoneInfo("UTC")).rates[6, 23] == 900
