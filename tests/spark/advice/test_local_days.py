from dataclasses import replace
from datetime import date
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.assessment import coverage_of
from spark.advice.local_days import local_days
from spark.figures.model import Times
from spark.figures.periods import between, silent_between
from tests.support.history.report_groups import group, hours, topic

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
    assert (coverage.samples, coverage.expected) == (21 * 360, 24 * 360)


def test_a_day_of_which_nothing_is_known_has_no_number() -> None:
    (day,) = local_days(hours(3, lag=lambda _: np.nan, production=lambda _: np.nan), NOTHING, 10, ZoneInfo("UTC"))

    assert np.isnan([day.lag_p50, day.lag_p95, day.lag_max, day.produced, day.consumed]).all()
