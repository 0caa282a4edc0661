"""What the hourly tables say of the production of some groups."""

import contextlib
from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import parquet

from adapter.history.files import Files
from adapter.lag.forecast import FEWEST_DAYS, LONGEST_DAYS, TRIED_DAYS, Load, Rates, Times

HOURLY_FOLDER, HOURLY_FILE = "hourly", "hourly.parquet"
COLUMNS = ("cluster", "group", "topic", "hour", "produced", "covered_seconds", "production_rate")
LEAST_COVERED_SECONDS = 1800.0
"""Of an hour, as in the report."""
DAY_SECONDS = 86_400.0
DAYS = max(FEWEST_DAYS, LONGEST_DAYS) + TRIED_DAYS


def hours_of(files: Files, loads: Collection[Load], now: float) -> Mapping[Load, tuple[Times, Rates]]:
    """Returns the hours of the last weeks in which the production of every topic is known, and its rate in messages per
    second. Days that are damaged do not count. Raises HistoryUnwritable if the location cannot be read."""
    groups = pa.array(sorted({load.group for load in loads}), pa.string())
    days = [_day(files, now - ago * DAY_SECONDS, groups) for ago in range(DAYS, -1, -1)]
    table = pa.concat_tables([day for day in days if day is not None] or [_NOTHING])
    return {load: _hours(table, load) for load in loads}


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


def _hours(table: pa.Table, load: Load) -> tuple[Times, Rates]:
    is_own = pc.and_(pc.equal(table["cluster"], load.cluster), pc.equal(table["group"], load.group))
    own = table.filter(pc.and_(is_own, pc.is_in(table["topic"], pa.array(sorted(load.topics), pa.string()))))
    start, place = np.unique(np.array(own["hour"].to_pylist(), np.int64), return_inverse=True)
    numbers = (np.array(own[name].to_pylist(), np.float64) for name in COLUMNS[4:])
    produced, covered, rate = numbers
    is_known = ~np.isnan(produced) & (covered >= LEAST_COVERED_SECONDS)
    rates = np.bincount(place, np.where(is_known, rate, np.nan), minlength=len(start))
    known = ~np.isnan(rates)
    return start[known].astype("datetime64[s]"), rates[known]
