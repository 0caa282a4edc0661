"""Pure: whether the weekly pattern of production says more about the next hour than the hour before does, and what it
says.

A forecast is what the pattern has for the next hour, times the last hour's rate over what it has for that one. Each
model is tried on the last week, with a pattern that was made without the day that is forecast. The report shows by it
which groups have such a pattern, and `required_replicas` counts with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags, Indexes

Rates = NDArray[np.float64]
"""Messages per second."""
Times = NDArray[np.datetime64]
"""In UTC."""


class Load(NamedTuple):
    """What is produced for one group."""

    cluster: str
    group: str
    topics: frozenset[str]
    zone: str
    """The time zone whose hours and weekdays it follows."""


HOUR, DAY = np.timedelta64(1, "h"), np.timedelta64(1, "D")
TRIED_DAYS = 7
FEWEST_DAYS = 14
"""So that each weekday was seen before it is forecast."""
LONGEST_DAYS = 28
"""Before the day that is forecast; what is older shows how the group once was."""
FEWEST_HOURS = 48
"""That are tried."""
MOST = 3.0
"""Times by which a forecast may be above the pattern, because a few messages at night are no flood in the morning, and
below it before a rise by as many times, which also wakes a group that rests. Before any other hour, a group that rests
goes on resting: otherwise it would be woken at the end of every hour."""
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


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Of one group."""

    forecast: Forecast
    usual: Rates
    """The median rate of each hour of the day, or of the week from Monday on; NaN: not known."""
    zone: ZoneInfo
    until: float
    """The end of the last hour, in seconds since the epoch."""

    def rate_at(self, time: float, now: float, rate: float) -> float:
        """Returns the rate to expect at a time, by the rate that there is now; both times are since the epoch.

        Within the same hour of the clock, it is the rate that there is."""
        local = [datetime.fromtimestamp(at, UTC).astimezone(self.zone) for at in (now, time)]
        then, next_one = _slots(local, by_weekday=self.forecast.by_weekday).tolist()
        if then == next_one:
            return rate
        return float(_forecast(np.array([rate]), self.usual[[then]], self.usual[[next_one]])[0])


class _Tried(NamedTuple):
    came: Rates
    before: Rates
    """The rate of the hour before each."""
    forecast: Rates


def pattern_of(start: Times, rates: Rates, zone: ZoneInfo) -> Pattern | None:
    """Returns the pattern of some hours, in order of time; None: they are too few, or nothing was produced in those
    that are tried."""
    if not len(start) or start[-1] - start[0] < FEWEST_DAYS * DAY - HOUR:
        return None
    seconds = start.astype("datetime64[s]").astype(np.int64).tolist()
    local = [datetime.fromtimestamp(second, UTC).astimezone(zone) for second in seconds]
    slots = {by_weekday: _slots(local, by_weekday=by_weekday) for by_weekday in (False, True)}
    made = [_judged(_tried(start, rates, slot), by_weekday=by_weekday) for by_weekday, slot in slots.items()]
    best = min((each for each in made if each is not None), key=lambda each: each.error, default=None)
    if best is None:
        return None
    is_recent = start > start[-1] - LONGEST_DAYS * DAY
    usual = _profile(rates, slots[best.by_weekday], is_recent, 168 if best.by_weekday else 24)
    return Pattern(best, usual, zone, seconds[-1] + 3600.0)


def _slots(local: Sequence[datetime], *, by_weekday: bool) -> Indexes:
    return np.array([at.hour + (24 * at.weekday() if by_weekday else 0) for at in local], np.intp)


def _judged(tried: _Tried, *, by_weekday: bool) -> Forecast | None:
    whole = float(tried.came.sum())
    if len(tried.came) < FEWEST_HOURS or whole <= 0:
        return None
    error, of_last = (float(np.abs(said - tried.came).sum()) / whole for said in (tried.forecast, tried.before))
    return Forecast(by_weekday, error, of_last, len(tried.came))


def _tried(start: Times, rates: Rates, slot: Indexes) -> _Tried:
    """Each hour of the last days that follows another one directly."""
    ends = start[-1] + HOUR - np.arange(TRIED_DAYS, -1, -1) * DAY
    parts = []
    for begin, end in pairwise(ends):
        is_seen = (start < begin) & (start >= begin - LONGEST_DAYS * DAY)
        profile = _profile(rates, slot, is_seen, int(slot.max()) + 1)
        at = np.flatnonzero((start >= begin) & (start < end))
        at = at[at > 0]
        at = at[start[at] - start[at - 1] == HOUR]
        before, usual = rates[at - 1], profile[slot]
        parts.append(_Tried(rates[at], before, _forecast(before, usual[at - 1], usual[at])))
    return _Tried(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _profile(rates: Rates, slot: Indexes, is_seen: Flags, size: int) -> Rates:
    """The median rate of each slot; NaN where it was not seen."""
    seen, own = slot[is_seen], rates[is_seen]
    own = own[np.lexsort((own, seen))]
    counts = np.bincount(seen, minlength=size)
    has_any, begin = counts > 0, np.cumsum(counts) - counts
    lower, upper = begin + (counts - 1) // 2, begin + counts // 2
    medians = np.full(size, np.nan)
    medians[has_any] = (own[lower[has_any]] + own[upper[has_any]]) / 2
    return medians


def _forecast(last: Rates, usual_then: Rates, usual_now: Rates) -> Rates:
    """The last rate where the pattern says nothing. Only before a rise is there a lower bound: before any other hour, a
    group that rests goes on resting."""
    is_known = usual_then > 0
    busier = np.where(is_known, last / np.where(is_known, usual_then, 1.0), 1.0)
    least = np.where(usual_now >= MOST * usual_then, 1 / MOST, 0.0)
    return np.where(np.isnan(usual_now), last, usual_now * np.clip(busier, least, MOST))
