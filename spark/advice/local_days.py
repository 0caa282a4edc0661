"""Pure: hours put together as the days of the people who read them. The daily table has days of UTC."""

from dataclasses import dataclass
from datetime import date
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.weekly_pattern import local_times
from spark.figures.model import Periods, Times
from spark.figures.periods import between, median, total


@dataclass(frozen=True, slots=True)
class LocalDay:
    """NaN: not known."""

    day: date
    lag_p50: float
    """Of the median hour."""
    lag_p95: float
    """Of the worst hour."""
    lag_max: float
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
        produced=total(hours.produced),
        consumed=total(hours.consumed),
        covered_seconds=float(np.nansum(hours.covered_seconds)),
        hours=len(hours),
        missing=missing,
        samples=float(np.nansum(hours.samples)),
        expected=float(np.nansum(hours.expected_samples)) + missing * 3600 / interval_seconds,
    )
