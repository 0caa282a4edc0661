"""The history's files: the meaning of their names, which of them are valid, and how values can be invalid."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapter.history.contract import SAMPLES, VERSION, VERSION_KEY, Column, Type
from spark.errors import is_of_system
from spark.storage.protocol import File, HistoryFiles
from spark.tables.columns import ARROW_TYPES
from spark.tables.contract import HOUR_MICROS
from spark.tables.layout import EPOCH
from spark.tables.parquet_tables import topics_of_groups
from spark.tables.topic_parts import GroupOfRows

MISPLACED = "holds rows of another hour than its folder's; they are left out"
DAMAGED = "is damaged: its footer can be read, its rows cannot"
WRITER = re.compile(r"(?P<writer>.+)-\d{8}T\d{6}[^-]*\.parquet")
LIMITS = {
    Type.TIME: (0, 250_000_000_000_000_000),
    Type.INT32: (0, 2**31 - 1),
    Type.INT64: (0, 2**53),
    Type.FLOAT32: (0.001, 366 * 86400),
}
"""The least and the largest number: microseconds (to the year 9892), partitions and members, offsets, and seconds of an
interval."""


@dataclass(frozen=True, slots=True)
class Sound:
    """A file that can be read; `is_of_its_hour`: all its rows belong where it lies."""

    file: File
    writer: str
    rows: int
    is_of_its_hour: bool
    groups: tuple[GroupOfRows, ...] = ()
    """Without those whose topics the footer does not bound."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was left out, and why, in words."""

    path: str
    reason: str


def micros_of(at: datetime) -> int:
    """Microseconds since the epoch."""
    return (at - EPOCH) // timedelta(microseconds=1)


def minute_of(at: datetime) -> int:
    """Minutes since the epoch."""
    return int(at.timestamp()) // 60


def writer_of(name: str) -> str:
    """What stands before the time of the first sample."""
    match = WRITER.fullmatch(name)
    return match["writer"] if match else name.removesuffix(".parquet")


def examined(files: HistoryFiles, file: File, hour: datetime) -> Sound | Skipped:
    """Reads the footer and nothing else. Raises OSError where the file cannot be reached."""
    if not file.name.endswith(".parquet"):
        return Skipped(file.path, "is no Parquet file by its name")
    if not file.size:
        return Skipped(file.path, "is empty")
    try:
        metadata = pq.read_metadata(files.footer_source(file))
        reason = fault_in_footer(metadata)
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_of_system(error):
            raise
        return Skipped(file.path, "is torn, or no Parquet file")
    if reason:
        return Skipped(file.path, reason)
    is_of_its_hour = _lies_within(metadata, hour)
    return Sound(file, writer_of(file.name), metadata.num_rows, is_of_its_hour, tuple(_groups_in(metadata)))


def _groups_in(metadata: pq.FileMetaData) -> Iterator[GroupOfRows]:
    for number, bounds in enumerate(topics_of_groups(metadata)):
        if bounds:
            yield GroupOfRows(*bounds, metadata.row_group(number).num_rows)


def _lies_within(metadata: pq.FileMetaData, hour: datetime) -> bool:
    """By raw microseconds: Arrow would import pandas to make times of them."""
    start, place = micros_of(hour), metadata.schema.names.index("sampled_at")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    each = [group.column(place).statistics for group in groups if group.num_rows]
    return all(
        statistic is not None
        and statistic.has_min_max
        and start <= statistic.min_raw
        and statistic.max_raw < start + HOUR_MICROS
        for statistic in each
    )


def fault_in_footer(metadata: pq.FileMetaData) -> str | None:
    """None: nothing that a footer shows; `fault_of` looks at the values."""
    version = (metadata.metadata or {}).get(VERSION_KEY.encode())
    if version is None:
        return "was not written by the adapter: it names no version of the contract"
    if not version.isdigit():
        return f"names no version of the contract that could be read: {version.decode(errors='replace')!r}"
    if int(version) > VERSION:
        return f"was written for version {int(version)} of the contract, known is {VERSION}"
    return _wrong_column(metadata)


def _wrong_column(metadata: pq.FileMetaData) -> str | None:
    schema = metadata.schema.to_arrow_schema()
    for column in SAMPLES:
        place = schema.get_field_index(column.name)
        if column.is_optional and column.name not in schema.names:
            continue
        if place < 0:
            return f"has no column {column.name}, or two of them"
        type_ = schema.field(place).type
        type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
        type_ = pa.string() if type_ == pa.large_string() else type_
        if type_ != ARROW_TYPES[column.type]:
            return f"has the column {column.name} as {type_}, not as {column.type}"
    return None


def fault_of(table: pa.Table) -> str | None:
    """What is wrong with the values of the first column that has a null where none may be, NaN, a number that no
    adapter writes, or bytes that are no text; None: nothing. About 35 ms for 2.4 million rows.

    `table`: rows with the contract's types (texts with a dictionary or without), or some of their columns.
    """
    names = set(table.column_names)
    return next(filter(None, (_fault_in(table[each.name], each) for each in SAMPLES if each.name in names)), None)


def _fault_in(values: pa.ChunkedArray, column: Column) -> str | None:
    if column.type is Type.TEXT and not all(map(_is_text, values.chunks)):
        return f"has a {column.name} that is no text"
    if not column.is_nullable and any(map(_has_null, values.chunks)):
        return f"has rows without {column.name}"
    return f"has a {column.name} that cannot be" if column.type in LIMITS and _has_beyond(values, column) else None


def _is_text(values: pa.Array) -> bool:
    try:
        (values.dictionary if pa.types.is_dictionary(values.type) else values).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _has_null(values: pa.Array) -> bool:
    if pa.types.is_dictionary(values.type) and values.dictionary.null_count:
        return bool(values.dictionary_decode().null_count)
    return bool(values.null_count)


def _has_beyond(values: pa.ChunkedArray, column: Column) -> bool:
    numbers = values.cast(pa.int64()) if column.type is Type.TIME else values
    ends = pc.min_max(numbers)
    if not ends["min"].is_valid:
        return False
    least, most = LIMITS[column.type]
    # NaN is passed over by min_max, unless there is nothing else.
    has_nan = pa.types.is_floating(numbers.type) and pc.any(pc.is_nan(numbers)).as_py()
    return bool(has_nan or ends["min"].as_py() < least or ends["max"].as_py() > most)
