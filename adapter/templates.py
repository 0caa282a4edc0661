"""Responses of one shape: between two cycles a broker's answer differs only in its numbers, so it is walked once.

A template knows which bytes of a response are numbers and what all the others were. A response of the same length
whose other bytes are the same is decoded by one gather per column; any other is walked, and gives the next template.
Pure: (body, known template or None) -> (columns, template).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from adapter.responses import Columns, Places, Walk, blanked, commits_walk, offsets_walk, values_at
from adapter.wire import GROUP_NOT_FOUND, NO_ERROR

Bytes = NDArray[np.uint8]

_THROTTLE = slice(0, 4)
_EPOCH_AFTER_OFFSET = 8
_TIMESTAMP_BEFORE_OFFSET = -8


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """The newest response of a kind, its numbers blanked."""

    walk: Walk
    mask: Bytes
    """All bits set where a byte must be as it was, none where it belongs to a number."""
    fixed: Bytes
    """The response under the mask."""

    def fits(self, body: bytes) -> bool:
        if len(body) != len(self.mask):
            return False
        return np.array_equal(np.frombuffer(body, np.uint8) & self.mask, self.fixed)


def commits_in(body: bytes, known: Template | None = None) -> tuple[Columns, Template]:
    """An OffsetFetch response of version 8; a group that is not found has committed nothing.

    Raises MalformedResponse.
    """
    template = _template_of(body, known, commits_walk, _commit_numbers)
    columns = _columns(body, template.walk)
    is_not_found = columns.group_error == GROUP_NOT_FOUND
    if is_not_found.any():
        columns = replace(columns, group_error=np.where(is_not_found, np.int16(NO_ERROR), columns.group_error))
    return columns, template


def offsets_in(body: bytes, known: Template | None = None) -> tuple[Columns, Template]:
    """A ListOffsets response of version 7; raises MalformedResponse."""
    template = _template_of(body, known, offsets_walk, _offset_numbers)
    return _columns(body, template.walk), template


def _template_of(
    body: bytes, known: Template | None, walk_of: Callable[[bytes], Walk], numbers: Callable[[Walk], _Numbers]
) -> Template:
    if known is not None and known.fits(body):
        return known
    walk = walk_of(body)
    if known is not None and walk.shape.tells_of_the_same(known.walk.shape):
        walk = replace(walk, shape=known.walk.shape)
    mask = _mask(len(body), walk, numbers(walk))
    return Template(walk, mask, np.frombuffer(body, np.uint8) & mask)


def _columns(body: bytes, walk: Walk) -> Columns:
    return Columns(
        shape=walk.shape,
        offset=values_at(body, walk.offset_at, ">i8").astype(np.int64, copy=False),
        error=values_at(body, walk.error_at, ">i2").astype(np.int16, copy=False),
        group_error=values_at(body, walk.group_error_at, ">i2").astype(np.int16, copy=False),
    )


_Numbers = tuple[tuple[Places, str], ...]
"""Where numbers stand, and in which form."""


def _commit_numbers(walk: Walk) -> _Numbers:
    return (
        (walk.offset_at, ">i8"),
        (walk.offset_at + _EPOCH_AFTER_OFFSET, ">i4"),
        (walk.error_at, ">i2"),
        (walk.group_error_at, ">i2"),
    )


def _offset_numbers(walk: Walk) -> _Numbers:
    return (
        (walk.error_at, ">i2"),
        (walk.offset_at + _TIMESTAMP_BEFORE_OFFSET, ">i8"),
        (walk.offset_at, ">i8"),
        (walk.offset_at + _EPOCH_AFTER_OFFSET, ">i4"),
    )


def _mask(size: int, walk: Walk, numbers: _Numbers) -> Bytes:
    mask = bytearray(b"\xff") * size
    mask[_THROTTLE] = bytes(4)
    for places, form in numbers:
        blanked(mask, places, form)
    # What a commit's metadata say may change with each commit, as Kafka Streams' does; nobody here reads it.
    for begin, end in walk.metadata:
        mask[begin:end] = bytes(end - begin)
    return np.frombuffer(mask, np.uint8)
