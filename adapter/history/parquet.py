"""Rows of the history -> the bytes of a Parquet file, as the contract defines it."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from adapter.history.arrow import ARROW_TYPES, array_of, flags_of, texts_of
from adapter.history.clock_mark import ClockMark
from adapter.history.contract import CLOCK_KEY, SAMPLES, VERSION, VERSION_KEY, Column, Type
from adapter.history.rows import NAMES, Numbers, Rows

TYPES = {**ARROW_TYPES, Type.TEXT: pa.dictionary(pa.int32(), pa.string())}
SCHEMA = pa.schema([pa.field(column.name, TYPES[column.type], nullable=column.is_nullable) for column in SAMPLES])
# In a file that is sorted by series, offsets change little from row to row. Columns that repeat are run-length encoded
# through a dictionary.
ENCODINGS = dict.fromkeys(("received_at", "committed", "log_end", "log_start", "last_commit"), "DELTA_BINARY_PACKED")
REPEATING = [*NAMES, "sampled_at", "interval_seconds", "partition", "members"]

ROW_GROUP = 65_536
"""At most. Rows are sorted by topic, so readers of some topics can skip whole row groups by their statistics."""
TOPIC = ("cluster", "group", "topic")


def encoded(rows: Rows, mark: ClockMark | None = None) -> pa.Buffer:
    """Returns a whole file, at most about 8 bytes per row; `mark` is that of the clocks of its samples."""
    sink = pa.BufferOutputStream()
    # Without Arrow's own schema beside that of Parquet, so that all readers use the same one.
    with parquet.ParquetWriter(
        sink, SCHEMA, compression="zstd", use_dictionary=REPEATING, column_encoding=ENCODINGS, store_schema=False
    ) as writer:
        for group in row_groups(rows):
            writer.write_table(table_of(rows.chosen(group)))
        clock = {} if mark is None else {CLOCK_KEY: mark.model_dump_json()}
        writer.add_key_value_metadata({VERSION_KEY: str(VERSION), **clock})
    return sink.getvalue()


def row_groups(rows: Rows) -> Iterator[slice]:
    """A topic is in one group, unless it has more rows than a group: who reads some topics reads no other group."""
    codes = [rows.columns[name] for name in TOPIC]
    is_begin = np.logical_or.reduce([code[1:] != code[:-1] for code in codes])
    ends = np.append(np.flatnonzero(is_begin) + 1, len(rows))
    begin = 0
    while begin < len(rows):
        fitting = ends[: np.searchsorted(ends, begin + ROW_GROUP, side="right")]
        end = int(fitting[-1]) if len(fitting) and fitting[-1] > begin else min(begin + ROW_GROUP, len(rows))
        yield slice(begin, end)
        begin = end


def table_of(rows: Rows) -> pa.Table:
    arrays = [_array(column, rows.columns[column.name], rows) for column in SAMPLES]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _array(column: Column, values: Numbers, rows: Rows) -> pa.Array:
    if column.type is Type.FLAG:
        return flags_of(values)
    if column.type is not Type.TEXT:
        return array_of(TYPES[column.type], values, is_nullable=column.is_nullable)
    names, used = _used(rows.names[column.name], values.astype(np.int32, copy=False))
    codes = array_of(pa.int32(), used, is_nullable=column.is_nullable)
    return pa.DictionaryArray.from_arrays(codes, texts_of(names))


def _used(names: Sequence[str], codes: NDArray[np.int32]) -> tuple[Sequence[str], NDArray[np.int32]]:
    """Returns the names that occur, because pyarrow would write all of them into the dictionary of each row group."""
    occurs = np.zeros(len(names) + 1, dtype=bool)
    occurs[codes] = True
    occurs[len(names)] = False  # where the code of null, -1, refers to
    places = np.where(occurs, np.cumsum(occurs) - 1, -1).astype(np.int32)
    return [names[place] for place in np.flatnonzero(occurs).tolist()], places[codes]
