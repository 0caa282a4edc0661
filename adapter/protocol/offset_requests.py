"""OffsetFetch, ListOffsets and Metadata requests with bodies that are already encoded.

These requests or their responses have a row per partition, so they are encoded in blocks and their responses are kept
as bytes; all other requests use the library's classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from adapter.protocol.apis import FIRST_WITH_GROUPS, FIRST_WITH_TOPIC_IDS, LIST_OFFSETS, METADATA, OFFSET_FETCH, Api
from adapter.protocol.encoding import Encoding
from adapter.settings.models import Isolation

_HEAD = Struct(">hhih")
_INT32 = Struct(">i")
_NO, _YES = b"\0", b"\1"
_NO_TOPIC_ID = bytes(16)

_ANY_LEADER_EPOCH = -1

Partitions = Sequence[int] | NDArray[np.integer]


class RawRequest:
    """A request with an encoded body, in the shape that the library's connection expects."""

    def __init__(self, api: Api, version: int, body: bytes) -> None:
        self.API_KEY = api.key
        self.API_VERSION = version
        self.encoding = Encoding(api.is_flexible(version))
        self.header = RawHeader(0, version, self.encoding)
        self._client_id = b""
        self.body = body

    def with_header(self, correlation_id: int, client_id: str) -> None:
        self.header = RawHeader(correlation_id, self.API_VERSION, self.encoding)
        self._client_id = client_id.encode()

    def encode(self, *, framed: bool, header: bool) -> bytes:
        """Returns the frame; the library always asks for frame and header."""
        assert framed
        assert header
        head = _HEAD.pack(self.API_KEY, self.API_VERSION, self.header.correlation_id, len(self._client_id))
        payload = b"".join((head, self._client_id, self.encoding.no_tags, self.body))
        return _INT32.pack(len(payload)) + payload

    def expect_response(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class RawResponse:
    """A response's body, unparsed: it is decoded outside the library's IO thread, where we handle the errors."""

    body: bytes
    version: int
    throttle_time_ms: int


@dataclass(frozen=True, slots=True)
class RawHeader:
    """What the library's parser needs to know about a pending request, and how it reads the response."""

    correlation_id: int
    version: int
    encoding: Encoding

    def get_response_class(self) -> "RawHeader":
        return self

    def parse_header(self, data: BinaryIO) -> "RawHeader":
        correlation_id = _INT32.unpack(data.read(4))[0]
        data.read(len(self.encoding.no_tags))
        return RawHeader(correlation_id, self.version, self.encoding)

    def decode(self, data: BinaryIO) -> RawResponse:
        body = bytes(data.read())
        # All these responses begin with the throttle time.
        return RawResponse(body, self.version, _INT32.unpack_from(body)[0] if len(body) >= 4 else 0)


def offset_fetch(groups: Sequence[str], version: int = OFFSET_FETCH.newest) -> RawRequest:
    """Requests all commits of each group, of one group before version 8, without waiting for unstable ones."""
    encoding = Encoding(OFFSET_FETCH.is_flexible(version))
    of_all_topics = (encoding.text(group) + encoding.null_list for group in groups)
    # Since version 7. One that is not stable belongs to a transaction that may abort.
    require_stable = _NO if version >= 7 else b""
    if version >= FIRST_WITH_GROUPS:
        asked = [encoding.length(len(groups)), *(group + encoding.no_tags for group in of_all_topics)]
    else:
        (alone,) = of_all_topics
        asked = [alone]
    return RawRequest(OFFSET_FETCH, version, b"".join((*asked, require_stable, encoding.no_tags)))


def list_offsets(
    topics: Mapping[str, Partitions], timestamp: int, isolation: Isolation, version: int = LIST_OFFSETS.newest
) -> RawRequest:
    """Requests one offset of each partition; `timestamp` is -1 for the end, -2 for the start."""
    encoding = Encoding(LIST_OFFSETS.is_flexible(version))
    replica_and_isolation = b"\xff\xff\xff\xff" + (_YES if isolation is Isolation.READ_COMMITTED else _NO)
    row = _asked_row(version)
    blocks = (
        b"".join(
            (
                encoding.text(topic),
                encoding.length(len(partitions)),
                _asked(partitions, timestamp, row),
                encoding.no_tags,
            )
        )
        for topic, partitions in topics.items()
    )
    body = b"".join((replica_and_isolation, encoding.length(len(topics)), *blocks, encoding.no_tags))
    return RawRequest(LIST_OFFSETS, version, body)


def _asked_row(version: int) -> np.dtype[np.void]:
    fields = [
        ("partition", ">i4"),
        *([("epoch", ">i4")] if version >= 4 else []),
        ("timestamp", ">i8"),
        *([("tags", "u1")] if LIST_OFFSETS.is_flexible(version) else []),
    ]
    return np.dtype(fields)


def _asked(partitions: Partitions, timestamp: int, row: np.dtype[np.void]) -> bytes:
    rows = np.zeros(len(partitions), dtype=row)
    rows["partition"], rows["timestamp"] = partitions, timestamp
    if row.names and "epoch" in row.names:
        rows["epoch"] = _ANY_LEADER_EPOCH
    return rows.tobytes()


def metadata(topics: Sequence[str] | None, version: int = METADATA.newest) -> RawRequest:
    """Requests these topics, or all, without creating any and without authorized operations."""
    encoding = Encoding(METADATA.is_flexible(version))
    topic_id = _NO_TOPIC_ID if version >= FIRST_WITH_TOPIC_IDS else b""
    named = [topic_id + encoding.text(topic) + encoding.no_tags for topic in topics or ()]
    count = encoding.null_list if topics is None else encoding.length(len(named))
    make_them = _NO
    of_cluster, of_topics = _NO if 8 <= version <= 10 else b"", _NO if version >= 8 else b""
    return RawRequest(METADATA, version, b"".join((count, *named, make_them, of_cluster, of_topics, encoding.no_tags)))
