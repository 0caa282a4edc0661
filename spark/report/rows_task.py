"""Rows of small tables as Spark tasks: each reads some files of a table, and returns the wanted rows and columns."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapter.history.arrow import ARROW_TYPES, empty_table, flags_of
from adapter.history.contract import Column
from spark.figures.periods import Wanted
from spark.storage.protocol import HistoryFiles, each_of, read_again
from spark.tables.columns import Flags, Ints, TableRows, rows_of
from spark.tables.parquet_tables import or_refused
from spark.tables.topic_parts import Names, topics_in

FILES_OF_A_TASK = 48
"""Fewer small files take longer to be handed out than to be read."""


@dataclass(frozen=True, slots=True)
class TableRead:
    """A task, or several: some files of a table, and what is wanted of them."""

    files: HistoryFiles
    paths: tuple[str, ...]
    columns: tuple[Column, ...]
    start: str
    """The column with the beginning of a row's hour or day."""
    length: timedelta
    """Of the hour or day."""
    wanted: Wanted
    topics: Mapping[int, Collection[Names]] | None = None
    """The wanted ones of each hour or day, by its start in microseconds since the epoch; None: all."""
    groups: tuple[str, ...] | None = None
    """The names of the wanted ones; None: all."""

    def tasks(self) -> "list[TableRead]":
        number = math.ceil(len(self.paths) / FILES_OF_A_TASK)
        return [replace(self, paths=self.paths[each::number]) for each in range(number)]

    def together(self, parts: Sequence[pa.Table]) -> pa.Table:
        """What the tasks returned, as one table. A column that no file has is null."""
        schema = pa.schema([pa.field(column.name, ARROW_TYPES[column.type]) for column in self.columns])
        return pa.concat_tables([empty_table(schema), *parts], promote_options="default")


def rows_in(task: TableRead) -> pa.Table:
    """The kernel. Raises Unusable for a file that cannot be read."""
    rows = task.together(each_of(task.files, lambda path: _columns_in(task, path), task.paths))
    starts = rows[task.start].cast(pa.int64()).to_numpy()
    is_wanted = task.wanted.has_each(starts, task.length)
    if task.topics is not None:
        is_wanted &= _is_of(rows_of(rows, task.columns), starts, task.topics)
    rows = rows.filter(flags_of(is_wanted))
    return rows if task.groups is None else rows.filter(pc.is_in(rows["group"], pa.array(task.groups, pa.string())))


def _is_of(rows: TableRows, starts: Ints, topics: Mapping[int, Collection[Names]]) -> Flags:
    """Whether each row's topic is one of those of its hour."""
    keys, place = topics_in(rows)
    is_of = np.zeros(len(rows), np.bool_)
    for start, wanted in topics.items():
        is_one = np.array([key in wanted for key in keys], np.bool_)
        is_of |= (starts == start) & is_one[place]
    return is_of


def _columns_in(task: TableRead, path: str) -> pa.Table:
    """Without `pyarrow.dataset`, which imports pandas."""

    def read() -> pa.Table:
        with (
            or_refused(task.files, path),
            task.files.reading(path) as source,
            pq.ParquetFile(source, pre_buffer=not isinstance(source, str)) as file,
        ):
            names = set(file.schema_arrow.names)
            return file.read([column.name for column in task.columns if column.name in names])

    return read_again(read)
