"""A fake broker's responses: encoded once by kafka-python's own classes, then patched; request frames in, frames out.

A new request is decoded and its response encoded. After that the same bytes return the stored response with the new
correlation id and offsets."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any
from uuid import UUID

import numpy as np
from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse, ListGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    MetadataRequest,
)
from numpy.typing import NDArray

from benchmarks.rig import responses
from benchmarks.rig.responses import NO_ERROR, NO_OFFSET, NOT_LEADER, UNKNOWN_TOPIC_OR_PARTITION, Response, Row
from benchmarks.rig.stored_cluster import FIRST_OFFSET, REFUSED_AFTER, Refusal, StoredCluster, lag_of

HOST = "127.0.0.1"
METADATA_VERSION = 11
EARLIEST = -2
NOT_COORDINATOR, UNSUPPORTED_VERSION = 16, 35
TOPIC_NOT_AUTHORIZED, GROUP_NOT_AUTHORIZED = 29, 30
MOST_KEPT = 200
PATCHED = b"\x5b\xa1\x9c\x3d\xe7\x42\xf0\x86"
"""Placeholder for an offset; nothing else in a response looks like it."""
_PATCHED_NUMBER = int.from_bytes(PATCHED, "big", signed=True)
_HEAD, _INT32 = Struct(">hhi"), Struct(">i")

VERSIONS: dict[type[Any], tuple[int, int]] = {
    ApiVersionsRequest: (0, 4),
    MetadataRequest: (10, METADATA_VERSION),
    ListGroupsRequest: (3, 5),
    DescribeGroupsRequest: (5, 5),
    OffsetFetchRequest: (8, 8),
    ListOffsetsRequest: (7, 7),
}


@dataclass(slots=True)
class Stored:
    """A response as a whole frame, and the positions of its offsets."""

    frame: bytearray
    places: NDArray[np.intp]
    """Eight bytes for each offset: shape (offsets, 8)."""
    offsets: NDArray[np.int64]
    """The offsets when all logs began."""
    answers: int = 0

    def at(self, correlation_id: int, milliseconds: int) -> bytes:
        self.answers += 1
        _INT32.pack_into(self.frame, 4, correlation_id)
        if len(self.places):
            now = (self.offsets + milliseconds).astype(">i8").view(np.uint8)
            np.frombuffer(self.frame, dtype=np.uint8)[self.places] = now.reshape(-1, 8)
        return bytes(self.frame)


class StoredAnswers:
    """One node's responses. `all_topics` is a Metadata response from `metadata_frame`."""

    def __init__(self, cluster: StoredCluster, node: int, all_topics: bytes) -> None:
        self._cluster = cluster
        self._node = node
        self._all_topics = all_topics
        self._kept: OrderedDict[bytes, Stored] = OrderedDict()
        self._makers: dict[int, tuple[type[Any], Callable[[Any], tuple[Any, list[int]]]]] = {
            ApiVersionsRequest.API_KEY: (ApiVersionsRequest, self._api_versions),
            MetadataRequest.API_KEY: (MetadataRequest, self._metadata),
            ListGroupsRequest.API_KEY: (ListGroupsRequest, self._list_groups),
            DescribeGroupsRequest.API_KEY: (DescribeGroupsRequest, self._describe_groups),
            OffsetFetchRequest.API_KEY: (OffsetFetchRequest, self._offset_fetch),
            ListOffsetsRequest.API_KEY: (ListOffsetsRequest, self._list_offsets),
        }

    def answer(self, request: bytes) -> bytes:
        """Returns the response to a request, both as whole frames; raises KeyError for an unknown kind."""
        api_key, version, correlation_id = _HEAD.unpack_from(request, 4)
        key = request[4:8] + request[12:]
        stored = self._kept.get(key)
        if stored is None or self._is_to_be_refused(api_key, stored):
            stored = self._kept[key] = self._made(api_key, version, request, is_refused=stored is not None)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return stored.at(correlation_id, int((time.monotonic() - self._cluster.began) * 1000))

    def _is_to_be_refused(self, api_key: int, stored: Stored) -> bool:
        """True once: the response made then is refused from then on."""
        refused = {Refusal.GROUPS: OffsetFetchRequest, Refusal.TOPICS: ListOffsetsRequest}
        refusal = self._cluster.refusal
        return refusal is not None and api_key == refused[refusal].API_KEY and stored.answers == REFUSED_AFTER

    def _made(self, api_key: int, version: int, request: bytes, *, is_refused: bool) -> Stored:
        kind, make = self._makers[api_key]
        lowest, highest = VERSIONS[kind]
        if kind is ApiVersionsRequest and not lowest <= version <= highest:
            return stored(responses.api_versions({}, UNSUPPORTED_VERSION), 0)
        if not lowest <= version <= highest:
            raise KeyError(f"{kind.__name__} of version {version}")
        asked = kind.decode(request, version=version, header=True, framed=True)
        if kind is MetadataRequest and asked.topics is None and version == METADATA_VERSION:
            return Stored(bytearray(self._all_topics), _no_places(), np.empty(0, dtype=np.int64))
        response, offsets = (self._refused if is_refused else make)(asked)
        made = stored(response, version, offsets)
        made.answers = REFUSED_AFTER + 1 if is_refused else 0
        return made

    # -- what there is ---------------------------------------------------------------------------

    def _api_versions(self, _asked: Any) -> tuple[Response, list[int]]:  # noqa: ANN401 - the library has no types
        return responses.api_versions({kind.API_KEY: versions for kind, versions in VERSIONS.items()}), []

    def _metadata(self, asked: Any) -> tuple[Response, list[int]]:  # noqa: ANN401
        topics = list(self._cluster.topics) if asked.topics is None else [topic.name for topic in asked.topics]
        return _metadata_of(self._cluster, topics), []

    def _list_groups(self, _asked: Any) -> tuple[Response, list[int]]:  # noqa: ANN401
        own = [group for group, node in self._cluster.coordinators.items() if node == self._node]
        return responses.listed_groups(own, "Stable"), []

    def _describe_groups(self, asked: Any) -> tuple[Any, list[int]]:  # noqa: ANN401
        described = [
            DescribeGroupsResponse.DescribedGroup(
                error_code=NO_ERROR, group_id=group, group_state="Stable", protocol_type="consumer",
                protocol_data="range", members=[self._member(group)],
            )
            for group in asked.groups
        ]  # fmt: skip
        return DescribeGroupsResponse(throttle_time_ms=0, groups=described), []

    def _member(self, name: str) -> Any:  # noqa: ANN401
        group = self._cluster.by_name[name]
        everything = [(topic, list(range(group.partitions))) for topic in group.topic_names]
        return DescribeGroupsResponse.DescribedGroup.DescribedGroupMember(
            member_id=f"{name}-member", client_id=name, client_host="/127.0.0.1",
            member_metadata=ConsumerProtocolSubscription(topics=group.topic_names, version=0).encode(),
            member_assignment=ConsumerProtocolAssignment(assigned_partitions=everything, version=0).encode(),
        )  # fmt: skip

    def _refused(self, asked: Any) -> tuple[Response, list[int]]:  # noqa: ANN401
        """Returns a response without offsets: each group or partition has the error of a missing permission."""
        if isinstance(asked, OffsetFetchRequest):
            return responses.commits({group.group_id: (GROUP_NOT_AUTHORIZED, {}) for group in asked.groups}), []
        refused = {
            topic.name: [(part.partition_index, NO_OFFSET, TOPIC_NOT_AUTHORIZED) for part in topic.partitions]
            for topic in asked.topics
        }
        return responses.log_offsets(refused), []

    # -- offsets ---------------------------------------------------------------------------------

    def _offset_fetch(self, asked: Any) -> tuple[Response, list[int]]:  # noqa: ANN401
        offsets: list[int] = []
        assert all(group.topics is None for group in asked.groups), "a fake broker knows requests for all topics"
        groups = {group.group_id: self._commits_of(group.group_id, offsets) for group in asked.groups}
        return responses.commits(groups), offsets

    def _commits_of(self, name: str, offsets: list[int]) -> tuple[int, dict[str, list[Row]]]:
        """Error, and rows by topic."""
        if self._cluster.coordinators.get(name) != self._node:
            return NOT_COORDINATOR, {}
        group = self._cluster.by_name[name]
        places = range(group.partitions)
        offsets += (FIRST_OFFSET - lag_of(index) for _ in group.topic_names for index in places)
        return NO_ERROR, {
            topic: [(index, _PATCHED_NUMBER, NO_ERROR) for index in places] for topic in group.topic_names
        }

    def _list_offsets(self, asked: Any) -> tuple[Response, list[int]]:  # noqa: ANN401
        offsets: list[int] = []
        topics = {
            topic.name: [self._offset_of(topic.name, part, offsets) for part in topic.partitions]
            for topic in asked.topics
        }
        return responses.log_offsets(topics), offsets

    def _offset_of(self, topic: str, asked: Any, offsets: list[int]) -> Row:  # noqa: ANN401
        index = asked.partition_index
        if index >= self._cluster.topics.get(topic, (0, 0))[1]:
            return index, NO_OFFSET, UNKNOWN_TOPIC_OR_PARTITION
        if self._cluster.leader(topic, index) != self._node:
            return index, NO_OFFSET, NOT_LEADER
        if asked.timestamp == EARLIEST:
            return index, 0, NO_ERROR
        offsets.append(FIRST_OFFSET)
        return index, _PATCHED_NUMBER, NO_ERROR


def metadata_frame(cluster: StoredCluster) -> bytes:
    """The response about all topics is the same for all nodes and slow to encode, so it is encoded once."""
    return responses.frame(_metadata_of(cluster, list(cluster.topics)), METADATA_VERSION)


def _metadata_of(cluster: StoredCluster, topics: Sequence[str]) -> Response:
    brokers = {node: (HOST, port) for node, port in enumerate(cluster.ports, start=1)}
    return responses.metadata(brokers, {topic: _described(cluster, topic) for topic in topics})


def _described(cluster: StoredCluster, topic: str) -> tuple[UUID, list[int]]:
    """Its id and its leaders; none of a topic that is not there."""
    number, size = cluster.topics.get(topic, (0, 0))
    return UUID(int=number + 1), [cluster.leader(topic, index) for index in range(size)]


def stored(response: Response, version: int, offsets: list[int] | None = None) -> Stored:
    """Encodes a response in which PATCHED marks each of the offsets, in this order."""
    frame = responses.frame(response, version)
    places, begin = [], frame.find(PATCHED)
    while begin >= 0:
        places.append(begin)
        begin = frame.find(PATCHED, begin + len(PATCHED))
    if len(places) != len(offsets or ()):
        raise ValueError(f"{len(places)} places for {len(offsets or ())} offsets")
    of_offsets = np.array(places, dtype=np.intp)[:, None] + np.arange(8) if places else _no_places()
    return Stored(bytearray(frame), of_offsets, np.array(offsets or (), dtype=np.int64))


def _no_places() -> NDArray[np.intp]:
    return np.empty((0, 8), dtype=np.intp)
