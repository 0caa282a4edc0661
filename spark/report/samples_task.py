"""The totals and partitions of a range as Spark tasks: each reads the groups of one slice from every hour, and none of
their rows leaves it."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adapter.history.contract import Column
from spark.errors import Unusable
from spark.rules import partition_progress
from spark.rules.lag_statistics import statistics_of
from spark.rules.partition_progress import progress_of
from spark.rules.topic_samples import COLUMNS, Names, Topics
from spark.storage.protocol import Files
from spark.tables.columns import Rows, rows_of
from spark.tables.parquet_tables import opened

SLICE_ROWS = 8_000_000
"""Samples of a slice, of whole groups. A task holds eight bytes of each, and one hour with all its columns."""
WORTHWHILE_ROWS = 250_000
"""Fewer are not split, not even to keep all cores busy: every slice opens every file."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A task."""

    files: Files
    paths: tuple[str, ...]
    """A table of each hour, in order of time: its totals or its partitions."""
    keys: tuple[Names, ...]
    """Topics of whole groups, in order."""
    thresholds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Expected:
    """A topic, and how many samples of it a range promises."""

    key: Names
    threshold: int
    samples: int


def statistics_in(task: Slice) -> pa.Table:
    """The kernel. Raises Unusable for a file that cannot be read."""
    topics = Topics(task.keys, np.array(task.thresholds, np.int64))
    return statistics_of(_hours(task, topics, COLUMNS), topics)


def progress_in(task: Slice) -> pa.Table:
    """The kernel of a slice whose paths are those of `partitions`. Raises Unusable for a file that cannot be read."""
    topics = Topics(task.keys, np.array(task.thresholds, np.int64))
    return progress_of(_hours(task, topics, partition_progress.COLUMNS), topics)


def slices_of(files: Files, paths: Sequence[str], topics: Iterable[Expected], at_once: int) -> list[Slice]:
    """`topics`: in order of their keys. `at_once`: how many tasks run side by side."""
    groups = [list(of) for _, of in itertools.groupby(topics, key=lambda topic: topic.key[:2])]
    rows = np.cumsum([sum(topic.samples for topic in of) for of in groups])
    total = int(rows[-1]) if len(rows) else 0
    number = max(math.ceil(total / SLICE_ROWS), min(at_once, math.ceil(total / WORTHWHILE_ROWS)), 1)
    place = np.minimum((rows - 1) * number // max(total, 1), number - 1)
    return [
        _slice(files, paths, [topic for _, of in together for topic in of])
        for _, together in itertools.groupby(zip(place, groups, strict=True), key=lambda each: each[0])
    ]


def _slice(files: Files, paths: Sequence[str], topics: Sequence[Expected]) -> Slice:
    return Slice(files, tuple(paths), tuple(topic.key for topic in topics), tuple(topic.threshold for topic in topics))


def _hours(task: Slice, topics: Topics, columns: Sequence[Column]) -> Iterator[Rows]:
    for path in task.paths:
        yield rows_of(_table(task.files, path, topics.groups, columns), columns)


def _table(files: Files, path: str, groups: Sequence[Names], columns: Sequence[Column]) -> pa.Table:
    """The row groups that may have one of the groups."""
    try:
        with opened(files, path, columns) as file:
            names = [column.name for column in columns]
            return file.read_row_groups(_row_groups(file.metadata, groups[0], groups[-1]), names)
    except pa.ArrowException as error:
        raise Unusable(f"{files.shown(path)} cannot be read: {str(error).splitlines()[0]}") from error


def _row_groups(metadata: pq.FileMetaData, first: Names, last: Names) -> list[int]:
    """Those that may have a row of the groups from `first` to `last`."""
    places = [metadata.schema.to_arrow_schema().get_field_index(name) for name in ("cluster", "group")]
    numbers = range(metadata.num_row_groups)
    return [number for number in numbers if _may_have(metadata.row_group(number), places, first, last)]


def _may_have(rows: pq.RowGroupMetaData, places: Sequence[int], first: Names, last: Names) -> bool:
    cluster, group = (rows.column(place).statistics for place in places)
    if cluster is None or group is None or not (cluster.has_min_max and group.has_min_max):
        return True
    if cluster.min != cluster.max:
        return bool(cluster.min <= last[0] and first[0] <= cluster.max)
    return (cluster.min, group.min) <= last and first <= (cluster.max, group.max)
