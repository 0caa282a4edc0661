"""Parses OffsetFetch and ListOffsets responses into columns.

A response is walked only if it differs from the one before in more than numbers: walking tens of thousands of topics
takes ten times as long as comparing the bytes. Versions differ in the layout of a row, in the encoding, and in whether
OffsetFetch names its groups; nothing else distinguishes them here."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from adapter.protocol.apis import FIRST_WITH_GROUPS, LIST_OFFSETS, OFFSET_FETCH, Api
from adapter.protocol.codes import GROUP_NOT_FOUND, NO_ERROR, MalformedResponse
from adapter.protocol.reader import Places, Reader, malformed_as_ours, reader_of, values_at

THROTTLE_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A response without its numbers: blocks of rows, one per group and topic, or per topic."""

    groups: tuple[str, ...]
    """In the order of the response; empty for ListOffsets."""
    group: NDArray[np.int32]
    """Block -> index into `groups`; empty for ListOffsets."""
    topics: tuple[str, ...]
    sizes: NDArray[np.int64]
    partition: NDArray[np.int32]
    offset_at: Places
    error_at: Places
    group_error_at: Places
    size: int
    is_fixed: NDArray[np.uint8]
    """Which bytes belong to no number and to no commit's text, eight in one."""
    fingerprint: bytes
    """Of those bytes."""

    def fits(self, body: bytes) -> bool:
        return len(body) == self.size and _fingerprint(body, self.is_fixed) == self.fingerprint


def _fingerprint(body: bytes, is_fixed: NDArray[np.uint8]) -> bytes:
    fixed = np.frombuffer(body, np.uint8)[np.unpackbits(is_fixed, count=len(body)).view(bool)]
    return hashlib.blake2b(fixed, digest_size=16).digest()


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """A response's numbers, with one entry per row of the shape."""

    shape: Shape
    """The same object while responses differ in numbers only."""
    offset: NDArray[np.int64]
    error: NDArray[np.int16]
    """Kafka's error code; 0 if the offset is valid."""
    group_error: NDArray[np.int16]
    """One entry per group of the shape."""

    def offsets_of(self, place: int) -> NDArray[np.int64]:
        """Returns the offsets of one group, in the order of the response."""
        is_of_group = np.repeat(self.shape.group == place, self.shape.sizes)
        offsets: NDArray[np.int64] = self.offset[is_of_group]
        return offsets


def commits_in(body: bytes, known: Shape | None = None, version: int = OFFSET_FETCH.newest, group: str = "") -> Columns:
    """Parses an OffsetFetch response; reuses the `known` shape if it fits. Raises MalformedResponse.

    Before version 8, a response is about one `group` and does not name it."""
    walked, reader = _Walked(_commit_row(version)), _reader(OFFSET_FETCH, version, body)
    if version >= FIRST_WITH_GROUPS:
        columns = _columns(reader, known, walked, walked.read_groups)
    else:
        columns = _columns(reader, known, walked, lambda reader: walked.read_group(reader, group))
    columns.group_error[columns.group_error == GROUP_NOT_FOUND] = NO_ERROR
    return columns


def offsets_in(body: bytes, known: Shape | None = None, version: int = LIST_OFFSETS.newest) -> Columns:
    """Parses a ListOffsets response; `known` as above. Raises MalformedResponse."""
    walked = _Walked(_offset_row(version))
    return _columns(_reader(LIST_OFFSETS, version, body), known, walked, walked.read_topics)


def _reader(api: Api, version: int, body: bytes) -> Reader:
    return reader_of(body, THROTTLE_BYTES, is_flexible=api.is_flexible(version))


@malformed_as_ours()
def _columns(reader: Reader, shape: Shape | None, walked: "_Walked", walk: Callable[[Reader], object]) -> Columns:
    body = reader.body
    if shape is None or not shape.fits(body):
        walk(reader)
        shape = walked.shape(body)
    return Columns(
        shape,
        offset=values_at(body, shape.offset_at, ">i8").astype(np.int64, copy=False),
        error=values_at(body, shape.error_at, ">i2").astype(np.int16, copy=False),
        group_error=values_at(body, shape.group_error_at, ">i2").astype(np.int16, copy=False),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """The layout of one partition's row in bytes; every row begins with the partition."""

    size: int
    offset: int
    error: int
    numbers: range
    """All that may change without a change of shape, apart from errors."""
    constants: tuple[tuple[int, int], ...]
    """Bytes of the row and their values where it has no texts and tagged fields: the layout holds for no other rows."""
    metadata: int | None = None
    """Position of the length of a commit's metadata."""


@cache
def _commit_row(version: int) -> _Row:
    """Partition 4, offset 8, epoch 4, metadata 1 (2 before the compact encoding), error 2, tags 1 (0) bytes."""
    if OFFSET_FETCH.is_flexible(version):
        return _Row(size=20, offset=4, error=17, numbers=range(4, 16), constants=((16, 1), (19, 0)), metadata=16)
    return _Row(size=20, offset=4, error=18, numbers=range(4, 16), constants=((16, 0), (17, 0)), metadata=16)


@cache
def _offset_row(version: int) -> _Row:
    """Partition 4, error 2, timestamp 8, offset 8, epoch 4 (0 before version 4), tags 1 (0) bytes."""
    end = 26 if version >= 4 else 22
    tags = ((end, 0),) if LIST_OFFSETS.is_flexible(version) else ()
    return _Row(size=end + len(tags), offset=14, error=4, numbers=range(6, end), constants=tags)


_UnevenRow = tuple[int, int, int]
"""The positions of a row, of its metadata's text and of its error."""


@dataclass(slots=True)
class _Walked:
    row: _Row
    groups: list[str] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    group_error_at: list[int] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    """Block -> position of its first row."""
    sizes: list[int] = field(default_factory=list)
    uneven: dict[int, Sequence[_UnevenRow]] = field(default_factory=dict)
    """Block -> its rows, if they differ in length."""

    def read_groups(self, reader: Reader) -> None:
        for _ in range(reader.count(least_bytes=5)):
            self.read_group(reader, reader.text())
            reader.skip_tags()

    def read_group(self, reader: Reader, group: str) -> None:
        """Reads the topics and the error of a group."""
        self.groups.append(group)
        self.group += [len(self.groups) - 1] * self.read_topics(reader)
        self.group_error_at.append(reader.position)
        reader.int16()

    def read_topics(self, reader: Reader) -> int:
        """Reads a list of topics and where their rows are; returns its length."""
        row, count = self.row, reader.count(least_bytes=3)
        for _ in range(count):
            self.topics.append(reader.text())
            size = reader.count(row.size)
            self.begins.append(reader.position)
            rows = memoryview(reader.body)[reader.position : reader.position + size * row.size]
            if all(rows[at :: row.size].tobytes().count(value) == size for at, value in row.constants):
                reader.skip(len(rows))
            else:
                self.uneven[len(self.sizes)] = _uneven_rows(reader, size, row)
            self.sizes.append(size)
            reader.skip_tags()
        return count

    def shape(self, body: bytes) -> Shape:
        sizes, row = np.array(self.sizes, dtype=np.int64), self.row
        first_rows = np.cumsum(sizes) - sizes
        number_in_block = np.arange(int(sizes.sum())) - np.repeat(first_rows, sizes)
        row_at = np.repeat(np.array(self.begins, dtype=np.int64), sizes) + number_in_block * row.size
        error_at, group_error_at = row_at + row.error, np.array(self.group_error_at, dtype=np.int64)
        for block, uneven in self.uneven.items():
            rows = slice(int(first_rows[block]), int(first_rows[block]) + len(uneven))
            row_at[rows], _, error_at[rows] = zip(*uneven, strict=True)
        partition = values_at(body, row_at, ">i4").astype(np.int32)
        if (partition < 0).any():
            # A negative partition would index a column from its end.
            raise MalformedResponse("a partition with a negative number")
        is_fixed = np.ones(len(body), dtype=bool)
        is_fixed[:THROTTLE_BYTES] = False
        for places, numbers in ((row_at, row.numbers), (error_at, range(2)), (group_error_at, range(2))):
            for byte in numbers:
                is_fixed[places + byte] = False
        for _, begin, end in chain.from_iterable(self.uneven.values()):
            is_fixed[begin:end] = False
        packed = np.packbits(is_fixed)
        return Shape(
            tuple(self.groups),
            np.array(self.group, dtype=np.int32),
            tuple(self.topics),
            sizes,
            partition,
            (row_at + row.offset).astype(np.int32),
            error_at.astype(np.int32),
            group_error_at.astype(np.int32),
            len(body),
            packed,
            _fingerprint(body, packed),
        )


def _uneven_rows(reader: Reader, count: int, row: _Row) -> Sequence[_UnevenRow]:
    """Reads rows with texts or tagged fields. Kafka Streams, for instance, writes metadata."""
    if row.metadata is None:
        raise MalformedResponse("tagged fields in a row that has none in its version")
    places = []
    for _ in range(count):
        begin = reader.position
        reader.skip(row.metadata)
        length, text_at = reader.text_length(), reader.position
        reader.skip(max(length, 0))
        places.append((begin, text_at, reader.position))
        reader.int16()
        reader.skip_tags()
    return places
