"""The range that a report is about."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from spark.tables.columns import Flags, Ints
from spark.tables.layout import EPOCH, HOUR, start_of_day
from spark.tables.sample_files import micros_of

DAY = timedelta(days=1)
BY_DEFAULT = timedelta(days=14)
"""The weekly pattern is seen twice, and what is over is out of sight soon."""


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
