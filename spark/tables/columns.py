"""TableRows of a table as numpy columns: what is computed with where Spark is not needed.

Numbers are negative, or NaN, where they are not known: offsets, times and counts never are. Times are microseconds
since the epoch. A text is a place in a sorted list of texts, negative where there is none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapter.history.arrow import ARROW_TYPES, array_of, codes_in, flags_of, numbers_in, places_in
from adapter.history.contract import Column, Type

Values = NDArray[Any]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

UNKNOWN, NOWHERE = -1, -2
NO_TEXTS = pa.nulls(0, pa.string())

NUMPY_TYPES: dict[Type, type[np.generic]] = {
    Type.TIME: np.int64,
    Type.TEXT: np.int32,
    Type.INT32: np.int32,
    Type.INT64: np.int64,
    Type.FLOAT32: np.float32,
    Type.FLOAT64: np.float64,
    Type.FLAG: np.bool_,
}


@dataclass(frozen=True, slots=True, eq=False)
class TableRows:
    """Columns of one length by their names; of text columns also their texts, sorted."""

    columns: Mapping[str, Values]
    texts: Mapping[str, pa.Array]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Values:
        return self.columns[name]

    def taken(self, rows: Values | slice) -> "TableRows":
        """`rows`: flags, or places in the order that is wanted; of a slice, a view."""
        return TableRows({name: column[rows] for name, column in self.columns.items()}, self.texts)

    def extended(self, columns: Mapping[str, Values]) -> "TableRows":
        """With further columns, or others in the place of its own."""
        return TableRows({**self.columns, **columns}, self.texts)

    def with_text(self, name: str, codes: Values, texts: pa.Array) -> "TableRows":
        """With a further column of texts, which are sorted."""
        return TableRows({**self.columns, name: codes.astype(np.int32)}, {**self.texts, name: texts})

    def only(self, names: Iterable[str]) -> "TableRows":
        kept = tuple(names)
        return TableRows(
            {name: self.columns[name] for name in kept}, {n: self.texts[n] for n in kept if n in self.texts}
        )

    def code(self, column: str, text: str) -> int:
        """Of a text; one that no row has where it does not occur."""
        texts = self.texts[column].to_pylist()
        return texts.index(text) if text in texts else NOWHERE


def rows_of(table: pa.Table, contract: Sequence[Column]) -> TableRows:
    """The contract's columns of a table; those that it lacks are unknown in every row."""
    kept = [column for column in contract if column.name in table.column_names]
    missing = [column for column in contract if column.name not in table.column_names]
    texts, columns = {}, {}
    for column in kept:
        values = table[column.name].combine_chunks()
        if column.type is Type.TEXT:
            columns[column.name], texts[column.name] = codes_in(values)
        else:
            columns[column.name] = numbers_in(values.cast(ARROW_TYPES[column.type]), NUMPY_TYPES[column.type])
    for column in missing:
        columns[column.name] = unknown(column.type, table.num_rows)
        if column.type is Type.TEXT:
            texts[column.name] = NO_TEXTS
    return TableRows({column.name: columns[column.name] for column in contract}, texts)


def unknown(type_: Type, rows: int) -> Values:
    """A column of which nothing is known: no flag is set, numbers are negative or NaN."""
    nothing = {Type.FLAG: False, Type.FLOAT32: np.nan, Type.FLOAT64: np.nan}.get(type_, UNKNOWN)
    return np.full(rows, nothing, NUMPY_TYPES[type_])


def none_of(contract: Sequence[Column]) -> TableRows:
    """No rows."""
    texts = {column.name: NO_TEXTS for column in contract if column.type is Type.TEXT}
    return TableRows({column.name: np.empty(0, NUMPY_TYPES[column.type]) for column in contract}, texts)


def table_of(rows: TableRows, contract: Sequence[Column]) -> pa.Table:
    """Texts as dictionaries."""
    arrays = [_array(rows, column) for column in contract]
    return pa.Table.from_arrays(arrays, names=[column.name for column in contract])


def joined(parts: Sequence[TableRows]) -> TableRows:
    """One after another; all have the same columns."""
    if len(parts) == 1:
        return parts[0]
    aligned = aligned_texts(parts)
    names = list(aligned[0].columns)
    return TableRows({name: np.concatenate([part[name] for part in aligned]) for name in names}, aligned[0].texts)


def aligned_texts(parts: Sequence[TableRows]) -> list[TableRows]:
    """The same rows with the same texts in every part, for the text columns that all parts have."""
    shared = [name for name in parts[0].texts if all(name in part.texts for part in parts)]
    texts = {name: _sorted_union([part.texts[name] for part in parts]) for name in shared}
    return [
        TableRows(
            {**part.columns, **{name: _recoded(part, name, texts[name]) for name in texts}}, {**part.texts, **texts}
        )
        for part in parts
    ]


def ratio(number: Values, whole: Values) -> Values:
    """NaN where the number is not known, or is one of nothing."""
    quotient: Values = np.divide(number, whole, out=np.full(number.shape, np.nan), where=(number >= 0) & (whole > 0))
    return quotient


def numbered(*columns: Values) -> Ints:
    """A number for each combination that occurs, 0, 1, …, in the order of the columns' values."""
    begins = begins_of(*columns)
    lengths = np.diff(begins, append=len(columns[0]))
    return np.repeat(_numbered([column[begins] for column in columns]), lengths)


def _numbered(columns: Sequence[Values]) -> Ints:
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        least = int(column.min(initial=0))
        number = _dense(number * (int(column.max(initial=0)) - least + 1) + (column - least))
    return number


def one_of_each(number: Ints) -> Ints:
    """The place of the last row with each of these numbers, which are 0, 1, …"""
    places = np.empty(int(number.max(initial=-1)) + 1, np.int64)
    places[number] = np.arange(len(number))
    return places


def begins_of(*columns: Values) -> Ints:
    """Where any of them has another value than in the row before; of the first row, too."""
    if not len(columns[0]):
        return np.empty(0, np.int64)
    differs: Flags = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.concatenate((np.zeros(1, np.int64), np.flatnonzero(differs) + 1))


def _dense(number: Ints) -> Ints:
    size = int(number.max(initial=-1)) + 1
    if size > 4 * len(number) + 1_000_000:
        return np.unique(number, return_inverse=True)[1]
    occurs = np.zeros(size, np.bool_)
    occurs[number] = True
    dense: Ints = (np.cumsum(occurs) - 1)[number]
    return dense


def _sorted_union(texts: Sequence[pa.Array]) -> pa.Array:
    first = texts[0]
    if all(each.equals(first) for each in texts):
        return first
    return pc.unique(pa.concat_arrays(texts)).sort()


def _recoded(part: TableRows, name: str, texts: pa.Array) -> Values:
    own = part.texts[name]
    if own.equals(texts):
        return part[name]
    recoded: Values = places_in(texts, own)[part[name]]
    return recoded


def _array(rows: TableRows, column: Column) -> pa.Array:
    values = rows[column.name].astype(NUMPY_TYPES[column.type], copy=False)
    if column.type is Type.FLAG:
        return flags_of(values)
    if column.type is not Type.TEXT:
        return array_of(ARROW_TYPES[column.type], values, is_nullable=column.is_nullable)
    codes = array_of(pa.int32(), values, is_nullable=column.is_nullable)
    return pa.DictionaryArray.from_arrays(codes, rows.texts[column.name])
