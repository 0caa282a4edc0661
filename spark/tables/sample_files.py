"""The history's files: what their names tell, and which of them are sound."""

import re
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

from spark.errors import is_of_system
from spark.storage.protocol import File, Files
from spark.tables.contract import HOUR_MICROS
from spark.tables.sample_validation import fault_in_footer

MISPLACED = "holds rows of another hour than its folder's; they are left out"
DAMAGED = "is damaged: its footer can be read, its rows cannot"
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


def micros_of(at: datetime) -> int:
    """Microseconds since the epoch, of a whole second."""
    return round(at.timestamp()) * 1_000_000


def minute_of(at: datetime) -> int:
    """Minutes since the epoch."""
    return int(at.timestamp()) // 60


def writer_of(name: str) -> str:
    """What stands before the time of the first sample."""
    found = WRITER.fullmatch(name)
    return found["writer"] if found else name.removesuffix(".parquet")


def examined(files: Files, file: File, hour: datetime) -> Sound | Skipped:
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
    return Sound(file, writer_of(file.name), metadata.num_rows, _lies_within(metadata, hour))


def _lies_within(metadata: pq.FileMetaData, hour: datetime) -> bool:
    """By raw microseconds: Arrow would import pandas to make times of them."""
    start, place = micros_of(hour), metadata.schema.names.index("sampled_at")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    each = [group.column(place).statistics for group in groups if group.num_rows]
    return all(
        one is not None and one.has_min_max and start <= one.min_raw and one.max_raw < start + HOUR_MICROS
        for one in each
    )
