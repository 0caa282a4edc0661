"""Parses Metadata responses of version 11 and returns the previous value if nothing has changed.

A partition's row has error 2, partition 4, leader 4, epoch 4 bytes, then the lists of replicas, in-sync and offline
replicas, then tagged fields."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from adapter.cluster.topics import Topic, Topology, sharing
from adapter.protocol.codes import TOPIC_NOT_AUTHORIZED, MalformedResponse
from adapter.protocol.offset_responses import SEVERAL_BYTES, THROTTLE_BYTES, after_tags, length_at
from adapter.protocol.reader import Reader, malformed_as_ours, values_at

_BROKER_BYTES, _TOPIC_BYTES, _ROW_BYTES = 11, 26, 18
"""The minimum size of each, with empty texts and lists and without tagged fields."""
_PARTITION, _LEADER, _EPOCH, _LISTS = 2, 6, 10, 14
_LISTS_PER_ROW = 3
_INT32_BYTES, _ID_BYTES, _IS_INTERNAL_BYTES = 4, 16, 1
_NO_ID = "00000000-0000-0000-0000-000000000000"


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
        reader, topics = Reader(body, THROTTLE_BYTES), _Topics()
        brokers = _brokers(reader)
        reader.skip(_INT32_BYTES)
        for _ in range(_count(reader, _TOPIC_BYTES)):
            _walk_topic(reader, topics)
        reader.skip_tags()
    return Topology(brokers, topics.by_name(body), hidden=frozenset(topics.hidden))


def _brokers(reader: Reader) -> dict[int, str]:
    """Returns node -> `host:port`; the reader stops at the controller."""
    brokers = {}
    for _ in range(_count(reader, _BROKER_BYTES)):
        node, host, port = reader.int32(), reader.text("strict"), reader.int32()
        brokers[node] = f"{host}:{port}"
        reader.skip_text()  # rack
        reader.skip_tags()
    reader.skip_text()  # cluster id
    return brokers


def _count(reader: Reader, least_bytes: int) -> int:
    """Reads the length of a list that must not be null."""
    if reader.body[reader.position] == 0:
        raise MalformedResponse("null instead of a list")
    return reader.count(least_bytes)


@dataclass(slots=True)
class _Topics:
    names: list[str] = field(default_factory=list)
    ids: list[bytes] = field(default_factory=list)
    row_places: list[Sequence[int]] = field(default_factory=list)
    """The position of each of the topic's rows, in the order of the response."""
    hidden: list[str] = field(default_factory=list)

    def by_name(self, body: bytes) -> dict[str, Topic]:
        sizes = np.array([len(places) for places in self.row_places], dtype=np.int64)
        ends = np.cumsum(sizes)
        row_at = np.fromiter(chain.from_iterable(self.row_places), dtype=np.int64, count=int(sizes.sum()))
        place = _places(body, row_at, sizes, ends - sizes)
        spans = [slice(end - size, end) for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]
        columns = (_parts(body, row_at + offset, place, spans) for offset in (_LEADER, _EPOCH))
        return dict(zip(self.names, map(Topic, map(_generation, self.ids), *columns), strict=True))


def _places(
    body: bytes, row_at: NDArray[np.int64], sizes: NDArray[np.int64], first_rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Returns each row's index in a column sorted by topic and partition."""
    partition = values_at(body, row_at + _PARTITION, ">i4").astype(np.int64)
    if ((partition < 0) | (partition >= np.repeat(sizes, sizes))).any():
        raise MalformedResponse("a topic whose partitions are not numbered from 0 on")
    place = np.repeat(first_rows, sizes) + partition
    if (np.bincount(place, minlength=len(place)) > 1).any():
        raise MalformedResponse("a duplicate partition")
    return place


def _parts(
    body: bytes, value_at: NDArray[np.int64], place: NDArray[np.int64], spans: Sequence[slice]
) -> list[NDArray[np.int32]]:
    """Returns each topic's part of a column; copies, so that a part does not keep the whole column alive."""
    column = np.empty(len(place), dtype=np.int32)
    column[place] = values_at(body, value_at, ">i4")
    return [column[span].copy() for span in spans]


def _generation(topic_id: bytes) -> str | None:
    digits = topic_id.hex()
    text = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return None if text == _NO_ID else text


def _walk_topic(reader: Reader, topics: _Topics) -> None:
    error, name = reader.int16(), reader.text("strict")
    topic_id = reader.body[reader.position : reader.position + _ID_BYTES]
    reader.skip(_ID_BYTES + _IS_INTERNAL_BYTES)
    count = _count(reader, _ROW_BYTES)
    if count:
        topics.names.append(name)
        topics.ids.append(topic_id)
        topics.row_places.append(_row_places(reader, count))
    if error == TOPIC_NOT_AUTHORIZED:
        topics.hidden.append(name)
    reader.skip(_INT32_BYTES)  # authorized operations
    reader.skip_tags()


def _row_places(reader: Reader, count: int) -> list[int]:
    """Returns where the rows begin, and moves the reader behind them."""
    body, at, places = reader.body, reader.position, []
    for _ in range(count):
        places.append(at)
        at += _LISTS
        for _ in range(_LISTS_PER_ROW):
            length = body[at]
            at += 1
            if length >= SEVERAL_BYTES:
                length, at = length_at(body, at - 1)
            if length:  # one more than the list's; 0 for null
                at += _INT32_BYTES * (length - 1)
        at = at + 1 if body[at] == 0 else after_tags(body, at)
    reader.position = at
    return places
