"""Forecasts of production an hour ahead, against the hour before, and against plain Python."""

import math
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.lag.forecast import MARGIN, Forecast
from spark.advice.forecast import forecast_of
from spark.figures.model import Periods
from spark.figures.periods import periods

MONDAY = datetime(2026, 10, 5, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
WEEK = 168


def hours(rates: Sequence[float], start: datetime = MONDAY, missing: Sequence[int] = ()) -> Periods:
    """One after another, but for those that are missing."""
    begin = np.datetime64(start.replace(tzinfo=None), "us") + np.arange(len(rates)) * np.timedelta64(1, "h")
    is_there = ~np.isin(np.arange(len(rates)), missing)
    produced = 3600.0 * np.asarray(rates, np.float64)
    covered = np.full(len(rates), 3600.0)
    return periods(begin[is_there], produced=produced[is_there], covered_seconds=covered[is_there])


def tried(rates: Sequence[float], zone: ZoneInfo = BERLIN, missing: Sequence[int] = ()) -> Forecast:
    forecast = forecast_of(hours(rates, missing=missing), zone)
    assert forecast is not None
    return forecast


def wave(hour: int) -> float:
    """By day and by week, in UTC."""
    return 100 + 80 * math.sin(hour / 24 * 2 * math.pi) + (60 if hour % WEEK >= 120 else 0)


def oracle(rates: Sequence[float], zone: ZoneInfo, *, by_weekday: bool) -> float:
    """The error of one model, hour by hour."""
    times = [(MONDAY + timedelta(hours=hour)).astimezone(zone) for hour in range(len(rates))]

    def slot(hour: int) -> tuple[int, int]:
        return (times[hour].weekday() if by_weekday else 0, times[hour].hour)

    missed = came = 0.0
    for hour in range(len(rates) - WEEK, len(rates)):
        begin = len(rates) - 24 * (-(-(len(rates) - hour) // 24))
        seen = range(max(0, begin - 28 * 24), begin)
        then, now = ([rates[it] for it in seen if slot(it) == slot(at)] for at in (hour - 1, hour))
        usual = statistics.median(then or [0.0])
        least = 1 / 3 if now and statistics.median(now) >= 3 * usual else 0.0
        busier = min(max(rates[hour - 1] / usual, least), 3) if usual > 0 else 1.0
        missed += abs((statistics.median(now) * busier if now else rates[hour - 1]) - rates[hour])
        came += rates[hour]
    return missed / came


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=9, max_size=9), st.integers(14 * 24, 40 * 24), st.sampled_from([0, 150]))
def test_the_error_is_that_of_plain_python(levels: list[int], count: int, quiet: int) -> None:
    """Where it is quiet, most hours have almost no messages."""
    rates = [max(0.01, wave(hour) - quiet) + levels[hour // 24 % 9] * (hour % 5) for hour in range(count)]
    forecast = tried(rates)

    assert forecast.error == pytest.approx(oracle(rates, BERLIN, by_weekday=forecast.by_weekday))
    assert forecast.error <= oracle(rates, BERLIN, by_weekday=not forecast.by_weekday) + 1e-12


def test_what_repeats_each_week_is_forecast_and_the_hour_before_is_not_it() -> None:
    forecast = tried([wave(hour) for hour in range(3 * WEEK)], ZoneInfo("UTC"))

    assert forecast.by_weekday
    assert forecast.error == pytest.approx(0, abs=1e-9)
    assert forecast.error_of_last_hour > 0.1
    assert forecast.skill == pytest.approx(1)
    assert (forecast.is_better, forecast.hours) == (True, WEEK)


def test_a_week_that_is_twice_as_busy_is_forecast_by_its_last_hour() -> None:
    forecast = tried([wave(hour) * (2 if hour >= 2 * WEEK else 1) for hour in range(3 * WEEK)], ZoneInfo("UTC"))

    assert forecast.skill > 0.8


def test_a_constant_rate_needs_no_forecast() -> None:
    forecast = tried([100.0] * 2 * WEEK)

    assert (forecast.error, forecast.error_of_last_hour, forecast.skill) == (0, 0, 0)
    assert not forecast.is_better


@pytest.mark.parametrize("seed", range(5))
def test_a_walk_without_a_pattern_is_not_forecast(seed: int) -> None:
    walk = 1000 + np.cumsum(np.random.default_rng(seed).normal(0, 10, 4 * WEEK))

    assert tried(walk.tolist()).skill < MARGIN


def test_hours_count_in_the_zone_also_where_clocks_are_set_back() -> None:
    """On 25 October. By hours of UTC, the pattern of Berlin's clock is an hour off afterwards."""
    start = datetime(2026, 10, 12, tzinfo=UTC)
    local = [(start + timedelta(hours=hour)).astimezone(BERLIN) for hour in range(3 * WEEK)]
    rates = [100.0 if at.hour == 9 else 10.0 for at in local]
    by_zone, by_utc = (forecast_of(hours(rates, start), zone) for zone in (BERLIN, ZoneInfo("UTC")))
    assert by_zone is not None
    assert by_utc is not None

    assert by_zone.error == pytest.approx(0, abs=1e-9)
    assert by_utc.error > 0.5


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 1000), st.integers(0, 100))
def test_the_unit_of_the_rates_does_not_matter(factor: float, seed: int) -> None:
    rates = np.random.default_rng(seed).uniform(1, 9, 2 * WEEK) * [wave(hour) for hour in range(2 * WEEK)]
    one, other = tried(rates.tolist()), tried((factor * rates).tolist())

    assert [other.error, other.skill] == pytest.approx([one.error, one.skill])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2 * WEEK - 8 * 24))
def test_a_single_burst_of_earlier_weeks_makes_no_pattern(burst: int) -> None:
    """With four weeks before it, a median forgets it."""
    rates = [wave(hour) for hour in range(5 * WEEK)]
    calm = tried(rates)
    rates[burst] *= 100

    assert tried(rates).error == pytest.approx(calm.error, abs=0.01)


def test_a_few_messages_in_a_quiet_night_do_not_make_a_flood_of_the_morning() -> None:
    rates = [100.0 if hour % 24 >= 8 else 0.01 for hour in range(3 * WEEK)]
    rates[3 * WEEK - 24 + 7] = 5.0
    calm, unusual = (tried(it, ZoneInfo("UTC")) for it in (rates[: 3 * WEEK - 24], rates))

    assert calm.error == pytest.approx(0, abs=1e-9), "where nothing is unusual, the morning comes as always"
    # The hour of eight: forecast as three times 100, and not as 50,000.
    assert unusual.error == pytest.approx(200 / (7 * 16 * 100), abs=0.001)


def test_hours_after_a_gap_are_not_tried() -> None:
    missing = range(3 * WEEK - 50, 3 * WEEK - 30)
    forecast = tried([wave(hour) for hour in range(3 * WEEK)], missing=missing)

    assert forecast.hours == WEEK - len(missing) - 1


@pytest.mark.parametrize("rates", [[], [1.0] * (14 * 24 - 1), [0.0] * 2 * WEEK], ids=["none", "too few", "nothing"])
def test_without_two_weeks_or_without_messages_there_is_none(rates: list[float]) -> None:
    assert forecast_of(hours(rates), BERLIN) is None
