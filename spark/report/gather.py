"""A history's tables -> the groups of a report.

Rows of totals are reduced to figures in Spark's tasks, hours are put together by DataFrames (`range_figures`), and the
results, a few rows for each topic and hour, become the values of `spark.figures.model`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.figures import formatting
from spark.figures.model import NUMBERS, Group, Periods
from spark.report import assembly, range_figures
from spark.report.assembly import Found, expected_of, periods_by_key
from spark.report.tables import Tables
from spark.tables.contract import NAMES
from spark.tables.sample_files import micros_of

HOUR, DAY, MICROSECOND = timedelta(hours=1), timedelta(days=1), timedelta(microseconds=1)
SHARES = (*NAMES, "partition", "starts_at", "produced", "consumed", "lag_max")

Check = Callable[[], None]
"""Raises where the run is to end."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Hours that begin at `since` or later and end by `until`; None: all there are."""

    since: datetime | None = None
    until: datetime | None = None
    threshold: int | None = None

    def of(self, table: DataFrame, start: str, length: timedelta) -> DataFrame:
        """The rows of a table whose hour or day, which begins at `start`, is wanted."""
        if self.since is not None:
            table = table.where(F.unix_micros(start) >= micros_of(self.since))
        if self.until is not None:
            table = table.where(F.unix_micros(start) + length // MICROSECOND <= micros_of(self.until))
        return table

    def has(self, start: datetime, length: timedelta) -> bool:
        return (self.since is None or self.since <= start) and (self.until is None or self.until - start >= length)

    def may_have(self, folder: str) -> bool:
        """Whether a day's folder (`hourly/date=2026-11-20`) can hold a wanted hour; one that is no day's holds none."""
        try:
            day = datetime.strptime(folder.rpartition("=")[2], "%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError:
            return False
        return (self.since is None or self.since - day < DAY) and (self.until is None or day < self.until)


def groups_of(tables: Tables, wanted: Wanted, say: Callable[[str], None], check: Check) -> tuple[Group, ...]:
    """All that a report shows of the groups that have an hour in the range."""
    hours = wanted.of(tables.hourly(wanted.may_have, (*NAMES, "hour", *NUMBERS)), "hour", HOUR)
    days = wanted.of(tables.daily((*NAMES, "day", *NUMBERS)), "day", DAY)
    hours_of_topics = periods_by_key(hours.toArrow(), "hour")
    if not hours_of_topics:
        return ()
    check()
    say(f"reading the samples of {formatting.plural(len(hours_of_topics), 'topic')}")
    topics = range_figures.topics_of(hours, wanted.threshold)
    samples = tables.statistics(_starts(hours_of_topics.values()), expected_of(topics.toArrow()))
    check()
    found = Found(
        topics=range_figures.with_lags(topics, samples).toArrow(),
        groups=range_figures.hours_of_groups(hours, samples).toArrow(),
        capacities=samples.select(*range_figures.GROUP, "capacity.*").toArrow(),
        shares=_shares(tables, range_figures.busiest_hours(hours)).toArrow(),
    )
    days_of_topics = periods_by_key(days.toArrow(), "day")
    return assembly.groups_of(found, hours_of_topics, days_of_topics, is_given=wanted.threshold is not None)


def _shares(tables: Tables, busiest: DataFrame) -> DataFrame:
    """Only the files of hours that are some topic's busiest are read."""
    hours = busiest.select(F.unix_micros("hour").alias("hour")).distinct().toArrow()
    return range_figures.shares_of(tables.partitions(map(time_of, hours["hour"].to_pylist()), SHARES), busiest)


def _starts(hours: Iterable[Periods]) -> list[datetime]:
    starts = np.unique(np.concatenate([of.start for of in hours]))
    return [time_of(micros) for micros in starts.astype(np.int64).tolist()]


def time_of(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
