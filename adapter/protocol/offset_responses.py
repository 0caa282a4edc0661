"""Parses OffsetFetch and ListOffsets responses into columns.

Python loops over groups and topics; a topic's rows are read as a block. `offset_requests` explains the encoding."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapter.protocol.codes import GROUP_NOT_FOUND, NO_ERROR, MalformedResponse
from adapter.protocol.reader import Reader, malformed_as_ours, values_at

THROTTLE_BYTES = 4

_NULL, SEVERAL_BYTES = 0, 0x80
"""In place of a length: null, and a length of more than one byte."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A response's structure without its numbers: blocks of rows, one per group and topic, or per topic."""

    groups: tuple[str, ...]
    """In the order of the response; empty for ListOffsets."""
    group: NDArray[np.int32]
    """Block -> index into `groups`; empty for ListOffsets."""
    topics: tuple[str, ...]
    sizes: NDArray[np.int64]
    partition: NDArray[np.int32]

    def equals(self, other: "Shape") -> bool:
        return (
            self.groups == other.groups
            and self.topics == other.topics
            and np.array_equal(self.group, other.group)
            and np.array_equal(self.sizes, other.sizes)
            and np.array_equal(self.partition, other.partition)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """A response's numbers, with one entry per row of the shape."""

    shape: Shape
    """The same object while the structure of responses is the same."""
    offset: NDArray[np.int64]
    error: NDArray[np.int16]
    """Kafka's error code; 0 if the offset is valid."""
    group_error: NDArray[np.int16]
    """One entry per group of the shape."""


def commits_in(body: bytes, known: Shape | None = None) -> Columns:
    """Parses an OffsetFetch response of version 8; reuses the `known` shape if equal. Raises MalformedResponse."""
    with malformed_as_ours():
        reader, found = Reader(body, THROTTLE_BYTES), _Found()
        for number in range(reader.count(least_bytes=5)):
            found.groups.append(reader.text())
            topics = reader.count(least_bytes=3)
            found.group += [number] * topics
            reader.position = found.read_topics(body, reader.position, topics, _COMMIT)
            found.group_error_at.append(reader.position)
            reader.int16()
            reader.skip_tags()
        columns = found.columns(body, _COMMIT, known)
    columns.group_error[columns.group_error == GROUP_NOT_FOUND] = NO_ERROR
    return columns


def offsets_in(body: bytes, known: Shape | None = None) -> Columns:
    """Parses a ListOffsets response of version 7; `known` as above. Raises MalformedResponse."""
    with malformed_as_ours():
        reader, found = Reader(body, THROTTLE_BYTES), _Found()
        topics = reader.count(least_bytes=3)
        found.read_topics(body, reader.position, topics, _OFFSET)
        return found.columns(body, _OFFSET, known)


@dataclass(frozen=True, slots=True)
class _Row:
    """The layout of one partition's row in bytes; every row begins with the partition."""

    size: int
    offset: int
    error: int
    metadata: int | None = None
    """Position of the length of a commit's metadata; the other numbers assume empty metadata."""


_COMMIT = _Row(size=20, offset=4, error=17, metadata=16)
"""Partition 4, offset 8, epoch 4, metadata 1, error 2, tags 1 bytes."""
_OFFSET = _Row(size=27, offset=14, error=4)
"""Partition 4, error 2, timestamp 8, offset 8, epoch 4, tags 1 bytes."""
_EMPTY = 1


@dataclass(slots=True)
class _Found:
    groups: list[str] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    group_error_at: list[int] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    """Block -> position of its first row."""
    sizes: list[int] = field(default_factory=list)
    uneven: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Block -> positions of each row and its error, if its rows differ in length."""

    def read_topics(self, body: bytes, at: int, count: int, row: _Row) -> int:
        """Reads this many topics and the positions of their rows; returns the position after them.

        Responses have tens of thousands of topics in a cycle, so a one-byte length is read without a call. A length
        beyond the response raises IndexError at the next read."""
        topics, begins, sizes, row_size = self.topics, self.begins, self.sizes, row.size
        tags, metadata = row.size - 1, row.metadata
        for _ in range(count):
            length, begin = body[at], at + 1
            if not _NULL < length < SEVERAL_BYTES:
                length, begin = length_at(body, at)
            end = begin + length - 1
            topics.append(body[begin:end].decode("utf-8", "surrogateescape"))
            length, begin = body[end], end + 1
            if not _NULL < length < SEVERAL_BYTES:
                length, begin = length_at(body, end)
            size = length - 1
            at = begin + size * row_size
            if body[begin + tags : at : row_size].count(0) != size or (
                metadata is not None and body[begin + metadata : at : row_size].count(_EMPTY) != size
            ):
                self.uneven[len(sizes)], at = _uneven_rows(body, begin, size, row)
            begins.append(begin)
            sizes.append(size)
            at = at + 1 if body[at] == 0 else after_tags(body, at)
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
            # A negative partition would index a column from its end.
            raise MalformedResponse("a partition with a negative number")
        shape = Shape(tuple(self.groups), np.array(self.group, np.int32), tuple(self.topics), sizes, partition)
        return Columns(
            shape=known if known is not None and known.equals(shape) else shape,
            offset=values_at(body, row_at + row.offset, ">i8").astype(np.int64, copy=False),
            error=values_at(body, error_at, ">i2").astype(np.int16, copy=False),
            group_error=values_at(body, np.array(self.group_error_at, np.int64), ">i2").astype(np.int16, copy=False),
        )


def _uneven_rows(body: bytes, at: int, count: int, row: _Row) -> tuple[list[tuple[int, int]], int]:
    """Returns where each row and its error are, and the rows' end. Kafka Streams, for instance, writes metadata."""
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


def length_at(body: bytes, at: int) -> tuple[int, int]:
    """Returns a varint-encoded length + 1 and the position after it."""
    reader = Reader(body, at)
    length = reader.varint()
    if length == _NULL:
        raise MalformedResponse("null instead of a name or a list")
    return length, reader.position


def after_tags(body: bytes, at: int) -> int:
    reader = Reader(body, at)
    reader.skip_tags()
    return reader.position
