"""Pure: hours and days as columns, sorted, cut and counted; and which of them a range has."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from spark.figures.model import NUMBERS, Flags, Floats, Periods, Times
from spark.tables.columns import Ints
from spark.tables.layout import EPOCH, HOUR, start_of_day
from spark.tables.sample_files import micros_of

DAY = timedelta(days=1)
BY_DEFAULT = timedelta(days=14)
"""The weekly pattern is seen twice, and what is over is out of sight soon."""
NUMPY_HOUR = np.timedelta64(1, "h")
NO_TIMES: Times = np.empty(0, "datetime64[us]")


def periods(start: Times, **columns: Floats) -> Periods:
    """Sort by time, and fill what is not given with NaN."""
    order = np.argsort(start)
    nothing = np.full(len(start), np.nan)
    return Periods(start[order], *(np.asarray(columns.get(name, nothing), np.float64)[order] for name in NUMBERS))


def between(hours: Periods, keep: Flags) -> Periods:
    return Periods(*(getattr(hours, field.name)[keep] for field in fields(Periods)))


def joined(earlier: Periods, later: Periods) -> Periods:
    return Periods(*(np.append(getattr(earlier, it.name), getattr(later, it.name)) for it in fields(Periods)))


def last_hours(hours: Periods, number: int) -> Periods:
    """Those of the last so many hours by the clock: fewer where rows are missing."""
    return between(hours, hours.start > hours.start[-1:] - np.timedelta64(number, "h"))


def total(column: Floats) -> float:
    """NaN where nothing is known."""
    return float(np.nansum(column)) if (~np.isnan(column)).any() else np.nan


def median(column: Floats) -> float:
    """Of what is known; NaN where nothing is."""
    numbers = column[~np.isnan(column)]
    return float(np.median(numbers)) if len(numbers) else np.nan


def time_of(start: np.datetime64) -> datetime:
    return datetime.fromtimestamp(int(start.astype("datetime64[us]").astype(np.int64)) / 1e6, UTC)


def silent_between(parts: Sequence[Periods]) -> Times:
    """The hours between the first and the last of these that are in none of them."""
    if not parts:
        return np.empty(0, "datetime64[us]")
    present = np.unique(np.concatenate([part.start for part in parts]))
    whole = np.arange(present[0], present[-1] + NUMPY_HOUR, NUMPY_HOUR) if len(present) else present
    return np.setdiff1d(whole, present)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Hours that begin at `since` or later and end by `until`; None: all there are."""

    since: datetime | None = None
    until: datetime | None = None

    def by_default(self, end: datetime) -> "Wanted":
        """The last two weeks before `--to` or else before `end`, unless `--from` says otherwise."""
        last = self.until or end
        if self.since is not None or last - EPOCH < BY_DEFAULT:
            return self
        return replace(self, since=(last - BY_DEFAULT).replace(minute=0, second=0, microsecond=0))

    def has(self, hour: datetime) -> bool:
        return bool(self.has_each(np.array([micros_of(hour)]), HOUR)[0])

    def has_each(self, starts: Ints, length: timedelta) -> Flags:
        """`starts`: microseconds since the epoch, of hours or days of this length."""
        is_wanted = np.ones(len(starts), np.bool_)
        if self.since is not None:
            is_wanted &= starts >= micros_of(self.since)
        if self.until is not None:
            is_wanted &= starts + length // timedelta(microseconds=1) <= micros_of(self.until)
        return is_wanted

    def may_have(self, day: str) -> bool:
        """Whether a day, `2026-11-20`, can have a wanted hour; what is no day has none."""
        start = start_of_day(day)
        if start is None:
            return False
        return (self.since is None or self.since - start < DAY) and (self.until is None or start < self.until)
