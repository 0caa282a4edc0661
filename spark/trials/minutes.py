"""Groups' minutes as columns, and the task that reads them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pyarrow as pa

from adapter.history.arrow import flags_of
from spark.figures.model import Flags, Floats, Times
from spark.figures.periods import Wanted
from spark.storage.protocol import HistoryFiles, each_of, read_again
from spark.tables.columns import Ints
from spark.tables.contract import MINUTES, NAMES
from spark.tables.parquet_tables import groups_with, opened, or_refused
from spark.tables.topic_parts import Names

GROUP = NAMES[:2]
COLUMNS = ("produced", "lag", "wait_seconds", "members_min", "members_max", "partitions_with_lag")
MINUTE = timedelta(minutes=1)
NUMPY_MINUTE = np.timedelta64(1, "m")


@dataclass(frozen=True, slots=True)
class Minutes:
    """Every minute from the first to the last that has a row; NaN: not known."""

    start: Times
    """UTC."""
    produced: Floats
    """Messages."""
    lag: Floats
    """At the end of the minute."""
    wait_seconds: Floats
    """The longest of the minute's samples."""
    members_min: Floats
    members_max: Floats
    partitions_with_lag: Floats
    skew: Floats
    """The busiest partition's share of what was produced in the hour, 0 to 1. Within a minute, chance decides which
    partition is busiest."""
    pace: Floats | None = None
    """What a member can do, as a share of the capacity to count with; None: it is the same at all times."""
    weights: Floats | None = None
    """How much each partition gets, compared with one another; None: all but the busiest get the same."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def is_known(self) -> Flags:
        """In which minutes both lag and wait are known."""
        known: Flags = ~(np.isnan(self.lag) | np.isnan(self.wait_seconds))
        return known


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What other tables know of a group, and minutes do not. Columns are as those of minutes."""

    hour: Times
    """Beginnings, in order, of the rows of `skew` and `pace`."""
    skew: Floats
    pace: Floats | None = None
    weights: Floats | None = None

    def at(self, column: Floats, minutes: Times) -> Floats:
        """NaN where nothing is known of the hour."""
        hours, wanted = (times.astype("datetime64[h]") for times in (self.hour, minutes))
        if not len(hours):
            return np.full(len(minutes), np.nan)
        places = np.minimum(np.searchsorted(hours, wanted), len(hours) - 1)
        return np.where(hours[places] == wanted, column[places], np.nan)


@dataclass(frozen=True, slots=True)
class MinutesRead:
    """A task: the rows of some groups in some files."""

    files: HistoryFiles
    paths: tuple[str, ...]
    groups: tuple[Names, ...]
    """Cluster and name of each, in order."""


def rows_of_groups(task: MinutesRead) -> pa.Table:
    """The kernel. Raises Unusable for a file that cannot be read."""
    tables = each_of(task.files, lambda path: _rows_in(task, path), task.paths)
    return pa.concat_tables(tables)


def by_group(rows: pa.Table, groups: Sequence[Names]) -> Iterator[pa.Table]:
    """Yields the rows of each group."""
    place = _places(rows, groups)
    for number in range(len(groups)):
        yield rows.filter(flags_of(place == number))


def _rows_in(task: MinutesRead, path: str) -> pa.Table:
    """Row group after row group, of which one may have thousands of groups' minutes."""
    first, last = task.groups[0], task.groups[-1]

    def read() -> pa.Table:
        with or_refused(task.files, path), opened(task.files, path, MINUTES) as file:
            names = [*GROUP, "minute", *COLUMNS]
            numbers = groups_with(file.metadata, lambda least, most: least <= last and first <= most, GROUP)
            parts = [_of_groups(file.read_row_group(at, names), task.groups) for at in numbers]
            return pa.concat_tables(parts or [_of_groups(file.read_row_groups([], names), task.groups)])

    return read_again(read)


def _of_groups(rows: pa.Table, groups: Sequence[Names]) -> pa.Table:
    return rows.filter(flags_of(_places(rows, groups) >= 0))


def _places(rows: pa.Table, groups: Sequence[Names]) -> Ints:
    """The place of each row's group among `groups`; -1: it is none of them."""
    clusters, names = (rows[column].combine_chunks().dictionary_encode() for column in GROUP)
    place = np.full((max(1, len(clusters.dictionary)), max(1, len(names.dictionary))), -1, np.int64)
    of_cluster, of_name = (
        {text: code for code, text in enumerate(codes.dictionary.to_pylist())} for codes in (clusters, names)
    )
    for number, (cluster, name) in enumerate(groups):
        if cluster in of_cluster and name in of_name:
            place[of_cluster[cluster], of_name[name]] = number
    found: Ints = place[clusters.indices.to_numpy(), names.indices.to_numpy()]
    return found


def minutes_of(tables: Sequence[pa.Table], wanted: Wanted, shape: Shape) -> Minutes | None:
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
    every = np.arange(first, last + NUMPY_MINUTE, NUMPY_MINUTE)
    columns["produced"] = _spread_over_gaps(columns["produced"])
    pace = None if shape.pace is None else np.nan_to_num(shape.at(shape.pace, every), nan=1.0)
    return Minutes(every, **columns, skew=shape.at(shape.skew, every), pace=pace, weights=shape.weights)


def _spread_over_gaps(produced: Floats) -> Floats:
    """The first known minute after a gap has what was produced since the last one before it."""
    known = np.flatnonzero(~np.isnan(produced))
    if not len(known):
        return produced
    minutes = np.diff(known, prepend=known[0] - 1)
    spread = produced.copy()
    spread[known[0] : known[-1] + 1] = np.repeat(produced[known] / minutes, minutes)
    return spread
