"""OffsetFetch and ListOffsets responses: bytes -> columns, whatever a broker sends. No IO, no `import kafka`.

Python walks over groups and topics; the rows of a topic are read as a block. Kafka's compact forms: lengths are
unsigned varints of length + 1, 0 is null, and every structure ends with tagged fields, of which there are none today
(one 0 byte).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from adapter.protocol.codes import GROUP_NOT_FOUND, NO_ERROR, MalformedResponse
from adapter.protocol.reader import Reader, malformed_as_ours, values_at

_INT16, _INT32 = Struct(">h"), Struct(">i")
THROTTLE_BYTES = 4

_NULL, _SEVERAL_BYTES = 0, 0x80
"""Instead of a length: there is nothing, and the length takes more than this byte."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What a response tells of, without its numbers: blocks of rows, one block per group and topic, or per topic."""

    groups: tuple[str, ...]
    """In the response's order; none in ListOffsets."""
    group: NDArray[np.int32]
    """Block -> index into `groups`; empty in ListOffsets."""
    topics: tuple[str, ...]
    """Block -> topic."""
    sizes: NDArray[np.int64]
    """Block -> number of rows."""
    partition: NDArray[np.int32]
    """Row -> partition, never negative."""

    def tells_of_the_same(self, other: Shape) -> bool:
        return (
            self.groups == other.groups
            and self.topics == other.topics
            and np.array_equal(self.group, other.group)
            and np.array_equal(self.sizes, other.sizes)
            and np.array_equal(self.partition, other.partition)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """A response's numbers: one entry per row of the shape."""

    shape: Shape
    """The same object while responses tell of the same."""
    offset: NDArray[np.int64]
    error: NDArray[np.int16]
    """Kafka's error code; 0 where the offset counts."""
    group_error: NDArray[np.int16]
    """One entry per group of the shape."""


def commits_in(body: bytes, known: Shape | None = None) -> Columns:
    """An OffsetFetch response of version 8; a group that is not found has committed nothing.

    `known`: the shape of the response before, which is used again if it is the same. Raises MalformedResponse.
    """
    with malformed_as_ours():
        reader, found = Reader(body, THROTTLE_BYTES), _Found()
        for number in range(reader.count(least_bytes=5)):
            found.groups.append(reader.text())
            topics = reader.count(least_bytes=3)
            found.group += [number] * topics
            reader.position = found.read_topics(body, reader.position, topics, _COMMIT)
            found.group_error_at.append(reader.position)
            reader.skip(_INT16.size)
            reader.skip_tags()
        columns = found.columns(body, _COMMIT, known)
    columns.group_error[columns.group_error == GROUP_NOT_FOUND] = NO_ERROR
    return columns


def offsets_in(body: bytes, known: Shape | None = None) -> Columns:
    """A ListOffsets response of version 7; `known` as above. Raises MalformedResponse."""
    with malformed_as_ours():
        reader, found = Reader(body, THROTTLE_BYTES), _Found()
        topics = reader.count(least_bytes=3)
        found.read_topics(body, reader.position, topics, _OFFSET)
        return found.columns(body, _OFFSET, known)


@dataclass(frozen=True, slots=True)
class _Row:
    """How one partition's row is laid out, in bytes; every row begins with the partition."""

    size: int
    offset: int
    error: int
    metadata: int | None = None
    """Where the length of a commit's metadata is; the other numbers are those of a row whose metadata is empty."""


_COMMIT = _Row(size=20, offset=4, error=17, metadata=16)
"""Partition 4, offset 8, epoch 4, metadata 1, error 2, tags 1."""
_OFFSET = _Row(size=27, offset=14, error=4)
"""Partition 4, error 2, timestamp 8, offset 8, epoch 4, tags 1."""
_EMPTY = 1
"""The length of empty metadata."""


@dataclass(slots=True)
class _Found:
    """What has been read of a response so far."""

    groups: list[str] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    group_error_at: list[int] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    """Block -> where its first row begins."""
    sizes: list[int] = field(default_factory=list)
    uneven: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Block -> where each row and its error begin, where rows are not all of one length."""

    def read_topics(self, body: bytes, at: int, count: int, row: _Row) -> int:
        """Read so many topics and where their rows are; returns where they end.

        Responses have tens of thousands of topics in a cycle, so a length of one byte is read without a call. A length
        that leads out of the response is an IndexError when the next one is read.
        """
        topics, begins, sizes, row_size = self.topics, self.begins, self.sizes, row.size
        tags, metadata = row.size - 1, row.metadata
        for _ in range(count):
            length, begin = body[at], at + 1
            if not _NULL < length < _SEVERAL_BYTES:
                length, begin = _length(body, at)
            end = begin + length - 1
            topics.append(body[begin:end].decode("utf-8", "surrogateescape"))
            length, begin = body[end], end + 1
            if not _NULL < length < _SEVERAL_BYTES:
                length, begin = _length(body, end)
            size = length - 1
            at = begin + size * row_size
            if body[begin + tags : at : row_size].count(0) != size or (
                metadata is not None and body[begin + metadata : at : row_size].count(_EMPTY) != size
            ):
                self.uneven[len(sizes)], at = _uneven_rows(body, begin, size, row)
            begins.append(begin)
            sizes.append(size)
            at = at + 1 if body[at] == 0 else _after_tags(body, at)
        return at

    def columns(self, body: bytes, row: _Row, known: Shape | None) -> Columns:
        sizes = np.array(self.sizes, dtype=np.int64)
        first_rows = np.cumsum(sizes) - sizes
        number_in_block = np.arange(int(sizes.sum())) - np.repeat(first_rows, sizes)
        row_at = np.repeat(np.array(self.begins, dtype=np.int64), sizes) + number_in_block * row.size
        error_at = row_at + row.error
        for block, places in self.uneven.items():
            rows = slice(int(first_rows[block]), int(first_rows[block]) + len(places))
            row_at[rows], error_at[rows] = zip(*places, strict=True)
        partition = values_at(body, row_at, ">i4").astype(np.int32)
        if (partition < 0).any():
            # It would count from the end of a column.
            raise MalformedResponse("a partition with a negative number")
        shape = Shape(tuple(self.groups), np.array(self.group, np.int32), tuple(self.topics), sizes, partition)
        return Columns(
            shape=known if known is not None and known.tells_of_the_same(shape) else shape,
            offset=values_at(body, row_at + row.offset, ">i8").astype(np.int64, copy=False),
            error=values_at(body, error_at, ">i2").astype(np.int16, copy=False),
            group_error=values_at(body, np.array(self.group_error_at, np.int64), ">i2").astype(np.int16, copy=False),
        )


def _uneven_rows(body: bytes, at: int, count: int, row: _Row) -> tuple[list[tuple[int, int]], int]:
    """Where each row and its error begin, and where the rows end: Kafka Streams and some others write metadata."""
    if row.metadata is None:
        raise MalformedResponse("tagged fields in a row that has none in its version")
    reader, places = Reader(body, at), []
    for _ in range(count):
        begin = reader.position
        reader.skip(row.metadata)
        reader.skip_text()
        places.append((begin, reader.position))
        reader.int16()
        reader.skip_tags()
    return places, reader.position


def _length(body: bytes, at: int) -> tuple[int, int]:
    """A length plus one, as Kafka writes it, in any number of bytes; and where the name or list itself begins."""
    reader = Reader(body, at)
    length = reader.varint()
    if length == _NULL:
        raise MalformedResponse("null instead of a name or a list")
    return length, reader.position


def _after_tags(body: bytes, at: int) -> int:
    reader = Reader(body, at)
    reader.skip_tags()
    return reader.position
