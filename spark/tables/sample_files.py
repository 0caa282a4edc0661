"""The history's files of samples as tasks find them: which of them are sound, and where their rows belong."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from adapter.history.reading.validity import fault_in_footer, writer_of
from spark.errors import is_of_system
from spark.storage.protocol import File, HistoryFiles
from spark.tables.contract import HOUR_MICROS
from spark.tables.layout import EPOCH
from spark.tables.parquet_tables import topics_of_groups
from spark.tables.topic_parts import GroupOfRows

MISPLACED = "holds rows of another hour than its folder's; they are left out"
DAMAGED = "is damaged: its footer can be read, its rows cannot"


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
