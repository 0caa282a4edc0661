"""Pure: the last seven days of a topic beside the seven days before."""

from dataclasses import dataclass

import numpy as np

from spark.figures.model import Periods
from spark.figures.periods import HOUR, between, median

WEEK = 168 * HOUR
ENOUGH_HOURS = 24
"""Hours of the earlier week without which there is nothing to compare with."""


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


def weeks_of(hours: Periods) -> tuple[Span, Span] | None:
    """The last week and the one before; None where that has hardly any hours."""
    if not len(hours):
        return None
    age = hours.start[-1] + HOUR - hours.start
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
    )
