"""Parses Metadata responses of version 11 and returns the previous value if nothing has changed."""

import hashlib
from struct import Struct
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from adapter.cluster.topics import Topic, Topology, sharing
from adapter.protocol.codes import TOPIC_NOT_AUTHORIZED, MalformedResponse
from adapter.protocol.offset_responses import THROTTLE_BYTES
from adapter.protocol.reader import Reader, malformed_as_ours

MOST_BROKERS = 1000
"""Each takes a connection."""
_BROKER_BYTES, _TOPIC_BYTES = 11, 26
"""The minimum size of each, with empty texts and lists and without tagged fields."""
_ROW, _LISTS_PER_ROW = Struct(">2x3i"), 3
"""A partition's row: its error, partition, leader and epoch; then replicas, in-sync and offline ones; tagged fields."""
_INT32_BYTES, _ID_BYTES, _IS_INTERNAL_BYTES = 4, 16, 1


class LatestTopology:
    """The latest response, so that an identical one is not parsed again, whichever node sends it."""

    def __init__(self) -> None:
        self._fingerprint = b""
        self._topology = Topology()

    def topology(self, body: bytes) -> Topology:
        """Returns the known objects for what has not changed. Raises MalformedResponse."""
        fingerprint = _fingerprint(body)
        if fingerprint != self._fingerprint:
            self._topology, self._fingerprint = sharing(self._topology, topology_in(body)), fingerprint
        return self._topology


def _fingerprint(body: bytes) -> bytes:
    """Excludes the throttle time and the controller, for which KRaft brokers name a random broker."""
    with malformed_as_ours():
        reader = Reader(body, THROTTLE_BYTES)
        _brokers(reader)
        before, after = memoryview(body)[THROTTLE_BYTES : reader.position], reader.position + _INT32_BYTES
    digest = hashlib.blake2b(before, digest_size=16)
    digest.update(memoryview(body)[after:])
    return digest.digest()


def topology_in(body: bytes) -> Topology:
    """Omits topics without partitions, such as those with an error of their own. Raises MalformedResponse."""
    with malformed_as_ours():
        reader, topics, hidden = Reader(body, THROTTLE_BYTES), dict[str, Topic](), list[str]()
        brokers = _brokers(reader)
        reader.skip(_INT32_BYTES)
        for _ in range(reader.count(_TOPIC_BYTES)):
            _walk_topic(reader, topics, hidden)
        reader.skip_tags()
    return Topology(brokers, topics, hidden=frozenset(hidden))


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


def _walk_topic(reader: Reader, topics: dict[str, Topic], hidden: list[str]) -> None:
    error, name = reader.int16(), reader.text("strict")
    topic_id = reader.body[reader.position : reader.position + _ID_BYTES]
    reader.skip(_ID_BYTES + _IS_INTERNAL_BYTES)
    count = reader.count(_ROW.size + _LISTS_PER_ROW + 1)
    if count:
        topics[name] = Topic(str(UUID(bytes=topic_id)) if any(topic_id) else None, *_leaders(reader, count))
    if error == TOPIC_NOT_AUTHORIZED:
        hidden.append(name)
    reader.skip(_INT32_BYTES)  # authorized operations
    reader.skip_tags()


def _leaders(reader: Reader, count: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Returns leaders and epochs by partition."""
    rows = []
    for _ in range(count):
        rows.append(_ROW.unpack_from(reader.body, reader.position))
        reader.skip(_ROW.size)
        for _ in range(_LISTS_PER_ROW):
            reader.skip(_INT32_BYTES * max(reader.varint() - 1, 0))
        reader.skip_tags()
    partitions, leaders, epochs = zip(*sorted(rows), strict=True)
    if partitions != tuple(range(count)):
        raise MalformedResponse("a topic whose partitions are not numbered from 0 on")
    return np.array(leaders, dtype=np.int32), np.array(epochs, dtype=np.int32)
