from dataclasses import replace
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from spark.advice.assessment import coverage_of
from spark.advice.spans import local_days, weeks_of
from spark.figures import formatting
from spark.figures.model import Times
from spark.figures.periods import between, silent_between
from tests.support.history.report_groups import MONDAY, group, hours, together, topic

BERLIN = ZoneInfo("Europe/Berlin")
NOTHING: Times = np.empty(0, "datetime64[us]")


def test_an_hour_belongs_to_the_local_day_in_which_it_begins() -> None:
    """Midnight of Berlin is 22:00 UTC in June."""
    days = local_days(hours(48, lag=float), NOTHING, 10, BERLIN)

    assert [(each.day, each.hours) for each in days] == [
        (date(2026, 6, 1), 22),
        (date(2026, 6, 2), 24),
        (date(2026, 6, 3), 2),
    ]
    assert [each.lag_p50 for each in days] == [10.5, 33.5, 46.5]
    assert [each.lag_p95 for each in days] == [1.5 * 21, 1.5 * 45, 1.5 * 47]
    assert [each.produced for each in days] == [22 * 36_000, 24 * 36_000, 2 * 36_000]


def test_hours_that_nobody_has_count_as_expected_of_their_day_and_of_the_whole_range() -> None:
    whole = hours(24)
    of = between(whole, ~np.isin(np.arange(24), (2, 3, 4)))
    (day,) = local_days(of, silent_between([of]), 10, ZoneInfo("UTC"))

    assert (day.hours, day.missing, day.samples, day.expected) == (21, 3, 21 * 360, 24 * 360)

    coverage = coverage_of((replace(group("a", topic(of=of)), silent=silent_between([of])),))
    assert (coverage.samples, coverage.expected_samples) == (21 * 360, 24 * 360)


def test_a_day_of_which_nothing_is_known_has_no_number() -> None:
    (day,) = local_days(hours(3, lag=lambda _: np.nan, production=lambda _: np.nan), NOTHING, 10, ZoneInfo("UTC"))

    assert np.isnan([day.lag_p50, day.lag_p95, day.lag_max, day.produced, day.consumed]).all()


def test_the_last_seven_days_stand_beside_the_seven_before() -> None:
    before = hours(168, lambda hour: 10 + 10 * (hour == 5), lambda _: 100.0)
    after = hours(168, lambda _: 30, lambda _: 50.0, since=MONDAY + timedelta(days=7))
    weeks = weeks_of(together([hours(9, since=MONDAY - timedelta(days=1)), before, after]))

    assert weeks is not None
    last, earlier = weeks
    assert (last.hours, last.production_rate, last.busiest_rate, last.lag_p95, last.lag_max) == (168, 30, 30, 75, 100)
    assert (earlier.hours, earlier.busiest_rate, earlier.lag_p95, earlier.lag_max) == (168, 20, 150, 200)
    assert earlier.production_rate == pytest.approx(10 + 10 / 168)


def test_hardly_any_hours_of_an_earlier_week_are_nothing_to_compare_with() -> None:
    assert weeks_of(hours(168 + 23)) is None
    assert weeks_of(hours(168 + 24)) is not None
    assert weeks_of(hours(0)) is None


def test_what_a_week_does_not_know_is_unknown() -> None:
    of = hours(336, covered_seconds=0)
    of.lag_p95[:] = of.lag_max[:] = of.production_rate_max[:] = np.nan
    weeks = weeks_of(of)

    assert weeks is not None
    assert np.isnan([weeks[0].production_rate, weeks[0].busiest_rate, weeks[0].lag_p95, weeks[0].lag_max]).all()


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        (3, 2, "+50\u202f%"),
        (1, 2, "-50\u202f%"),
        (130, 1, "+12\u202f900\u202f%"),
        (1000, 1001, "<\u202f1\u202f%"),
        (2, 2, "none"),
        (0, 0, "none"),
        (1, 0, "from 0"),
        (np.nan, 1, "unknown"),
    ],
)
def test_a_change_is_in_per_cent_of_the_earlier_week(new: float, old: float, said: str) -> None:
    assert formatting.change(new, old) == said
