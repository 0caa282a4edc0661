"""Pure: hours put together as the days of the people who read them, since the daily table has days of UTC, and as the
last seven days beside the seven before."""

from dataclasses import dataclass
from datetime import date
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.weekly_pattern import local_times
from spark.figures.model import Periods, Times
from spark.figures.periods import NUMPY_HOUR, between, median, total

WEEK = 168 * NUMPY_HOUR
ENOUGH_HOURS = 24
"""Hours of the earlier week without which there is nothing to compare with."""


@dataclass(frozen=True, slots=True)
class LocalDay:
    """NaN: not known."""

    day: date
    lag_p50: float
    """Of the median hour."""
    lag_p95: float
    """Of the worst hour."""
    lag_max: float
    wait_p50: float
    """Of the median hour, in seconds."""
    wait_p95: float
    """Of the worst hour."""
    wait_max: float
    wait_is_bound: bool
    """Whether messages may have waited longer."""
    produced: float
    consumed: float
    covered_seconds: float
    hours: int
    """Those that have a row."""
    missing: int
    """Hours in which the history has no row of any group."""
    samples: float
    expected: float
    """Also of the hours that are missing."""


def local_days(hours: Periods, silent: Times, interval_seconds: float, zone: ZoneInfo) -> tuple[LocalDay, ...]:
    """`silent`: the hours without a row of any group."""
    of_hour = np.array([time.date() for time in local_times(hours.start, zone)])
    of_silent = [time.date() for time in local_times(silent, zone)]
    return tuple(
        _day(day, between(hours, of_hour == day), of_silent.count(day), interval_seconds) for day in np.unique(of_hour)
    )


def _day(day: date, hours: Periods, missing: int, interval_seconds: float) -> LocalDay:
    return LocalDay(
        day=day,
        lag_p50=median(hours.lag_p50),
        lag_p95=float(np.fmax.reduce(hours.lag_p95)),
        lag_max=float(np.fmax.reduce(hours.lag_max)),
        wait_p50=median(hours.wait_p50),
        wait_p95=float(np.fmax.reduce(hours.wait_p95)),
        wait_max=float(np.fmax.reduce(hours.wait_max)),
        wait_is_bound=_has_bound(hours),
        produced=total(hours.produced),
        consumed=total(hours.consumed),
        covered_seconds=float(np.nansum(hours.covered_seconds)),
        hours=len(hours),
        missing=missing,
        samples=float(np.nansum(hours.samples)),
        expected=float(np.nansum(hours.expected_samples)) + missing * 3600 / interval_seconds,
    )


@dataclass(frozen=True, slots=True)
class Span:
    """Seven days or a part of them. NaN: not known."""

    hours: int
    production_rate: float
    """The mean."""
    busiest_rate: float
    """Of an hour."""
    lag_p95: float
    """Of the median hour."""
    lag_max: float
    wait_p95: float
    """Of the median hour, in seconds."""
    wait_max: float
    wait_is_bound: bool
    """Whether messages may have waited longer."""


def weeks_of(hours: Periods) -> tuple[Span, Span] | None:
    """The last week and the one before; None where that has hardly any hours."""
    if not len(hours):
        return None
    age = hours.start[-1] + NUMPY_HOUR - hours.start
    before = between(hours, (age > WEEK) & (age <= 2 * WEEK))
    return (_span(between(hours, age <= WEEK)), _span(before)) if len(before) >= ENOUGH_HOURS else None


def _span(hours: Periods) -> Span:
    covered = float(np.nansum(hours.covered_seconds))
    return Span(
        hours=len(hours),
        production_rate=float(np.nansum(hours.produced)) / covered if covered > 0 else np.nan,
        busiest_rate=float(np.fmax.reduce(hours.production_rate)),
        lag_p95=median(hours.lag_p95),
        lag_max=float(np.fmax.reduce(hours.lag_max)),
        wait_p95=median(hours.wait_p95),
        wait_max=float(np.fmax.reduce(hours.wait_max)),
        wait_is_bound=_has_bound(hours),
    )


def _has_bound(hours: Periods) -> bool:
    return bool(np.nansum(hours.wait_bounds) > 0)
