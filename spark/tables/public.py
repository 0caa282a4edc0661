"""The tables that anyone may read: where their files lie, what a path says of the rows in it, how a file is read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapter.history.arrow import ARROW_TYPES
from adapter.history.contract import SAMPLES, Column
from spark.errors import Unusable, is_of_system
from spark.storage.protocol import File, HistoryFiles
from spark.tables import contract, layout
from spark.tables.contract import NAMES
from spark.tables.parquet_tables import opened
from spark.tables.selection import Condition, Range, may_have_rows, selected

DAY = timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)
DATE, HOUR = "date", "hour"
"""What the folders add to a table's columns, as readers of Hive's layout have it."""
BATCH_ROWS = 65_536
SHARE_BYTES = 16 << 20
"""What a task reads, more or less. A day of ten thousand partitions has 270 MB of deltas."""
OPENING_BYTES = 1 << 20
"""Opening a file takes as long as reading so much of one."""


@dataclass(frozen=True, slots=True)
class PublicTable:
    name: str
    columns: tuple[Column, ...]
    root: str
    depth: int
    """Folders between the root and the files."""
    start_of: Callable[[str], datetime | None]
    """From a file's path: the start of its hour or day."""
    span: timedelta
    time: str = ""
    """The column whose values lie within that hour or day; empty: nothing promises it."""

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Of all columns, with those of the folders at the end."""
        return {column.name: ARROW_TYPES[column.type] for column in self.columns} | self.folder_types

    @property
    def folder_types(self) -> dict[str, pa.DataType]:
        return {DATE: pa.date32(), **({HOUR: pa.int32()} if self.span == layout.HOUR else {})}

    def files_in(self, files: HistoryFiles, conditions: Sequence[Condition]) -> list[File]:
        """Those that may have wanted rows, in order of time."""
        return [
            file
            for file in files.listed(self.root, self.depth)
            if self._has(file) and may_have_rows(conditions, self._bounds(file.path))
        ]

    def of_folder(self, path: str) -> dict[str, Any]:
        """The values of DATE and HOUR."""
        start = self.start_of(path)
        assert start is not None, "only files of an hour or a day are read"
        return {DATE: start.date(), **({HOUR: start.hour} if self.span == layout.HOUR else {})}

    def _has(self, file: File) -> bool:
        is_named = self.root != layout.HOURS or layout.is_of_table(file.name, self.name)
        return is_named and file.name.endswith(".parquet") and self.start_of(file.path) is not None

    def _bounds(self, path: str) -> dict[str, Range]:
        bounds = {name: (value, value) for name, value in self.of_folder(path).items()}
        start = self.start_of(path)
        return bounds | ({self.time: (start, start + self.span - MICROSECOND)} if self.time and start else {})


def _of_hour(path: str) -> datetime | None:
    return layout.start_of(layout.hour_of(path))


def _of_folder_s_day(path: str) -> datetime | None:
    return layout.start_of_day(layout.day_of(path.split("/")[1]))


def _of_file_s_day(path: str) -> datetime | None:
    return layout.start_of_day(path.rpartition("/")[2].removesuffix(".parquet"))


PUBLIC = {
    table.name: table
    for table in (
        PublicTable("samples", SAMPLES, layout.SAMPLES, 2, _of_hour, layout.HOUR),
        PublicTable(layout.DELTAS, contract.DELTAS, layout.HOURS, 2, _of_hour, layout.HOUR, "sampled_at"),
        PublicTable(layout.TOTALS, contract.TOTALS, layout.HOURS, 2, _of_hour, layout.HOUR, "sampled_at"),
        PublicTable(layout.PARTITIONS, contract.PARTITIONS, layout.HOURS, 2, _of_hour, layout.HOUR, "starts_at"),
        PublicTable(layout.HOURLY, contract.HOURLY, layout.HOURLY, 1, _of_folder_s_day, DAY, "hour"),
        PublicTable(layout.DAILY, contract.DAILY, layout.DAILY, 0, _of_file_s_day, DAY, "day"),
        PublicTable(layout.MINUTES, contract.MINUTES, layout.MINUTES, 0, _of_file_s_day, DAY, "minute"),
    )
}


@dataclass(frozen=True, slots=True)
class Piece:
    """Of a file: every `of`-th group of its rows, beginning with one of the first."""

    path: str
    first: int = 0
    of: int = 1


def shares_of(files: Sequence[File]) -> list[tuple[Piece, ...]]:
    """What is read by each task: neighbouring files, or pieces of a large one."""
    shares: list[list[Piece]] = []
    filled = SHARE_BYTES
    for file in files:
        of = max(1, round(file.size / SHARE_BYTES))
        size = file.size // of + OPENING_BYTES
        for first in range(of):
            if filled + size > SHARE_BYTES:
                shares.append([])
                filled = 0
            shares[-1].append(Piece(file.path, first, of))
            filled += size
    return [tuple(share) for share in shares]


def batches_of(
    files: HistoryFiles, table: PublicTable, piece: Piece, schema: pa.Schema, conditions: Sequence[Condition]
) -> Iterator[pa.RecordBatch]:
    """Rows with these columns of the table. A column that the file lacks is null. Groups of rows that the conditions
    rule out are not read. Raises Unusable where the file is damaged, OSError where it cannot be reached."""
    try:
        with opened(files, piece.path, table.columns) as file:
            names = [name for name in schema.names if name in file.schema_arrow.names]
            of_folder = table.of_folder(piece.path)
            for batch in file.iter_batches(BATCH_ROWS, row_groups=_groups(file, piece, conditions), columns=names):
                yield selected(_as(schema, batch, of_folder), conditions)
    except (pa.ArrowException, OSError) as error:
        if is_of_system(error):
            raise
        raise Unusable(f"{files.shown(piece.path)} cannot be read: {str(error).splitlines()[0]}") from error


def _groups(file: pq.ParquetFile, piece: Piece, conditions: Sequence[Condition]) -> list[int]:
    metadata = file.metadata
    places = {name: metadata.schema.names.index(name) for name in NAMES if name in metadata.schema.names}
    groups = []
    for number in range(piece.first, metadata.num_row_groups, piece.of):
        of_column = {name: metadata.row_group(number).column(place).statistics for name, place in places.items()}
        bounds = {name: (it.min, it.max) for name, it in of_column.items() if it is not None and it.has_min_max}
        if may_have_rows(conditions, bounds):
            groups.append(number)
    return groups


def _as(schema: pa.Schema, batch: pa.RecordBatch, of_folder: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([_column(field, batch, of_folder) for field in schema], schema=schema)


def _column(field: pa.Field, batch: pa.RecordBatch, of_folder: dict[str, Any]) -> pa.Array:
    if field.name in batch.schema.names:
        return batch.column(field.name).cast(field.type)
    if field.name in of_folder:
        return pa.repeat(pa.scalar(of_folder[field.name], field.type), batch.num_rows)
    return pa.nulls(batch.num_rows, field.type)
