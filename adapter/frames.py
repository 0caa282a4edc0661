"""OffsetFetch and ListOffsets as bytes: request bodies out, columns in. No IO, no `import kafka`.

The two carry a row per partition, so they are encoded and decoded here by whole blocks; everything else goes through
the library's own classes. Kafka's compact forms: lengths are unsigned varints of length + 1, 0 is null, and every
structure ends with tagged fields, of which there are none today (one 0 byte).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from struct import Struct
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapter.wire import GROUP_NOT_FOUND, NO_ERROR, GroupCommits, MalformedResponse, PartitionOffsets

OFFSET_FETCH, OFFSET_FETCH_VERSION = 9, 8
"""Version 8 on purpose: from 10 on topics go by id, and a request for all of a group's topics answers ids alone."""
LIST_OFFSETS, LIST_OFFSETS_VERSION = 2, 7

_NO_TAGS = b"\0"
_ALL_TOPICS = b"\0"
_HEAD = Struct(">hhih")
_INT16, _INT32 = Struct(">h"), Struct(">i")
_COMMIT = Struct(">iqi")

_ASKED_ROW = np.dtype([("partition", ">i4"), ("epoch", ">i4"), ("timestamp", ">i8"), ("tags", "u1")])
_COMMIT_ROW = np.dtype(
    [("partition", ">i4"), ("offset", ">i8"), ("epoch", ">i4"), ("metadata", "u1"), ("error", ">i2"), ("tags", "u1")]
)
"""With empty metadata, as nearly every commit has."""
_OFFSET_ROW = np.dtype(
    [
        ("partition", ">i4"),
        ("error", ">i2"),
        ("timestamp", ">i8"),
        ("offset", ">i8"),
        ("epoch", ">i4"),
        ("tags", "u1"),
    ]
)
_EMPTY_METADATA = 1
_ANY_LEADER_EPOCH = -1


class Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(slots=True)
class RawHeader:
    """What the library's parser wants to know of a request that is on its way."""

    correlation_id: int

    def get_response_class(self) -> type[RawResponse]:
        return RawResponse


class RawRequest:
    """A request whose body is encoded already; has the shape that the library's connection works with."""

    def __init__(self, api_key: int, api_version: int, body: bytes) -> None:
        self.API_KEY = api_key
        self.API_VERSION = api_version
        self.header = RawHeader(0)
        self._client_id = b""
        self._body = body

    def with_header(self, correlation_id: int, client_id: str) -> None:
        self.header = RawHeader(correlation_id)
        self._client_id = client_id.encode()

    def encode(self, *, framed: bool, header: bool) -> bytes:
        """The whole frame; the library always asks for frame and header."""
        assert framed
        assert header
        head = _HEAD.pack(self.API_KEY, self.API_VERSION, self.header.correlation_id, len(self._client_id))
        payload = b"".join((head, self._client_id, _NO_TAGS, self._body))
        return _INT32.pack(len(payload)) + payload

    def expect_response(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class RawResponse:
    """A response's body, not looked into: it is decoded outside the library's IO thread, where an error is ours."""

    body: bytes
    throttle_time_ms: int

    @classmethod
    def parse_header(cls, data: Readable) -> RawHeader:
        correlation_id = _INT32.unpack(data.read(4))[0]
        data.read(1)
        return RawHeader(correlation_id)

    @classmethod
    def decode(cls, data: Readable) -> RawResponse:
        body = bytes(data.read())
        # Both kinds of response begin with the throttle time, which the library obeys.
        return cls(body, _INT32.unpack_from(body)[0] if len(body) >= 4 else 0)


# -- requests ------------------------------------------------------------------------------------


def offset_fetch(groups: Sequence[str]) -> RawRequest:
    """Everything that each of the groups has committed, unstable commits not waited for."""
    named = (_compact(group) + _ALL_TOPICS + _NO_TAGS for group in groups)
    require_stable = b"\0"
    body = b"".join((_varint(len(groups) + 1), *named, require_stable, _NO_TAGS))
    return RawRequest(OFFSET_FETCH, OFFSET_FETCH_VERSION, body)


def list_offsets(topics: Mapping[str, Sequence[int]], timestamp: int, *, committed_only: bool) -> RawRequest:
    """One offset of each partition; `timestamp` -1: the end, -2: the start."""
    replica_and_isolation = b"\xff\xff\xff\xff" + (b"\1" if committed_only else b"\0")
    blocks = (_asked(topic, partitions, timestamp) for topic, partitions in topics.items())
    body = b"".join((replica_and_isolation, _varint(len(topics) + 1), *blocks, _NO_TAGS))
    return RawRequest(LIST_OFFSETS, LIST_OFFSETS_VERSION, body)


def _asked(topic: str, partitions: Sequence[int], timestamp: int) -> bytes:
    rows = np.zeros(len(partitions), dtype=_ASKED_ROW)
    rows["partition"], rows["epoch"], rows["timestamp"] = partitions, _ANY_LEADER_EPOCH, timestamp
    return b"".join((_compact(topic), _varint(len(partitions) + 1), rows.tobytes(), _NO_TAGS))


def _compact(text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogateescape")
    return _varint(len(encoded) + 1) + encoded


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


# -- responses -----------------------------------------------------------------------------------


def commits_in_bytes(body: bytes) -> dict[str, GroupCommits]:
    """An OffsetFetch response of version 8; raises MalformedResponse."""
    with _malformed_as_ours():
        reader = _Reader(body, position=4)
        commits = {}
        for _ in range(reader.count(least_bytes=5)):
            group = reader.text()
            topics = {reader.text(): _commit_block(reader) for _ in range(reader.count(least_bytes=3))}
            error = reader.int16()
            reader.skip_tags()
            commits[group] = GroupCommits(NO_ERROR if error == GROUP_NOT_FOUND else error, topics)
        return commits


def offsets_in_bytes(body: bytes) -> dict[str, PartitionOffsets]:
    """A ListOffsets response of version 7: topic -> what was asked for; raises MalformedResponse."""
    with _malformed_as_ours():
        reader = _Reader(body, position=4)
        return {reader.text(): _offset_block(reader) for _ in range(reader.count(least_bytes=3))}


def _commit_block(reader: _Reader) -> PartitionOffsets:
    rows = reader.rows(_COMMIT_ROW)
    begin = reader.position
    if not (rows["tags"].any() or (rows["metadata"] != _EMPTY_METADATA).any()):
        reader.position += rows.nbytes
        reader.skip_tags()
        return _checked(PartitionOffsets(rows["partition"], rows["offset"], rows["error"]))
    reader.position = begin
    columns = [_commit_row(reader) for _ in range(len(rows))]
    reader.skip_tags()
    partition, offset, error = zip(*columns, strict=True)
    return _checked(PartitionOffsets(np.array(partition, "i4"), np.array(offset, "i8"), np.array(error, "i2")))


def _commit_row(reader: _Reader) -> tuple[int, int, int]:
    """A row that carries metadata, as Kafka Streams and some others write it."""
    partition, offset, _ = reader.unpack(_COMMIT)
    reader.skip_text()
    error = reader.int16()
    reader.skip_tags()
    return partition, offset, error


def _offset_block(reader: _Reader) -> PartitionOffsets:
    rows = reader.rows(_OFFSET_ROW)
    if rows["tags"].any():
        raise MalformedResponse("tagged fields in a row that has none in its version")
    reader.position += rows.nbytes
    reader.skip_tags()
    return _checked(PartitionOffsets(rows["partition"], rows["offset"], rows["error"]))


def _checked(offsets: PartitionOffsets) -> PartitionOffsets:
    """A negative partition would count from the end of a column."""
    if (offsets.partition < 0).any():
        raise MalformedResponse("a partition with a negative number")
    return offsets


@contextmanager
def _malformed_as_ours() -> Iterator[None]:
    """Whatever a broker sends, what comes out is an answer or one kind of error."""
    try:
        yield
    except (struct.error, IndexError, ValueError, UnicodeDecodeError) as error:
        raise MalformedResponse(str(error)) from error


@dataclass(slots=True)
class _Reader:
    """A place in a response; every step is checked against its end, so that no length asks for more than is there."""

    body: bytes
    position: int

    def unpack(self, form: Struct) -> tuple[int, ...]:
        values = form.unpack_from(self.body, self.position)
        self.position += form.size
        return values

    def int16(self) -> int:
        return self.unpack(_INT16)[0]

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

    def text(self) -> str:
        length = self.varint() - 1
        begin, self.position = self.position, self.position + length
        if length < 0 or self.position > len(self.body):
            raise MalformedResponse("a name that is longer than the response, or none")
        # A group id may be any bytes; what is no text is shown as such and matches nothing that people write.
        return self.body[begin : self.position].decode("utf-8", "surrogateescape")

    def skip_text(self) -> None:
        self._skip(max(self.varint() - 1, 0))

    def skip_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self._skip(self.varint())

    def _skip(self, size: int) -> None:
        if size > len(self.body) - self.position:
            raise MalformedResponse("a field that is longer than the response")
        self.position += size

    def rows(self, form: np.dtype[np.void]) -> NDArray[np.void]:
        """The next elements as if they had no variable part; the place stays before them."""
        count = self.count(least_bytes=form.itemsize)
        return np.frombuffer(self.body, dtype=form, count=count, offset=self.position)
