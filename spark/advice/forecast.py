"""Pure: whether the weekly pattern of production says more about the next hour than the hour before does.

A forecast is what the pattern has for the next hour, times the last hour's rate over what it has for that one. Each
model is tried on the last week, with a pattern that was made without the day that is forecast."""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from spark.advice.demand import well_covered
from spark.advice.weekly_pattern import Hours, local_times
from spark.figures.model import Flags, Floats, Periods, Times
from spark.figures.periods import NUMPY_HOUR
from spark.rules.percentiles import percentiles_of

NUMPY_DAY = np.timedelta64(1, "D")
TRIED_DAYS = 7
FEWEST_DAYS = 14
"""So that each weekday was seen before it is forecast."""
LONGEST_DAYS = 28
"""Before the day that is forecast; what is older shows how the group once was."""
FEWEST_HOURS = 48
"""That are tried."""
MOST = 3.0
"""Times by which a forecast may differ from the pattern: a few messages at night are no flood in the morning."""
MARGIN = 0.1
"""The least skill with which a forecast is worth more than the last hour's rate."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The better one of the models, an hour ahead."""

    by_weekday: bool
    """By weekday and hour of the day; else by the hour of the day alone."""
    error: float
    """The sum of the differences to what came, over the sum of what came."""
    error_of_last_hour: float
    """The same, if the rate stays as in the hour before."""
    hours: int
    """That were forecast."""

    @property
    def skill(self) -> float:
        """The share of the last hour's error that the forecast avoids; negative: it is worse."""
        return 1 - self.error / self.error_of_last_hour if self.error_of_last_hour > 0 else 0.0

    @property
    def is_better(self) -> bool:
        return self.skill >= MARGIN


class _Tried(NamedTuple):
    came: Floats
    before: Floats
    """The rate of the hour before each."""
    forecast: Floats


def forecast_of(hours: Periods, zone: ZoneInfo) -> Forecast | None:
    """None: too few hours were seen, or nothing was produced in those that are tried."""
    covered = well_covered(hours)
    if not len(covered) or covered.start[-1] - covered.start[0] < FEWEST_DAYS * NUMPY_DAY - NUMPY_HOUR:
        return None
    local = local_times(covered.start, zone)
    of_day = np.array([at.hour for at in local], np.int64)
    of_week = of_day + 24 * np.array([at.weekday() for at in local], np.int64)
    start, rates = covered.start, covered.production_rate
    made = [_judged(_tried(start, rates, slot), by_weekday=slot is of_week) for slot in (of_day, of_week)]
    return min((each for each in made if each is not None), key=lambda each: each.error, default=None)


def _judged(tried: _Tried, *, by_weekday: bool) -> Forecast | None:
    whole = float(tried.came.sum())
    if len(tried.came) < FEWEST_HOURS or whole <= 0:
        return None
    error, of_last = (float(np.abs(said - tried.came).sum()) / whole for said in (tried.forecast, tried.before))
    return Forecast(by_weekday, error, of_last, len(tried.came))


def _tried(start: Times, rates: Floats, slot: Hours) -> _Tried:
    """Each hour of the last days that follows another one directly."""
    ends = start[-1] + NUMPY_HOUR - np.arange(TRIED_DAYS, -1, -1) * NUMPY_DAY
    parts = []
    for begin, end in pairwise(ends):
        profile = _profile(rates, slot, (start < begin) & (start >= begin - LONGEST_DAYS * NUMPY_DAY))
        at = np.flatnonzero((start >= begin) & (start < end))
        at = at[at > 0]
        at = at[start[at] - start[at - 1] == NUMPY_HOUR]
        before, usual = rates[at - 1], profile[slot]
        parts.append(_Tried(rates[at], before, _forecast(before, usual[at - 1], usual[at])))
    return _Tried(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _profile(rates: Floats, slot: Hours, is_seen: Flags) -> Floats:
    """The median rate of each slot; NaN where it was not seen."""
    seen = slot[is_seen]
    in_order = rates[is_seen][np.argsort(seen, kind="stable")]
    return percentiles_of(in_order, np.bincount(seen, minlength=int(slot.max()) + 1), 50)["p50"]


def _forecast(last: Floats, usual_then: Floats, usual_now: Floats) -> Floats:
    """The last rate where the pattern says nothing."""
    is_known = usual_then > 0
    busier = np.where(is_known, last / np.where(is_known, usual_then, 1.0), 1.0)
    return np.where(np.isnan(usual_now), last, usual_now * np.clip(busier, 1 / MOST, MOST))
