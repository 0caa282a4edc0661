"""A history's tables -> the groups of a report.

Spark's tasks reduce samples to figures, and DataFrames (`range_figures`) put hours together. The results,
a few rows for each topic and hour, become the values of `spark.figures.model`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

import numpy as np
import pyarrow as pa

from spark.figures import formatting
from spark.figures.model import Group, Periods
from spark.report import assembly, range_figures
from spark.report.assembly import Found, expected_of, jumps_of, periods_by_key
from spark.report.tables import Tables
from spark.report.wanted import EPOCH, MICROSECOND, Wanted

Check = Callable[[], None]
"""Raises where the run is to end."""


def groups_of(tables: Tables, wanted: Wanted, say: Callable[[str], None], check: Check) -> tuple[Group, ...]:
    """All that a report shows of the groups that have an hour in the range."""
    hourly, daily = tables.hours_and_days(wanted)
    if not len(hourly):
        return ()
    check()
    hours, hours_of_topics = tables.frame(hourly), periods_by_key(hourly, "hour")
    topics = range_figures.topics_of(hours, wanted.threshold).toArrow()
    check()
    say(f"reading the samples of {formatting.plural(len(topics), 'topic')}")
    statistics = tables.statistics(_starts(hours_of_topics.values()), expected_of(topics))
    check()
    found = Found(
        topics=topics,
        statistics=statistics,
        groups=range_figures.hours_of_groups(hours, tables.frame(jumps_of(statistics))).toArrow(),
        shares=_shares(tables, topics),
    )
    days_of_topics = periods_by_key(daily, "day")
    return assembly.groups_of(found, hours_of_topics, days_of_topics, is_given=wanted.threshold is not None)


def _shares(tables: Tables, topics: pa.Table) -> pa.Table:
    """Only the files of hours that are some topic's busiest are read."""
    hours = {hour for hour in topics["busiest_hour"].to_pylist() if hour is not None}
    return range_figures.shares_of(tables.frame(tables.partitions(hours)), tables.frame(topics)).toArrow()


def _starts(hours: Iterable[Periods]) -> list[datetime]:
    starts = np.unique(np.concatenate([of.start for of in hours]))
    return [EPOCH + micros * MICROSECOND for micros in starts.astype(np.int64).tolist()]
