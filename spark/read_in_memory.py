"""Local Parquet files -> rows in the driver's memory. `pyarrow.dataset`, which could do this, imports pandas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adapter.history_contract import SAMPLES, Column, Type
from spark.faults import fault_of
from spark.files import LocalFiles
from spark.problems import Damaged
from spark.read_history import DAMAGED, HOUR, Sound, hour_of, micros_of
from spark.rows import Ints, Rows, joined, none_of, rows_of


def samples_in(files: LocalFiles, sound: Sequence[Sound], writers: Sequence[str]) -> tuple[Rows, Ints]:
    """All rows of these files that belong to their hour, and the place of each row's writer in `writers`.

    Raises Damaged, which names every file of which that is true.
    """
    parts: list[Rows] = []
    reasons: dict[str, str] = {}
    for each in sound:
        table = _read(files.root / each.file.path, SAMPLES)
        reason = DAMAGED if table is None else fault_of(table)
        if table is None or reason:
            reasons[each.file.path] = reason or DAMAGED
        else:
            parts.append(_of_its_hour(rows_of(table, SAMPLES), each))
    if reasons:
        raise Damaged(reasons)
    of = [writers.index(each.writer) for each in sound]
    writer = np.repeat(np.array(of, np.int64), np.array([len(part) for part in parts], np.int64))
    return (joined(parts) if parts else none_of(SAMPLES)), writer


def table_in(paths: Iterable[Path], contract: Sequence[Column]) -> Rows:
    """Rows of a table that compaction made; a column that a file does not have is unknown in its rows."""
    parts = [rows_of(_opened(path, contract), contract) for path in paths]
    return joined(parts) if parts else none_of(contract)


def rows_in(files: LocalFiles, folder: str) -> int:
    """By the footers of its files."""
    return sum(pq.read_metadata(files.root / file.path).num_rows for file in files.listed(folder, 0))


def _of_its_hour(rows: Rows, sound: Sound) -> Rows:
    if sound.is_of_its_hour:
        return rows
    hour = hour_of(sound.file.folder)
    assert hour is not None, "only files of an hour's folder are examined"
    start, end = (micros_of(at) for at in (hour, hour + HOUR))
    return rows.taken((rows["sampled_at"] >= start) & (rows["sampled_at"] < end))


def _read(path: Path, contract: Sequence[Column]) -> pa.Table | None:
    try:
        return _opened(path, contract)
    except (OSError, pa.ArrowException):
        return None


def _opened(path: Path, contract: Sequence[Column]) -> pa.Table:
    texts = [column.name for column in contract if column.type is Type.TEXT]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        there = set(file.schema_arrow.names)
        return file.read([column.name for column in contract if column.name in there])
