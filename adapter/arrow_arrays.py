"""Columns of numbers -> Arrow arrays, from their buffers: `pyarrow.array` would import pandas wherever that is
installed, which takes longer than all else that a short run does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def array_of(type_: pa.DataType, values: NDArray[Any], *, is_nullable: bool) -> pa.Array:
    """`values` have the type's width; of a nullable column those that are negative, or no number, are null."""
    assert values.dtype.itemsize == type_.bit_width // 8
    validity = _validity(values) if is_nullable else None
    return pa.Array.from_buffers(type_, len(values), [validity, pa.py_buffer(np.ascontiguousarray(values))])


def _validity(values: NDArray[Any]) -> pa.Buffer | None:
    """A bit for each value; None where there are no nulls."""
    is_known = values >= 0
    return None if is_known.all() else pa.py_buffer(np.packbits(is_known, bitorder="little"))
