"""The tables of a history as DataFrames. Tasks read the files by pyarrow, so that every location is read in the same
way; only the wanted columns leave a task."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from adapter.arrow_arrays import empty_table
from adapter.history_contract import Column
from spark.engine.tasks import run
from spark.errors import Unusable
from spark.report.samples_task import Expected, slices_of, statistics_in
from spark.rules.lag_statistics import STATISTICS
from spark.storage.protocol import Files, each_of
from spark.tables import layout
from spark.tables.columns import ARROW_TYPES
from spark.tables.contract import DAILY, HOURLY, PARTITIONS

FILES_OF_A_TASK = 48
"""Small files; a task of fewer takes longer to start than to run."""


@dataclass(frozen=True, slots=True)
class Some:
    """A task: some files of a table, and the columns that are wanted of them."""

    files: Files
    paths: tuple[str, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Tables:
    session: SparkSession
    files: Files

    def hourly(self, may_have: Callable[[str], bool], columns: Sequence[str]) -> DataFrame:
        """Of the days' folders (`hourly/date=2026-11-20`) that may have what is wanted."""
        paths = [file.path for file in self.files.listed(layout.HOURLY, 1) if may_have(file.folder)]
        return self._frame(paths, HOURLY, columns)

    def daily(self, columns: Sequence[str]) -> DataFrame:
        return self._frame([file.path for file in self.files.listed(layout.DAILY, 0)], DAILY, columns)

    def partitions(self, hours: Iterable[datetime], columns: Sequence[str]) -> DataFrame:
        return self._frame(self._of_hours(layout.PARTITIONS, hours), PARTITIONS, columns)

    def statistics(self, hours: Iterable[datetime], topics: Iterable[Expected]) -> DataFrame:
        """STATISTICS of these topics' groups over these hours."""
        at_once = self.session.sparkContext.defaultParallelism
        tasks = slices_of(self.files, self._of_hours(layout.TOTALS, hours), topics, at_once)
        found = run(self.session, statistics_in, tasks)
        return self.session.createDataFrame(pa.concat_tables([empty_table(STATISTICS), *found]))

    def _frame(self, paths: Sequence[str], contract: Sequence[Column], columns: Sequence[str]) -> DataFrame:
        wanted = tuple(column for column in contract if column.name in columns)
        number = math.ceil(len(paths) / FILES_OF_A_TASK)
        tasks = [Some(self.files, tuple(paths[each::number]), wanted) for each in range(number)]
        schema = pa.schema([pa.field(column.name, ARROW_TYPES[column.type]) for column in wanted])
        found = pa.concat_tables([empty_table(schema), *run(self.session, rows_in, tasks)], promote_options="default")
        return self.session.createDataFrame(found)

    def _of_hours(self, table: str, hours: Iterable[datetime]) -> list[str]:
        """Files, in order of time; of some hours nothing may be left."""
        wanted = {layout.hour_table(layout.hour_name(hour), table) for hour in hours}
        return [file.path for file in self.files.listed(layout.HOURS, 2) if file.path in wanted]


def rows_in(task: Some) -> pa.Table:
    """The kernel. A column that a file does not have is null in its rows. Raises Unusable for a file that cannot be
    read."""
    names = [column.name for column in task.columns]
    parts = each_of(task.files, lambda path: _columns_of(task.files, path, names), task.paths)
    return pa.concat_tables(parts, promote_options="default")


def _columns_of(files: Files, path: str, names: Sequence[str]) -> pa.Table:
    """Without `pyarrow.dataset`, which imports pandas."""
    try:
        with pq.ParquetFile(files.source(path)) as file:
            there = set(file.schema_arrow.names)
            return file.read([name for name in names if name in there])
    except pa.ArrowException as error:
        raise Unusable(f"{files.shown(path)} cannot be read: {str(error).splitlines()[0]}") from error
