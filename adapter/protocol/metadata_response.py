"""Parses Metadata responses and returns the previous value if nothing has changed."""

import hashlib
from struct import Struct
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from adapter.cluster.topics import Topic, Topology, sharing
from adapter.protocol.apis import FIRST_WITH_TOPIC_IDS, METADATA
from adapter.protocol.codes import TOPIC_NOT_AUTHORIZED, MalformedResponse
from adapter.protocol.offset_responses import THROTTLE_BYTES
from adapter.protocol.reader import Reader, malformed_as_ours, reader_of

MOST_BROKERS = 1000
"""Each takes a connection."""
_BROKER_BYTES, _TOPIC_BYTES = 11, 6
"""The minimum size of each in any version, with empty texts and lists and without tagged fields."""
_ROW, _ROW_WITHOUT_EPOCH = Struct(">2x3i"), Struct(">2x2i")
"""A partition's row: its error, partition, leader and epoch; then replicas, in-sync and offline ones; tagged fields."""
_LISTS_PER_ROW = 3
_INT32_BYTES, _ID_BYTES, _IS_INTERNAL_BYTES = 4, 16, 1


class LatestTopology:
    """The latest response, so that an identical one is not parsed again, whichever node sends it."""

    def __init__(self) -> None:
        self._fingerprint = b""
        self._topology = Topology()

    def topology(self, body: bytes, version: int = METADATA.newest) -> Topology:
        """Returns the known objects for what has not changed. Raises MalformedResponse."""
        fingerprint = _fingerprint(body, version)
        if fingerprint != self._fingerprint:
            self._topology, self._fingerprint = sharing(self._topology, topology_in(body, version)), fingerprint
        return self._topology


def _fingerprint(body: bytes, version: int) -> bytes:
    """Excludes the throttle time and the controller, for which KRaft brokers name a random broker."""
    with malformed_as_ours():
        reader = _reader(body, version)
        _brokers(reader)
        before, after = memoryview(body)[THROTTLE_BYTES : reader.position], reader.position + _INT32_BYTES
    digest = hashlib.blake2b(before, digest_size=16, salt=bytes([version]))
    digest.update(memoryview(body)[after:])
    return digest.digest()


def topology_in(body: bytes, version: int = METADATA.newest) -> Topology:
    """Omits topics without partitions, such as those with an error of their own. Raises MalformedResponse."""
    with malformed_as_ours():
        reader, topics, hidden = _reader(body, version), dict[str, Topic](), list[str]()
        brokers = _brokers(reader)
        reader.skip(_INT32_BYTES)
        for _ in range(reader.count(_TOPIC_BYTES)):
            _walk_topic(reader, version, topics, hidden)
        if 8 <= version <= 10:
            reader.skip(_INT32_BYTES)  # authorized operations
        reader.skip_tags()
    return Topology(brokers, topics, hidden=frozenset(hidden))


def _reader(body: bytes, version: int) -> Reader:
    return reader_of(body, THROTTLE_BYTES, is_flexible=METADATA.is_flexible(version))


def _brokers(reader: Reader) -> dict[int, str]:
    """Returns node -> `host:port`; the reader stops at the controller."""
    brokers = {}
    count = reader.count(_BROKER_BYTES)
    if count > MOST_BROKERS:
        raise MalformedResponse(f"{count:,} brokers")
    for _ in range(count):
        node, host, port = reader.int32(), reader.text("strict"), reader.int32()
        brokers[node] = f"{host}:{port}"
        reader.skip_text()  # rack
        reader.skip_tags()
    reader.skip_text()  # cluster id
    return brokers


def _walk_topic(reader: Reader, version: int, topics: dict[str, Topic], hidden: list[str]) -> None:
    error, name = reader.int16(), reader.text("strict")
    topic_id = b""
    if version >= FIRST_WITH_TOPIC_IDS:
        topic_id = reader.body[reader.position : reader.position + _ID_BYTES]
        reader.skip(_ID_BYTES)
    reader.skip(_IS_INTERNAL_BYTES)
    row = _ROW if version >= 7 else _ROW_WITHOUT_EPOCH
    count = reader.count(row.size + _LISTS_PER_ROW)
    if count:
        topics[name] = Topic(str(UUID(bytes=topic_id)) if any(topic_id) else None, *_leaders(reader, count, row))
    if error == TOPIC_NOT_AUTHORIZED:
        hidden.append(name)
    if version >= 8:
        reader.skip(_INT32_BYTES)  # authorized operations
    reader.skip_tags()


def _leaders(reader: Reader, count: int, row: Struct) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
    """Returns leaders and epochs by partition; None: the version has no epochs."""
    rows = []
    for _ in range(count):
        rows.append(row.unpack_from(reader.body, reader.position))
        reader.skip(row.size)
        for _ in range(_LISTS_PER_ROW):
            reader.skip(_INT32_BYTES * max(reader.list_length(), 0))
        reader.skip_tags()
    partitions, *columns = zip(*sorted(rows), strict=True)
    if partitions != tuple(range(count)):
        raise MalformedResponse("a topic whose partitions are not numbered from 0 on")
    leaders, *epochs = (np.array(column, dtype=np.int32) for column in columns)
    return leaders, epochs[0] if epochs else None
