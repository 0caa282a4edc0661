"""Parquet files -> rows in the driver's memory. `pyarrow.dataset`, which could do this, imports pandas."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adapter.history_contract import SAMPLES, Column, Type
from spark.errors import Damaged, Spoilt, is_of_system
from spark.storage.protocol import File, Files, each_of
from spark.tables.columns import Ints, Rows, joined, none_of, rows_of
from spark.tables.sample_files import DAMAGED, HOUR, Sound, hour_of, micros_of
from spark.tables.sample_validation import fault_of


def samples_in(files: Files, sound: Sequence[Sound], writers: Sequence[str]) -> tuple[Rows, Ints]:
    """All rows of these files that belong to their hour, and the place of each row's writer in `writers`.

    Raises Damaged, which names every file of which that is true.
    """
    found = each_of(files, lambda each: _rows_or_reason(files, each), sound)
    reasons = {each.file.path: of for each, of in zip(sound, found, strict=True) if isinstance(of, str)}
    if reasons:
        raise Damaged(reasons)
    parts = [of for of in found if not isinstance(of, str)]
    of = [writers.index(each.writer) for each in sound]
    writer = np.repeat(np.array(of, np.int64), np.array([len(part) for part in parts], np.int64))
    return (joined(parts) if parts else none_of(SAMPLES)), writer


def table_in(files: Files, folder: str, contract: Sequence[Column]) -> Rows:
    """Rows of a table that compaction made; a column that a file does not have is unknown in its rows. Raises
    Spoilt."""
    with _told_as_spoilt(folder):
        tables = each_of(files, lambda file: _opened(files, file, contract), files.listed(folder, 0))
        parts = [rows_of(table, contract) for table in tables]
    return joined(parts) if parts else none_of(contract)


def rows_in(files: Files, folder: str) -> int:
    """By the footers of its files. Raises Spoilt."""
    with _told_as_spoilt(folder):
        return sum(_rows_of_file(files, file) for file in files.listed(folder, 0))


@contextlib.contextmanager
def _told_as_spoilt(folder: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException, KeyError) as error:  # KeyError: a text column that the file does not have
        if is_of_system(error):
            raise
        raise Spoilt(*folder.split("/", 1)) from error


def _rows_of_file(files: Files, file: File) -> int:
    with files.opened(file) as opened:
        return int(pq.read_metadata(opened).num_rows)


def _of_its_hour(rows: Rows, sound: Sound) -> Rows:
    if sound.is_of_its_hour:
        return rows
    hour = hour_of(sound.file.folder)
    assert hour is not None, "only files of an hour's folder are examined"
    start, end = (micros_of(at) for at in (hour, hour + HOUR))
    return rows.taken((rows["sampled_at"] >= start) & (rows["sampled_at"] < end))


def _rows_or_reason(files: Files, sound: Sound) -> Rows | str:
    """Of a file of samples; the reason why none of its rows can be used."""
    try:
        table = _opened(files, sound.file, SAMPLES)
    except (OSError, pa.ArrowException) as error:
        if is_of_system(error):
            raise
        return DAMAGED
    return fault_of(table) or _of_its_hour(rows_of(table, SAMPLES), sound)


def _opened(files: Files, file: File, contract: Sequence[Column]) -> pa.Table:
    texts = [column.name for column in contract if column.type is Type.TEXT]
    with pq.ParquetFile(files.source(file.path), read_dictionary=texts) as opened:
        there = set(opened.schema_arrow.names)
        return opened.read([column.name for column in contract if column.name in there])
