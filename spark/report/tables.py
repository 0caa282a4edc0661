"""The tables below a location, for a report: in the driver where it can read them by itself, by Spark where not.

Totals, the only table that grows with every sample, are read in the driver only where they fit into its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from adapter.arrow_arrays import empty_table, flags_of
from adapter.history_contract import Column
from spark.errors import Unusable
from spark.pipeline.read_by_spark import schema_of
from spark.report.told_by_spark import small, told_by_spark
from spark.rules.lag_statistics import told_in_memory
from spark.rules.told import COLUMNS, Key, Told, series_of
from spark.storage.protocol import File, Files, each_of
from spark.tables.columns import ARROW_TYPES
from spark.tables.contract import DAILY, HOURLY, NAMES, PARTITIONS, TOTALS
from spark.tables.sample_files import folder_of

IN_MEMORY_ROWS = 2_000_000
"""Totals of the driver; more are Spark's. With all that is computed from it a row takes about 350 bytes."""
SHARES = (*NAMES, "partition", "produced", "consumed", "lag_max")


@dataclass(frozen=True, slots=True)
class Tables:
    """`session` is asked for only where Spark is needed; `by_spark` leaves nothing to the driver."""

    session: Callable[[], SparkSession]
    files: Files
    by_spark: bool = False
    in_memory_rows: int = IN_MEMORY_ROWS

    def hourly(self, may_have: Callable[[str], bool], columns: Sequence[str]) -> pa.Table:
        """Of the days' folders (`hourly/date=2026-11-20`) that may have what is wanted."""
        paths = [file.path for file in self.files.listed("hourly", 1) if may_have(file.folder)]
        return self._arrow(paths, HOURLY, columns)

    def daily(self, columns: Sequence[str]) -> pa.Table:
        return self._arrow([file.path for file in self.files.listed("daily", 0)], DAILY, columns)

    def told(
        self, hours: Collection[datetime], thresholds: Mapping[Key, int], rows: int, check: Callable[[], None]
    ) -> Told:
        """What the samples of these hours tell; `rows`: about as many there are."""
        paths = self._of_hours("totals", hours)
        if not paths or not thresholds:
            return Told()
        if not self.by_spark and rows <= self.in_memory_rows:
            return told_in_memory(_read(self.files, paths, TOTALS, COLUMNS), thresholds)
        return told_by_spark(self._frame(paths, TOTALS), thresholds, rows, check)

    def shares(self, hours: Mapping[Key, datetime]) -> pa.Table:
        """SHARES, of each topic's partitions in one hour."""
        paths = self._of_hours("partitions", set(hours.values()))
        micros = {key: round(hour.timestamp()) * 1_000_000 for key, hour in hours.items()}
        if not paths:
            return _nothing(PARTITIONS, SHARES)
        if not self.by_spark:
            return _in_its_hour(_read(self.files, paths, PARTITIONS, (*SHARES, "starts_at")), micros)
        rows = self._frame(paths, PARTITIONS)
        return (
            rows.join(F.broadcast(small(rows.sparkSession, micros, "wanted")), on=list(NAMES), how="inner")
            .where(F.unix_micros("starts_at") == F.col("wanted"))
            .select(*SHARES)
            .toArrow()
        )

    def _arrow(self, paths: Sequence[str], contract: Sequence[Column], columns: Sequence[str]) -> pa.Table:
        if not paths:
            return _nothing(contract, columns)
        if not self.by_spark:
            return _read(self.files, paths, contract, columns)
        return self._frame(paths, contract).select(*columns).toArrow()

    def _frame(self, paths: Sequence[str], contract: Sequence[Column]) -> DataFrame:
        uris = each_of(self.files, self.files.uri, paths)
        return self.session().read.schema(schema_of(contract)).parquet(*uris)

    def _of_hours(self, table: str, hours: Collection[datetime]) -> list[str]:
        """Files; of some hours nothing may be left."""
        folders = {f"{table}/{folder_of(hour)}" for hour in hours}
        found: list[File] = self.files.listed(table, 2) if folders else []
        return [file.path for file in found if file.folder in folders]


def _read(files: Files, paths: Sequence[str], contract: Sequence[Column], columns: Sequence[str]) -> pa.Table:
    """A column that a file does not have is null in its rows, as in Spark."""
    schema = pa.schema([pa.field(column.name, ARROW_TYPES[column.type]) for column in contract])
    wanted = pa.schema([schema.field(name) for name in columns])
    parts = each_of(files, lambda path: _columns_of(files, path, columns), paths)
    return pa.concat_tables([empty_table(wanted), *parts], promote_options="default")


def _columns_of(files: Files, path: str, columns: Sequence[str]) -> pa.Table:
    """Without `pyarrow.dataset`, which would import pandas: a second, where it is installed."""
    try:
        with pq.ParquetFile(files.source(path)) as file:
            there = set(file.schema_arrow.names)
            return file.read([name for name in columns if name in there])
    except pa.ArrowException as error:
        raise Unusable(f"{files.shown(path)} cannot be read: {str(error).splitlines()[0]}") from error


def _nothing(contract: Sequence[Column], columns: Sequence[str]) -> pa.Table:
    types = {column.name: ARROW_TYPES[column.type] for column in contract}
    return empty_table(pa.schema([pa.field(name, types[name]) for name in columns]))


def _in_its_hour(table: pa.Table, micros: Mapping[Key, int]) -> pa.Table:
    keys, place = series_of(table)
    wanted = np.array([micros.get(key, -1) for key in keys], np.int64)[place]
    starts_at = table["starts_at"].cast(pa.int64()).to_numpy()
    return table.filter(flags_of(starts_at == wanted)).select(SHARES)
