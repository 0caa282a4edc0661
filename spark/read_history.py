"""The history's files: which of them are sound, and their rows as a DataFrame with the contract's schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from adapter.history_contract import SAMPLES, VERSION, VERSION_KEY, Column, Type
from spark.files import File, Files, pattern_sign

HOUR = timedelta(hours=1)
HOUR_MICROS = 3_600_000_000
DAMAGED = "is damaged: its footer can be read, its rows cannot"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SPARK_TYPES: dict[Type, T.DataType] = {
    Type.TIME: T.TimestampType(),
    Type.TEXT: T.StringType(),
    Type.INT32: T.IntegerType(),
    Type.INT64: T.LongType(),
    Type.FLOAT32: T.FloatType(),
    Type.FLOAT64: T.DoubleType(),
    Type.FLAG: T.BooleanType(),
}

ARROW_TYPES = {
    Type.TIME: (pa.timestamp("us", tz="UTC"),),
    Type.TEXT: (pa.string(), pa.large_string()),
    Type.INT32: (pa.int32(),),
    Type.INT64: (pa.int64(),),
    Type.FLOAT32: (pa.float32(),),
}

LIMITS = {
    Type.TIME: (0, 250_000_000_000_000_000),
    Type.INT32: (0, 2**31 - 1),
    Type.INT64: (0, 2**53),
    Type.FLOAT32: (0.001, 366 * 86400),
}
"""The least and the largest number: microseconds (to the year 9892), partitions and members, offsets, and seconds of an
interval."""

FOLDER = re.compile(r"samples/date=(\d{4}-\d\d-\d\d)/hour=(\d\d)")
WRITER = re.compile(r"(?P<writer>.+)-\d{8}T\d{6}[^-]*\.parquet")


@dataclass(frozen=True, slots=True)
class Sound:
    """A file that can be read; `is_of_its_hour`: all its rows belong where it lies."""

    file: File
    writer: str
    rows: int
    is_of_its_hour: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was left out, and why, in words."""

    path: str
    reason: str


def schema_of(columns: Iterable[Column]) -> T.StructType:
    """Every column nullable, as Spark reads Parquet."""
    return T.StructType([T.StructField(column.name, SPARK_TYPES[column.type]) for column in columns])


SCHEMA = schema_of(SAMPLES)


def hour_of(folder: str) -> datetime | None:
    """`samples/date=2026-11-20/hour=07` -> its start; None: no such folder, or a year that no clock shows."""
    found = FOLDER.fullmatch(folder)
    if found is None:
        return None
    try:
        hour = datetime.strptime("T".join(found.groups()), "%Y-%m-%dT%H").replace(tzinfo=UTC)
    except ValueError:
        return None
    return hour if hour >= EPOCH else None


def micros_of(at: datetime) -> int:
    """Microseconds since the epoch, of a whole second."""
    return round(at.timestamp()) * 1_000_000


def folder_of(hour: datetime) -> str:
    """`date=2026-11-20/hour=07`."""
    return f"{hour:date=%Y-%m-%d/hour=%H}"


def writer_of(name: str) -> str:
    """What stands before the time of the first sample."""
    found = WRITER.fullmatch(name)
    return found["writer"] if found else name.removesuffix(".parquet")


def examined(files: Files, file: File, hour: datetime) -> Sound | Skipped:
    """Reads the footer and nothing else."""
    if not file.name.endswith(".parquet"):
        return Skipped(file.path, "is no Parquet file by its name")
    if not file.size:
        return Skipped(file.path, "is empty")
    if sign := pattern_sign(file.name):
        return Skipped(file.path, f"has a name in which Spark takes '{sign}' for a pattern")
    try:
        with files.opened(file) as opened:
            metadata = pq.ParquetFile(opened).metadata
            reason = _fault(metadata)
    except (pa.ArrowException, OSError, ValueError):
        return Skipped(file.path, "is torn, or no Parquet file")
    if reason:
        return Skipped(file.path, reason)
    return Sound(file, writer_of(file.name), metadata.num_rows, _lies_within(metadata, hour))


def _fault(metadata: pq.FileMetaData) -> str | None:
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
        if place < 0:
            return f"has no column {column.name}, or two of them"
        found = schema.field(place).type
        found = found.value_type if pa.types.is_dictionary(found) else found
        if found not in ARROW_TYPES[column.type]:
            return f"has the column {column.name} as {found}, not as {column.type}"
        if not column.is_nullable and _nulls(metadata, column.name):
            return _without(column)
        if _is_beyond(metadata, column):
            return _impossible(column)
    return None


def _is_beyond(metadata: pq.FileMetaData, column: Column) -> bool:
    """Numbers that no adapter writes, and that would end a whole run: as far as the footer tells them."""
    if column.type not in LIMITS:
        return False
    least, most = LIMITS[column.type]
    each = [one for one in _statistics(metadata, column.name) if one is not None and one.has_min_max]
    return any(one.min_raw < least or one.max_raw > most for one in each)


def fault_of(table: pa.Table) -> str | None:
    """What `examined` looks for in the footer, in the values themselves: statistics may be absent, and leave NaN out.

    Takes rows with the contract's types (texts with a dictionary or without), also some of its columns only. Gives what
    is wrong with the first column that has a null where none may be, NaN, a number that cannot be or bytes that are no
    text; None: nothing is. About 35 ms for 2.4 million rows.
    """
    found = set(table.column_names)
    return next(filter(None, (_fault_in(table[each.name], each) for each in SAMPLES if each.name in found)), None)


def _fault_in(values: pa.ChunkedArray, column: Column) -> str | None:
    if column.type is Type.TEXT and not all(map(_is_text, values.chunks)):
        return f"has a {column.name} that is no text"
    if not column.is_nullable and any(map(_has_null, values.chunks)):
        return _without(column)
    return _impossible(column) if column.type in LIMITS and _has_beyond(values, column) else None


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


def _without(column: Column) -> str:
    return f"has rows without {column.name}"


def _impossible(column: Column) -> str:
    return f"has a {column.name} that cannot be"


def _nulls(metadata: pq.FileMetaData, column: str) -> int:
    return sum(each.null_count for each in _statistics(metadata, column) if each is not None and each.has_null_count)


def _lies_within(metadata: pq.FileMetaData, hour: datetime) -> bool:
    """By raw microseconds: Arrow would import pandas to make times of them."""
    start = micros_of(hour)
    each = _statistics(metadata, "sampled_at")
    return all(
        one is not None and one.has_min_max and start <= one.min_raw and one.max_raw < start + HOUR_MICROS
        for one in each
    )


def _statistics(metadata: pq.FileMetaData, column: str) -> list[pq.Statistics | None]:
    place = metadata.schema.to_arrow_schema().get_field_index(column)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return [group.column(place).statistics for group in groups if group.num_rows]


def samples_of(session: SparkSession, files: Files, sound: Sequence[Sound]) -> DataFrame:
    """The rows of these files, without those that belong to another hour than their folder's; `writer` beside them."""
    reader = session.read.schema(SCHEMA)
    parts = [empty(session, SCHEMA).withColumn("writer", F.lit(""))] if not sound else []
    for writer in sorted({each.writer for each in sound}):
        own = [each for each in sound if each.writer == writer]
        whole = [files.uri(each.file.path) for each in own if each.is_of_its_hour]
        found = [reader.parquet(*whole)] if whole else []
        found += [_within(reader.parquet(files.uri(each.file.path)), each) for each in own if not each.is_of_its_hour]
        parts += [part.withColumn("writer", F.lit(writer)) for part in found]
    return reduce(DataFrame.unionByName, parts)


def empty(session: SparkSession, schema: T.StructType) -> DataFrame:
    """No rows, and no job to find that out."""
    return session.range(0).select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in schema))


def _within(rows: DataFrame, sound: Sound) -> DataFrame:
    hour = hour_of(sound.file.folder)
    assert hour is not None, "only files of an hour's folder are examined"
    return rows.where((F.col("sampled_at") >= F.lit(hour)) & (F.col("sampled_at") < F.lit(hour + HOUR)))
