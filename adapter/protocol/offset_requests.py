"""OffsetFetch, ListOffsets and Metadata requests with bodies that are already encoded.

These requests or their responses have a row per partition, so they are encoded in blocks and their responses are kept
as bytes; all other requests use the library's classes. In Kafka's compact encoding, lengths are unsigned varints of
length + 1, 0 is null, and every structure ends with tagged fields, which are empty (one 0 byte)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from adapter.settings.models import Isolation

OFFSET_FETCH, OFFSET_FETCH_VERSION = 9, 8
"""Deliberately version 8: from 10 on, topics are identified by id, and a request for all topics returns only ids."""
LIST_OFFSETS, LIST_OFFSETS_VERSION = 2, 7
METADATA, METADATA_VERSION = 3, 11
"""Kafka 3.0 has no later version."""

LONGEST_THROTTLE_MS = 60_000
"""More than a quota requires: at most its window, 11 s by default."""

_NO_TAGS = b"\0"
_ALL_TOPICS = b"\0"
_HEAD = Struct(">hhih")
_INT32 = Struct(">i")
_NO_TOPIC_ID = bytes(16)

_ASKED_ROW = np.dtype([("partition", ">i4"), ("epoch", ">i4"), ("timestamp", ">i8"), ("tags", "u1")])
_ANY_LEADER_EPOCH = -1

Partitions = Sequence[int] | NDArray[np.integer]


@dataclass(slots=True)
class RawHeader:
    """What the library's parser needs to know about a pending request."""

    correlation_id: int

    def get_response_class(self) -> type["RawResponse"]:
        return RawResponse


class RawRequest:
    """A request with an encoded body, in the shape that the library's connection expects."""

    def __init__(self, api_key: int, api_version: int, body: bytes) -> None:
        self.API_KEY = api_key
        self.API_VERSION = api_version
        self.header = RawHeader(0)
        self._client_id = b""
        self.body = body

    def with_header(self, correlation_id: int, client_id: str) -> None:
        self.header = RawHeader(correlation_id)
        self._client_id = client_id.encode()

    def encode(self, *, framed: bool, header: bool) -> bytes:
        """Returns the frame; the library always asks for frame and header."""
        assert framed
        assert header
        head = _HEAD.pack(self.API_KEY, self.API_VERSION, self.header.correlation_id, len(self._client_id))
        payload = b"".join((head, self._client_id, _NO_TAGS, self.body))
        return _INT32.pack(len(payload)) + payload

    def expect_response(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class RawResponse:
    """A response's body, unparsed: it is decoded outside the library's IO thread, where we handle the errors."""

    body: bytes
    throttle_time_ms: int

    @classmethod
    def parse_header(cls, data: BinaryIO) -> RawHeader:
        correlation_id = _INT32.unpack(data.read(4))[0]
        data.read(1)
        return RawHeader(correlation_id)

    @classmethod
    def decode(cls, data: BinaryIO) -> "RawResponse":
        body = bytes(data.read())
        # All these responses begin with the throttle time, which the library would obey even if it were 24 days.
        throttle = _INT32.unpack_from(body)[0] if len(body) >= 4 else 0
        return cls(body, min(throttle, LONGEST_THROTTLE_MS))


def offset_fetch(groups: Sequence[str]) -> RawRequest:
    """Requests all commits of each group, without waiting for unstable ones."""
    named = (_compact(group) + _ALL_TOPICS + _NO_TAGS for group in groups)
    require_stable = b"\0"
    body = b"".join((_varint(len(groups) + 1), *named, require_stable, _NO_TAGS))
    return RawRequest(OFFSET_FETCH, OFFSET_FETCH_VERSION, body)


def list_offsets(topics: Mapping[str, Partitions], timestamp: int, isolation: Isolation) -> RawRequest:
    """Requests one offset of each partition; `timestamp` is -1 for the end, -2 for the start."""
    replica_and_isolation = b"\xff\xff\xff\xff" + (b"\1" if isolation is Isolation.READ_COMMITTED else b"\0")
    blocks = (_asked(topic, partitions, timestamp) for topic, partitions in topics.items())
    body = b"".join((replica_and_isolation, _varint(len(topics) + 1), *blocks, _NO_TAGS))
    return RawRequest(LIST_OFFSETS, LIST_OFFSETS_VERSION, body)


def metadata(topics: Sequence[str] | None) -> RawRequest:
    """Requests these topics, or all, without creating any and without authorized operations."""
    named = [_NO_TOPIC_ID + _compact(topic) + _NO_TAGS for topic in topics or ()]
    count = _ALL_TOPICS if topics is None else _varint(len(named) + 1)
    make_them = include_operations = b"\0"
    body = b"".join((count, *named, make_them, include_operations, _NO_TAGS))
    return RawRequest(METADATA, METADATA_VERSION, body)


def _asked(topic: str, partitions: Partitions, timestamp: int) -> bytes:
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
