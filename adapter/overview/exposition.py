"""Lines of Prometheus's text format, made of columns by operations on whole arrays.

These let other threads run meanwhile. Formatting each line in Python would hold the interpreter for seconds, and on a
busy machine a thread that holds it may itself have to wait for a processor."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapter.columns import LARGEST_OFFSET, Indexes, Seconds

LINES_AT_ONCE = 1000
PADDING = 0xFF
"""A byte that no text in UTF-8 has."""
DECIMALS = 3

_Bytes = NDArray[np.uint8]


class Labels(NamedTuple):
    """The labels of each line, as they are written between the braces."""

    text: _Bytes
    """One after the other."""
    ends: Indexes
    """Where those of each line end in `text`."""


def labels_of(texts: Iterable[str]) -> Labels:
    encoded = [text.encode() for text in texts]
    lengths = np.fromiter(map(len, encoded), dtype=np.intp, count=len(encoded))
    return Labels(np.frombuffer(b"".join(encoded), dtype=np.uint8), np.cumsum(lengths))


def lines_of(name: str, labels: Labels, column: Seconds) -> Iterator[bytes]:
    """Yields LINES_AT_ONCE lines at a time; those whose value is not finite are left out."""
    begin, end = _row(f"{name}{{"), _row("} ")
    for at in range(0, len(column), LINES_AT_ONCE):
        values = column[at : at + LINES_AT_ONCE]
        is_there = np.isfinite(values)
        if is_there.any():
            parts = (
                begin,
                _table(labels, at, at + len(values)),
                end,
                _digits(np.where(is_there, values, 0.0)),
                _row("\n"),
            )
            lines = np.concatenate([np.broadcast_to(part, (len(values), part.shape[1])) for part in parts], axis=1)
            lines = lines if is_there.all() else lines[is_there]
            yield lines[lines != PADDING].tobytes()


def _row(text: str) -> _Bytes:
    return np.frombuffer(text.encode(), dtype=np.uint8)[None, :]


def _table(labels: Labels, begin: int, end: int) -> _Bytes:
    """Returns the labels of some lines as rows of the same length."""
    first = int(labels.ends[begin - 1]) if begin else 0
    lengths = np.diff(labels.ends[begin:end], prepend=first)
    table = np.full((len(lengths), int(lengths.max())), PADDING, dtype=np.uint8)
    table[np.arange(table.shape[1]) < lengths[:, None]] = labels.text[first : int(labels.ends[end - 1])]
    return table


def _digits(column: Seconds) -> _Bytes:
    """Returns numbers as rows of the same length: whole, or where one of them is not, all with DECIMALS decimals."""
    largest = float(np.abs(column).max())
    is_whole = bool((column == np.trunc(column)).all()) or largest * 10**DECIMALS > LARGEST_OFFSET
    decimals = 0 if is_whole else DECIMALS
    scaled = np.rint(column * 10**decimals)
    numbers = np.abs(scaled).astype(np.int64)[:, None]
    powers = 10 ** np.arange(max(len(str(int(numbers.max()))), decimals + 1) - 1, -1, -1)
    digits = np.where((numbers < powers) & (powers > 10**decimals), PADDING, numbers // powers % 10 + ord("0"))
    point = np.full((len(column), int(decimals > 0)), ord("."))
    sign = np.where(scaled < 0, ord("-"), PADDING)[:, None]
    parts = (sign, digits[:, : len(powers) - decimals], point, digits[:, len(powers) - decimals :])
    return np.concatenate(parts, axis=1).astype(np.uint8)
