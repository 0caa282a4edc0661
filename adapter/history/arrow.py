"""Converts columns to Arrow arrays and back through their buffers. `pyarrow.array` and `to_numpy` would import pandas
if that is installed, which takes longer than the rest of a short run.

In columns, a negative number, a negative code of a text and NaN are null."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapter.history.contract import Type

NULL = -1
ARROW_TYPES = {
    Type.TIME: pa.timestamp("us", tz="UTC"),
    Type.TEXT: pa.string(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.FLAG: pa.bool_(),
}


def array_of(type_: pa.DataType, values: NDArray[Any], *, is_nullable: bool) -> pa.Array:
    """`values` have the type's width. In a nullable column, negative values and NaN are null."""
    assert values.dtype.itemsize == type_.bit_width // 8
    is_known = values >= 0
    has_nulls = is_nullable and not is_known.all()
    validity = pa.py_buffer(np.packbits(is_known, bitorder="little")) if has_nulls else None
    return pa.Array.from_buffers(type_, len(values), [validity, pa.py_buffer(np.ascontiguousarray(values))])


def flags_of(values: NDArray[np.bool_]) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])


def texts_of(names: Sequence[str]) -> pa.Array:
    """A group id may be any bytes; those that are not text are written as escapes: `\\udcff`."""
    texts = [name.encode("utf-8", "backslashreplace") for name in names]
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(texts)))


def empty_table(schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def numbers_in(values: pa.Array, type_: type[np.generic]) -> NDArray[Any]:
    """`type_` is that of the numbers; flags have no null."""
    validity, data = values.buffers()
    if type_ is np.bool_:
        return _bits(data, values)
    numbers: NDArray[Any] = np.frombuffer(data or b"", type_)[values.offset : values.offset + len(values)]
    if values.null_count:
        unknown = np.nan if numbers.dtype.kind == "f" else NULL
        numbers = np.where(_bits(validity, values), numbers, numbers.dtype.type(unknown))
    return numbers


def codes_in(values: pa.Array) -> tuple[NDArray[np.int32], pa.Array]:
    """Returns the place of each text among the sorted texts, and these."""
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    dictionary = encoded.dictionary.cast(pa.string())
    texts = pc.unique(dictionary).sort()
    return places_in(texts, dictionary)[numbers_in(encoded.indices.cast(pa.int32()), np.int32)], texts


def places_in(texts: pa.Array, some: pa.Array) -> NDArray[np.int32]:
    """Returns the place of each of `some` in `texts`, and then NULL, to which the code of null, -1, refers."""
    return np.append(numbers_in(pc.index_in(some, value_set=texts), np.int32), np.int32(NULL))


def _bits(buffer: pa.Buffer | None, values: pa.Array) -> NDArray[np.bool_]:
    """Returns a flag for each of the values."""
    bits = np.unpackbits(np.frombuffer(buffer or b"", np.uint8), bitorder="little")
    return bits[values.offset : values.offset + len(values)].view(np.bool_)
