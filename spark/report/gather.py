"""A history's tables -> the groups of a report.

Spark's tasks reduce samples to figures, and `range_figures` puts hours together. The results, a few rows for each topic
and hour, become the values of `spark.figures.model`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark.advice.incidents.growth import grown
from spark.figures import formatting
from spark.figures.model import Group, Periods
from spark.figures.periods import Wanted, time_of
from spark.report import assembly, range_figures
from spark.report.assembly import Computed, expected_of, jumps_of, periods_by_key
from spark.report.group_file import Agreements
from spark.report.samples_task import LAGS, PARTITIONS
from spark.report.tables import Tables
from spark.tables.contract import NAMES
from spark.tables.topic_parts import Names

SAMPLED = np.timedelta64(31, "D")
"""The newest part of a range of which every sample is read, for percentiles, episodes and capacity."""

EARLIER = timedelta(weeks=6)
"""How much more of the production is read, from before the range, for groups whose production grows."""

Check = Callable[[], None]
"""Raises where the run is to end."""


def gathered_groups(
    tables: Tables, wanted: Wanted, agreements: Agreements, say: Callable[[str], None], check: Check
) -> tuple[Group, ...]:
    """All that a report shows of the groups that have an hour in the range."""
    hourly, daily = tables.hours_and_days(wanted)
    if agreements.only:
        names = pa.array(agreements.only, pa.string())
        hourly, daily = (table.filter(pc.is_in(table["group"], names)) for table in (hourly, daily))
    if not len(hourly):
        return ()
    check()
    hours, hours_of_topics = range_figures.hours_in(hourly), periods_by_key(hourly, "hour")
    topics = range_figures.topics_of(hours)
    say(f"reading the samples of {formatting.plural(len(topics), 'topic')}")
    starts, expected = _starts(hours_of_topics.values()), expected_of(topics, agreements)
    statistics = tables.folded(LAGS, starts, expected, agreements.zone)
    check()
    progress = tables.folded(PARTITIONS, starts, expected, agreements.zone)
    check()
    computed = Computed(
        topics=topics,
        statistics=statistics,
        progress=progress,
        groups=range_figures.hours_of_groups(hours, jumps_of(statistics)),
        shares=_shares(tables, topics),
    )
    days_of_topics = periods_by_key(daily, "day")
    return assembly.assembled_groups(computed, hours_of_topics, days_of_topics, agreements)


def with_earlier(groups: Sequence[Group], tables: Tables, since: datetime) -> tuple[Group, ...]:
    """With production from before `since`, the beginning of the range, where it grows: forecasts are tried on all the
    weeks that there are."""
    growing = {group.name for group in groups if grown(group) is not None}
    if not growing:
        return tuple(groups)
    earlier = assembly.production_by_group(tables.production(growing, Wanted(since - EARLIER, since)))
    return tuple(replace(group, earlier=earlier.get((group.cluster, group.name))) for group in groups)


def _shares(tables: Tables, topics: pa.Table) -> pa.Table:
    """The partitions of each topic in its busiest hour; only files of such hours are read."""
    busiest: dict[datetime, list[Names]] = {}
    for row in topics.select([*NAMES, "busiest_hour"]).to_pylist():
        if row["busiest_hour"] is not None:
            busiest.setdefault(row["busiest_hour"], []).append(assembly.topic_of(row))
    return tables.partitions(busiest)


def _starts(hours: Iterable[Periods]) -> list[datetime]:
    """Hours whose samples are read: of a longer range the newest, since hours and days hold the rest."""
    starts = np.unique(np.concatenate([periods.start for periods in hours]))
    starts = starts[starts > starts[-1] - SAMPLED]
    return [time_of(start) for start in starts]
