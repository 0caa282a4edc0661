"""A group's minutes as columns, and the task that reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapter.history.arrow import flags_of
from spark.figures.model import Flags, Floats, Times
from spark.figures.periods import Wanted
from spark.report.rows_task import or_refused
from spark.storage.protocol import HistoryFiles, each_of, read_again

COLUMNS = ("produced", "consumed", "lag", "wait_seconds", "members_min", "members_max", "partitions_with_lag", "skew")
MINUTE = timedelta(minutes=1)
NUMPY_MINUTE = np.timedelta64(1, "m")


@dataclass(frozen=True, slots=True)
class Minutes:
    """Every minute from the first to the last that has a row; NaN: not known."""

    start: Times
    """UTC."""
    produced: Floats
    """Messages."""
    consumed: Floats
    lag: Floats
    """At the end of the minute."""
    wait_seconds: Floats
    """The longest of the minute's samples."""
    members_min: Floats
    members_max: Floats
    partitions_with_lag: Floats
    skew: Floats
    """The busiest partition's share of `produced`, 0 to 1."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def is_known(self) -> Flags:
        """In which minutes both lag and wait are known."""
        known: Flags = ~(np.isnan(self.lag) | np.isnan(self.wait_seconds))
        return known


@dataclass(frozen=True, slots=True)
class MinutesRead:
    """A task: the rows of one group in some files."""

    files: HistoryFiles
    paths: tuple[str, ...]
    cluster: str
    group: str


def rows_of_group(task: MinutesRead) -> pa.Table:
    """The kernel. Raises Unusable for a file that cannot be read."""
    return pa.concat_tables(each_of(task.files, lambda path: _rows_in(task, path), task.paths))


def _rows_in(task: MinutesRead, path: str) -> pa.Table:
    """Row group after row group, of which one may have thousands of groups' minutes."""

    def read() -> pa.Table:
        with or_refused(task.files, path), task.files.reading(path) as source, pq.ParquetFile(source) as file:
            names = ["cluster", "group", "minute", *COLUMNS]
            parts = [_of_group(file.read_row_group(at, names), task) for at in range(file.num_row_groups)]
            return pa.concat_tables(parts or [_of_group(file.read(names), task)])

    return read_again(read)


def _of_group(rows: pa.Table, task: MinutesRead) -> pa.Table:
    is_wanted = pc.and_(pc.equal(rows["cluster"], task.cluster), pc.equal(rows["group"], task.group))
    return rows.filter(is_wanted).drop_columns(["cluster", "group"])


def minutes_of(tables: Sequence[pa.Table], wanted: Wanted) -> Minutes | None:
    """None: the range has no row."""
    if not tables:
        return None
    rows = pa.concat_tables(tables)
    rows = rows.filter(flags_of(wanted.has_each(rows["minute"].cast(pa.int64()).to_numpy(), MINUTE)))
    if not len(rows):
        return None
    at = rows["minute"].cast(pa.int64()).to_numpy().astype("datetime64[us]").astype("datetime64[m]")
    first, last = at.min(), at.max()
    places = ((at - first) / NUMPY_MINUTE).astype(np.int64)
    columns = {name: np.full(int((last - first) / NUMPY_MINUTE) + 1, np.nan) for name in COLUMNS}
    for name, column in columns.items():
        column[places] = rows[name].cast(pa.float64()).to_numpy()
    return Minutes(np.arange(first, last + NUMPY_MINUTE, NUMPY_MINUTE), **columns)
