"""Converts columns of numbers to Arrow arrays through their buffers. `pyarrow.array` would import pandas if that is
installed, which takes longer than the rest of a short run."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


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
