"""What the hourly tables say of the production of some groups."""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute as pc
from pyarrow import parquet

from adapter.history.files import Files
from adapter.lag.forecast import FEWEST_DAYS, LONGEST_DAYS, TRIED_DAYS, Rates, Times

HOURLY_FOLDER, HOURLY_FILE = "hourly", "hourly.parquet"
COLUMNS = ("cluster", "group", "topic", "hour", "produced", "covered_seconds", "production_rate")
LEAST_COVERED_SECONDS = 1800.0
"""Of an hour, as in the report."""
DAY_SECONDS = 86_400.0
DAYS = max(FEWEST_DAYS, LONGEST_DAYS) + TRIED_DAYS


GroupKey = tuple[str, str]
"""A cluster and a group of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """The production of a group's topics, hour by hour. Hours that the history has for none of them are left out."""

    start: Times
    """In order."""
    rates: Mapping[str, Rates]
    """Of each topic, in messages per second; NaN: not known."""

    def of(self, topics: Collection[str]) -> tuple[Times, Rates]:
        """Returns the hours in which the production of all these topics is known, and their rate in messages per
        second."""
        unknown = np.full(len(self.start), np.nan)
        rates = np.sum([self.rates.get(topic, unknown) for topic in sorted(topics)], axis=0)
        is_known = ~np.isnan(rates)
        return self.start[is_known], rates[is_known]


NO_HOURS = Hours(np.empty(0, "datetime64[s]"), {})


def hours_of(files: Files, groups: Collection[GroupKey], now: float) -> Mapping[GroupKey, Hours]:
    """Returns the hours of the last weeks of each group. Days that are damaged do not count. Raises HistoryUnwritable
    if the location cannot be read."""
    names = pa.array(sorted({group for _, group in groups}), pa.string())
    days = [_day(files, now - ago * DAY_SECONDS, names) for ago in range(DAYS, -1, -1)]
    table = pa.concat_tables([day for day in days if day is not None] or [_NOTHING])
    table = table.sort_by([(name, "ascending") for name in COLUMNS[:4]])
    # Groups of other clusters may have the same name.
    found = {key: _hours(rows) for key, rows in _parts(table, *COLUMNS[:2])}
    return {group: found.get(group, NO_HOURS) for group in groups}


_NOTHING = pa.table(
    {
        **{name: pa.array([], pa.string()) for name in COLUMNS[:3]},
        "hour": pa.array([], pa.int64()),
        **{name: pa.array([], pa.float64()) for name in COLUMNS[4:]},
    }
)


def _day(files: Files, at: float, groups: pa.Array) -> pa.Table | None:
    content = files.read(f"{HOURLY_FOLDER}/{datetime.fromtimestamp(at, UTC):date=%Y-%m-%d}/{HOURLY_FILE}")
    if content is None:
        return None
    with contextlib.suppress(pa.ArrowException, KeyError, OSError):
        table = parquet.ParquetFile(pa.BufferReader(content)).read(columns=list(COLUMNS))
        table = table.filter(pc.is_in(table["group"], groups))
        columns = {field.name: table[field.name].cast(field.type) for field in _NOTHING.schema if field.name != "hour"}
        hour = table["hour"].cast(pa.timestamp("s", tz="UTC")).cast(pa.int64())
        return pa.table({**columns, "hour": hour}).select(_NOTHING.column_names)
    return None


def _hours(rows: pa.Table) -> Hours:
    """`rows`: of one group, sorted by topic."""
    start = np.unique(rows["hour"].to_numpy())
    rates = {topic: _rates(own, start) for (topic,), own in _parts(rows, "topic")}
    return Hours(start.astype("datetime64[s]"), rates)


def _rates(rows: pa.Table, start: NDArray[np.int64]) -> Rates:
    """`rows`: of one topic."""
    hour, produced, covered, rate = (rows[name].to_numpy() for name in COLUMNS[3:])
    is_known = ~np.isnan(produced) & (covered >= LEAST_COVERED_SECONDS)
    rates = np.full(len(start), np.nan)
    rates[np.searchsorted(start, hour)] = np.where(is_known, rate, np.nan)
    return rates


def _parts(table: pa.Table, *names: str) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
    """Returns the rows of each value of these columns, by which the table is sorted."""
    codes = [table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in names]
    is_new = np.logical_or.reduce([column[1:] != column[:-1] for column in codes])
    ends = [0, *(np.flatnonzero(is_new) + 1).tolist(), len(table)] if len(table) else [0]
    for begin, end in pairwise(ends):
        yield tuple(table[name][begin].as_py() for name in names), table.slice(begin, end - begin)
