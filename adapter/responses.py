"""OffsetFetch and ListOffsets responses: bytes -> columns, whatever a broker sends. No IO, no `import kafka`.

Python walks over groups and topics; the rows of a topic are read as a block. Kafka's compact forms: lengths are
unsigned varints of length + 1, 0 is null, and every structure ends with tagged fields, of which there are none today
(one 0 byte).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from adapter.wire import GROUP_NOT_FOUND, NO_ERROR, MalformedResponse

Places = NDArray[np.int64]
"""Byte numbers in a response."""

_INT16, _INT32 = Struct(">h"), Struct(">i")
THROTTLE_BYTES = 4

_COMMIT_BYTES = 20
"""With empty metadata, as nearly every commit has: partition 4, offset 8, epoch 4, metadata 1, error 2, tags 1."""
_COMMITTED, _METADATA, _ERROR_AFTER_NO_METADATA, _TAGS_AFTER_NO_METADATA = 4, 16, 17, 19
_EMPTY = 1

_OFFSET_BYTES = 27
"""Partition 4, error 2, timestamp 8, offset 8, epoch 4, tags 1."""
_OFFSET_ERROR, _OFFSET, _OFFSET_TAGS = 4, 14, 26


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


def values_at(body: bytes, places: Places, form: str) -> NDArray[np.generic]:
    """The numbers of this form that stand at the places, which may be anywhere: one gather for all of them."""
    count = max(len(body) - np.dtype(form).itemsize + 1, 0)
    at_every_byte: NDArray[np.generic] = np.ndarray((count,), dtype=form, buffer=body, strides=(1,))
    return at_every_byte[places].astype(np.dtype(form).newbyteorder("="))


def commits_in(body: bytes, known: Shape | None = None) -> Columns:
    """An OffsetFetch response of version 8; a group that is not found has committed nothing.

    `known`: the shape of the response before, which is used again if it is the same. Raises MalformedResponse.
    """
    with malformed_as_ours():
        reader, blocks = Reader(body, THROTTLE_BYTES), _Blocks()
        for number in range(reader.count(least_bytes=5)):
            blocks.groups.append(reader.text())
            for _ in range(reader.count(least_bytes=3)):
                blocks.group.append(number)
                blocks.topics.append(reader.text())
                _walk_commits(reader, blocks)
            error = reader.int16()
            blocks.group_errors.append(NO_ERROR if error == GROUP_NOT_FOUND else error)
            reader.skip_tags()
        return blocks.columns(body, _COMMIT_BYTES, _COMMITTED, _ERROR_AFTER_NO_METADATA, known)


def offsets_in(body: bytes, known: Shape | None = None) -> Columns:
    """A ListOffsets response of version 7; `known` as above. Raises MalformedResponse."""
    with malformed_as_ours():
        reader, blocks = Reader(body, THROTTLE_BYTES), _Blocks()
        for _ in range(reader.count(least_bytes=3)):
            blocks.topics.append(reader.text())
            begin, count = reader.rows(_OFFSET_BYTES)
            if body[begin + _OFFSET_TAGS : reader.position : _OFFSET_BYTES].count(0) != count:
                raise MalformedResponse("tagged fields in a row that has none in its version")
            reader.skip_tags()
            blocks.begins.append(begin)
            blocks.sizes.append(count)
        return blocks.columns(body, _OFFSET_BYTES, _OFFSET, _OFFSET_ERROR, known)


@dataclass(slots=True)
class _Blocks:
    """What has been found so far in walking through a response."""

    groups: list[str] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    group_errors: list[int] = field(default_factory=list)
    uneven: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Block -> where each row and its error begin, where rows are not all of one length."""

    def columns(self, body: bytes, row_bytes: int, offset: int, error: int, known: Shape | None) -> Columns:
        sizes = np.array(self.sizes, dtype=np.int64)
        first_rows = np.cumsum(sizes) - sizes
        number_in_block = np.arange(int(sizes.sum())) - np.repeat(first_rows, sizes)
        row_at = np.repeat(np.array(self.begins, dtype=np.int64), sizes) + number_in_block * row_bytes
        error_at = row_at + error
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
            offset=values_at(body, row_at + offset, ">i8").astype(np.int64, copy=False),
            error=values_at(body, error_at, ">i2").astype(np.int16, copy=False),
            group_error=np.array(self.group_errors, dtype=np.int16),
        )


def _walk_commits(reader: Reader, blocks: _Blocks) -> None:
    """One topic's rows; rows that carry metadata, as Kafka Streams and some others write it, are of any length."""
    begin, count = reader.rows(_COMMIT_BYTES)
    end = reader.position
    has_none = reader.body[begin + _METADATA : end : _COMMIT_BYTES].count(_EMPTY) == count
    if not (has_none and reader.body[begin + _TAGS_AFTER_NO_METADATA : end : _COMMIT_BYTES].count(0) == count):
        reader.position = begin
        blocks.uneven[len(blocks.sizes)] = [_walk_commit(reader) for _ in range(count)]
    blocks.begins.append(begin)
    blocks.sizes.append(count)
    reader.skip_tags()


def _walk_commit(reader: Reader) -> tuple[int, int]:
    """Where the row and its error begin."""
    begin = reader.position
    reader.skip(_METADATA)
    reader.skip_text()
    error_at = reader.position
    reader.int16()
    reader.skip_tags()
    return begin, error_at


@contextmanager
def malformed_as_ours() -> Iterator[None]:
    """Whatever a broker sends, what comes out is an answer or one kind of error."""
    try:
        yield
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedResponse(str(error)) from error


@dataclass(slots=True)
class Reader:
    """A place in a response; every step is checked against its end, so that no length asks for more than is there."""

    body: bytes
    position: int

    def int16(self) -> int:
        value: int = _INT16.unpack_from(self.body, self.position)[0]
        self.position += _INT16.size
        return value

    def int32(self) -> int:
        value: int = _INT32.unpack_from(self.body, self.position)[0]
        self.position += _INT32.size
        return value

    def varint(self) -> int:
        value = shift = 0
        while shift <= 28:
            byte = self.body[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise MalformedResponse("a length of more than five bytes")

    def count(self, least_bytes: int) -> int:
        """How many elements follow; each takes at least so many bytes."""
        count = max(self.varint() - 1, 0)
        if count * least_bytes > len(self.body) - self.position:
            raise MalformedResponse(f"{count} elements in {len(self.body) - self.position} bytes")
        return count

    def rows(self, row_bytes: int) -> tuple[int, int]:
        """Where the next elements begin, and how many they are; the place stays behind rows of so many bytes."""
        count = self.count(least_bytes=row_bytes)
        begin = self.position
        self.position += count * row_bytes
        return begin, count

    def text(self, errors: str = "surrogateescape") -> str:
        length = self.varint() - 1
        begin, self.position = self.position, self.position + length
        if length < 0 or self.position > len(self.body):
            raise MalformedResponse("a name that is longer than the response, or none")
        # A group id may be any bytes; what is no text is shown as such and matches nothing that people write.
        return self.body[begin : self.position].decode("utf-8", errors)

    def skip_text(self) -> None:
        self.skip(max(self.varint() - 1, 0))

    def skip_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.skip(self.varint())

    def skip(self, size: int) -> None:
        if size > len(self.body) - self.position:
            raise MalformedResponse("a field that is longer than the response")
        self.position += size
