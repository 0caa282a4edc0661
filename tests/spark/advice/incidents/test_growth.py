"""Growth of production and how far ahead it can be told."""

from dataclasses import replace
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from spark.advice.demand import load_of
from spark.advice.finding import Finding, Severity
from spark.advice.incidents.growth import daily_peaks, growth, trend_of, week_on_week
from spark.figures.model import Periods
from spark.figures.periods import between
from tests.support.history.report_groups import group, hours, saturated, topic

UTC = ZoneInfo("UTC")
WEEKS = 14 * 24


def found(daily: float, *, exponential: bool, per_member: float = 50.0) -> Finding | None:
    """Two weeks that begin with 10 messages a second; four partitions."""

    def rate(hour: int) -> float:
        return float(10 * daily ** (hour // 24) if exponential else 10 + daily * (hour // 24))

    grown = group("billing", topic(of=hours(WEEKS, rate)), capacity=saturated(60, per_member))
    return growth(grown, load_of(grown), zone=UTC)


@pytest.mark.parametrize(("daily", "exponential"), [(1.0, True), (1.02, True), (-0.5, False), (0.2, False)])
def test_production_that_hardly_grows_or_falls_is_no_growth(daily: float, exponential: bool) -> None:  # noqa: FBT001
    assert found(daily, exponential=exponential) is None


def test_a_single_busy_day_is_no_growth() -> None:
    """It alone makes the second week have 1.3 times the messages of the first."""
    busy_day = group("billing", topic(of=hours(WEEKS, lambda hour: 30.0 if hour // 24 == 9 else 10.0)))

    assert week_on_week(busy_day.hours) == pytest.approx(9 / 7)
    assert growth(busy_day, load_of(busy_day), zone=UTC) is None


def test_a_load_of_one_day_each_week_may_grow() -> None:
    mondays = group("billing", topic(of=hours(WEEKS, lambda hour: {0: 10.0, 7: 20.0}.get(hour // 24, 0.0))))
    said = growth(mondays, load_of(mondays), zone=UTC)

    assert said is not None
    assert said.words == (
        "Production grows: 2 times that of the same hours a week before. The history has fewer than ten days on which "
        "anything was produced and most hours were seen, so no date can be given."
    )


def test_growth_says_when_members_and_partitions_run_out() -> None:
    """From 10/s, 10 % more each day: the last day has 34.5/s; 2 members do 40/s from 1.5 days later on, 4 do 80/s."""
    said = found(1.1, exponential=True, per_member=20.0)

    assert said is not None
    assert said.severity is Severity.WATCH
    assert said.words.startswith("Production grows: 1.9 times that of the same hours a week before. At this pace ")
    assert "its 2 members are enough until Tue 2026-06-16" in said.words
    assert "its 4 partitions, with a member for each, are enough until Tue 2026-06-23" in said.words
    assert said.words.endswith(
        " In the last week, a forecast made in the same way from the days before it was <\u202f0.1\u202f% off "
        "(median of 7 days)."
    )


@pytest.mark.parametrize(
    ("partitions", "members", "words"),
    [
        ([4], 1, "At this pace its only member is no longer enough and its 4 partitions, with a member for each, "),
        ([1], 1, "At this pace its only partition is no longer enough, at "),
        ([4, 2], 4, "At this pace the 4 members that can have a partition are enough until "),
    ],
)
def test_what_runs_out_is_named_by_how_many_members_can_have_a_partition(
    partitions: list[int], members: int, words: str
) -> None:
    def of(number: int) -> Periods:
        return hours(WEEKS, lambda hour: 10 * 1.1 ** (hour // 24), partitions=number, members_max=members)

    topics = [topic(str(number), of(number)) for number in partitions]
    grown = replace(group("billing", *topics, capacity=saturated(60, 20.0)), is_spread=False)
    said = growth(grown, load_of(grown), zone=UTC)

    assert said is not None
    assert words in said.words


def test_no_date_is_told_where_no_member_was_seen_to_do_anything() -> None:
    of = replace(hours(WEEKS, lambda hour: 10 * 1.1 ** (hour // 24)), consumed=np.zeros(WEEKS))
    unread = group("billing", topic(of=of))
    said = growth(unread, load_of(unread), zone=UTC)

    assert said is not None
    assert said.words.endswith(" What a member can do is not known, so no date can be given.")


def test_growth_that_partitions_bear_for_months_is_noted() -> None:
    said = found(1.05, exponential=True, per_member=5000.0)

    assert said is not None
    assert (said.severity, said.to_do) == (Severity.NOTE, "")
    assert "enough for eight weeks and more" in said.words


def test_the_trend_is_the_one_that_was_closer_in_the_past_weeks() -> None:
    days = np.arange(14.0)
    doubling, steady = trend_of(np.exp2(days)), trend_of(10 + 5 * days)

    assert doubling is not None
    assert steady is not None
    assert (doubling.is_exponential, steady.is_exponential) == (True, False)
    assert max(doubling.median_error, doubling.last_error, steady.median_error, steady.last_error) < 1e-6
    assert doubling.reaches(2.0**16) == pytest.approx(3)
    assert steady.reaches(10 + 5 * 20) == pytest.approx(7)


def test_the_errors_are_those_of_all_past_weeks_and_of_the_last_each_forecast_from_the_days_before_it() -> None:
    """Three steady weeks, and one with half as much again: only the last one was forecast wrongly."""
    stepped = np.where(np.arange(28) < 21, 10.0, 15.0)
    three_weeks, four_weeks = trend_of(stepped[:21]), trend_of(stepped)
    assert three_weeks is not None
    assert four_weeks is not None

    assert (three_weeks.weeks, four_weeks.weeks) == (2, 3)
    assert (three_weeks.median_error, four_weeks.median_error) == pytest.approx((0.0, 0.0))
    assert (three_weeks.last_error, four_weeks.last_error) == pytest.approx((0.0, 1 / 3))
    worse = trend_of(np.append(stepped, 7 * [30.0]))
    assert worse is not None
    assert worse.weeks == 4
    assert worse.median_error > 0.1


def test_the_weeks_before_the_range_count_as_well() -> None:
    """A range of ten days, whose last week can be forecast, and the five weeks before it."""

    def rate(hour: int) -> float:
        return 10 * 1.1 ** (hour // 24)

    whole = hours(45 * 24, rate)
    is_range = np.arange(len(whole)) >= 35 * 24
    ranged = group("billing", topic(of=between(whole, is_range)), capacity=saturated(60, 5000.0))
    said = growth(replace(ranged, earlier=between(whole, ~is_range)), load_of(ranged), zone=UTC)

    assert said is not None
    assert said.words.endswith(
        " In the last 6 weeks, forecasts made in the same way, each from the days before its week, were "
        "<\u202f0.1\u202f% off (median of 42 days); that of the last week was <\u202f0.1\u202f% off (median of 7)."
    )


def test_no_date_is_told_by_a_trend_that_was_wrong_last_week() -> None:
    """It doubles for a week, and stays where it is."""

    def rate(hour: int) -> float:
        return 2.0 ** min(hour // 24, 7)

    broken = group("billing", topic(of=hours(WEEKS, rate)), capacity=saturated(60, 50.0))
    said = growth(broken, load_of(broken), zone=UTC)

    assert said is not None
    assert "No date can be given: in the last week, a forecast made in the same way from " in said.words


def test_no_date_is_told_where_growth_ended_last_week_however_well_it_was_forecast_before() -> None:
    """8 % more each day for seven weeks, and a week in which nothing grows; the range is its last two weeks."""
    whole = hours(56 * 24, lambda hour: 10 * 1.08 ** min(hour // 24, 48))
    is_range = np.arange(len(whole)) >= 42 * 24
    ranged = group("billing", topic(of=between(whole, is_range)), capacity=saturated(60, 500.0))
    said = growth(replace(ranged, earlier=between(whole, ~is_range)), load_of(ranged), zone=UTC)

    assert said is not None
    assert "No date can be given: in the last 7 weeks, forecasts made in the same way, " in said.words
    assert said.words.endswith(
        "were <\u202f0.1\u202f% off (median of 49 days); that of the last week was 36\u202f% off (median of 7)."
    )
    assert "enough" not in said.words


def test_too_few_days_have_no_trend_and_too_few_hours_no_growth() -> None:
    nine = group("billing", topic(of=hours(9 * 24, lambda hour: 1.5 ** (hour // 24))))
    said = growth(nine, load_of(nine), zone=UTC)

    assert said is not None
    assert "The history has fewer than ten days" in said.words
    assert week_on_week(hours(7 * 24 + 20)) is None
    assert week_on_week(hours(WEEKS, lambda hour: hour // 168)) is None
    assert len(daily_peaks(hours(0))) == 0
