"""Metadata responses of version 11: bytes -> what exists, and the same value as before for the same bytes.

No IO, no `import kafka`. A row is a partition's: error 2, partition 4, leader 4, epoch 4, then the lists of replicas,
of those in sync and of those offline, then tagged fields. Python walks over topics; over rows only where their lists
are not all of one size, as while a broker is down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from adapter.cluster.topics import Topic, Topology, sharing
from adapter.protocol.codes import TOPIC_NOT_AUTHORIZED, MalformedResponse
from adapter.protocol.offset_responses import THROTTLE_BYTES
from adapter.protocol.reader import Reader, malformed_as_ours, values_at

_BROKER_BYTES, _TOPIC_BYTES, _ROW_BYTES = 11, 26, 18
"""The least that each of them takes: texts and lists of nothing, no tagged fields."""
_PARTITION, _LEADER, _EPOCH, _LISTS = 2, 6, 10, 14
_LISTS_PER_ROW = 3
_INT32_BYTES, _ID_BYTES, _IS_INTERNAL_BYTES = 4, 16, 1
_LONG_LENGTH = 0x80
_NO_ID = "00000000-0000-0000-0000-000000000000"


class Descriptions:
    """What nodes said last. A response that some node's last one was to the byte is not read again."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[bytes, Topology]] = {}
        """Node -> the fingerprint of its last response, and what was in it."""

    def topology(self, node: int, body: bytes) -> Topology:
        """The very same value for the same bytes, the same topics in it where others changed.

        Raises MalformedResponse.
        """
        fingerprint = _fingerprint(body)
        known = next((last for last in self._last.values() if last[0] == fingerprint), None)
        if known is None:
            _, newest = next(reversed(self._last.values()), (b"", Topology()))
            known = (fingerprint, sharing(newest, topology_in(body)))
            self._last = {node: last for node, last in self._last.items() if node in known[1].brokers}
        self._last[node] = known
        return known[1]


def _fingerprint(body: bytes) -> bytes:
    """Without the throttle time, and without the controller, for which brokers (KRaft) name any broker each time."""
    with malformed_as_ours():
        reader = Reader(body, THROTTLE_BYTES)
        _brokers(reader)
        before, after = memoryview(body)[THROTTLE_BYTES : reader.position], reader.position + _INT32_BYTES
    told = hashlib.blake2b(before, digest_size=16)
    told.update(memoryview(body)[after:])
    return told.digest()


def topology_in(body: bytes) -> Topology:
    """Topics without partitions, as those with an error of their own are, are left out; raises MalformedResponse."""
    with malformed_as_ours():
        reader, topics = Reader(body, THROTTLE_BYTES), _Topics()
        brokers = _brokers(reader)
        reader.skip(_INT32_BYTES)
        for _ in range(_count(reader, _TOPIC_BYTES)):
            _walk_topic(reader, topics)
        reader.skip_tags()
    return Topology(brokers, topics.by_name(body), hidden=frozenset(topics.hidden))


def _brokers(reader: Reader) -> dict[int, str]:
    """Node -> `host:port`; the place stays at the controller."""
    brokers = dict(_broker(reader) for _ in range(_count(reader, _BROKER_BYTES)))
    reader.skip_text()  # the cluster's id
    return brokers


def _count(reader: Reader, least_bytes: int) -> int:
    """Of a list that must not be null: no brokers, or no topics, would be news."""
    if reader.body[reader.position] == 0:
        raise MalformedResponse("null instead of a list")
    return reader.count(least_bytes)


def _broker(reader: Reader) -> tuple[int, str]:
    node, host, port = reader.int32(), reader.text("strict"), reader.int32()
    reader.skip_text()  # its rack
    reader.skip_tags()
    return node, f"{host}:{port}"


@dataclass(slots=True)
class _Topics:
    """What a walk has found so far: of topics that have partitions, one entry in each list."""

    names: list[str] = field(default_factory=list)
    ids: list[bytes] = field(default_factory=list)
    row_places: list[Sequence[int]] = field(default_factory=list)
    """Where each of the topic's rows begins, in the response's order."""
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
    """Where each row belongs in a column that goes topic by topic, each by partition."""
    partition = values_at(body, row_at + _PARTITION, ">i4").astype(np.int64)
    if ((partition < 0) | (partition >= np.repeat(sizes, sizes))).any():
        raise MalformedResponse("a topic whose partitions are not numbered from 0 on")
    place = np.repeat(first_rows, sizes) + partition
    if (np.bincount(place, minlength=len(place)) > 1).any():
        raise MalformedResponse("a partition that is told twice")
    return place


def _parts(
    body: bytes, value_at: NDArray[np.int64], place: NDArray[np.int64], spans: Sequence[slice]
) -> list[NDArray[np.int32]]:
    """A column's part of each topic; copies, as a part that is kept for long would keep the whole column."""
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
    reader.skip(_INT32_BYTES)  # what we may do with it
    reader.skip_tags()


def _row_places(reader: Reader, count: int) -> Sequence[int]:
    """Where the rows begin; the place stays behind them."""
    body, begin = reader.body, reader.position
    marks = _skip_row(reader)
    length = reader.position - begin
    end = begin + length * count
    if marks and end <= len(body) and all(body[mark:end:length].count(body[mark]) == count for mark in marks):
        reader.position = end
        return range(begin, end, length)
    places = [begin]
    for _ in range(count - 1):
        places.append(reader.position)
        _skip_row(reader)
    return places


def _skip_row(reader: Reader) -> tuple[int, ...]:
    """Where the bytes stand that tell how long the row is, if they are single ones; the place stays behind the row.

    Those are the lengths of its lists and of no tagged fields; none, if something else is told.
    """
    body, place = reader.body, reader.position + _LISTS
    marks = []
    for _ in range(_LISTS_PER_ROW):
        length = body[place]
        if length >= _LONG_LENGTH:
            return _skip_unusual_row(reader)
        marks.append(place)
        # The length on the wire is one more than the list's, 0 for null.
        place += _INT32_BYTES * length - 3 if length else 1
    if body[place]:
        return _skip_unusual_row(reader)
    reader.position = place + 1
    return (*marks, place)


def _skip_unusual_row(reader: Reader) -> tuple[int, ...]:
    reader.skip(_LISTS)
    for _ in range(_LISTS_PER_ROW):
        reader.skip(_INT32_BYTES * reader.count(_INT32_BYTES))
    reader.skip_tags()
    return ()
