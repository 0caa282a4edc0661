"""What brokers answer, encoded by kafka-python's own classes, for the fake brokers."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from kafka.protocol.admin import DescribeGroupsResponse, ListGroupsResponse
from kafka.protocol.consumer import ListOffsetsResponse, OffsetFetchResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.metadata import ApiVersionsResponse, FindCoordinatorResponse, MetadataResponse

from adapter.protocol.apis import FIRST_WITH_GROUPS, FIRST_WITH_KEYS

NO_ERROR, UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER = 0, 3, 5, 6
NO_OFFSET = -1
Place = tuple[str, int]
"""Topic and partition."""
Row = tuple[int, int, int]
"""Partition, offset, error."""
Response = Any
"""The library has no types."""

Broker = MetadataResponse.MetadataResponseBroker
Topic = MetadataResponse.MetadataResponseTopic
Partition = Topic.MetadataResponsePartition
Group = OffsetFetchResponse.OffsetFetchResponseGroup
Commits = Group.OffsetFetchResponseTopics
Commit = Commits.OffsetFetchResponsePartitions
CommitsAlone = OffsetFetchResponse.OffsetFetchResponseTopic
CommitAlone = CommitsAlone.OffsetFetchResponsePartition
Offsets = ListOffsetsResponse.ListOffsetsTopicResponse
Offset = Offsets.ListOffsetsPartitionResponse


def body(response: Response, version: int) -> bytes:
    response.API_VERSION = version
    return bytes(response.encode())


def frame(response: Response, version: int, correlation_id: int = 0) -> bytes:
    response.API_VERSION = version
    response.with_header(correlation_id)
    return bytes(response.encode(header=True, framed=True))


def api_versions(versions: Mapping[int, tuple[int, int]], error: int = NO_ERROR) -> Response:
    """API key -> the lowest and the highest version."""
    keys = [
        ApiVersionsResponse.ApiVersion(api_key=key, min_version=lowest, max_version=highest)
        for key, (lowest, highest) in versions.items()
    ]
    return ApiVersionsResponse(error_code=error, api_keys=keys, throttle_time_ms=0)


def metadata(
    brokers: Mapping[int, tuple[str, int]], topics: Mapping[str, tuple[UUID | None, Sequence[int]]]
) -> Response:
    """Node -> host and port; topic -> its id, and the leader of each partition, negative: none."""
    return MetadataResponse(
        throttle_time_ms=0,
        brokers=[Broker(node_id=node, host=host, port=port, rack=None) for node, (host, port) in brokers.items()],
        cluster_id="fake",
        controller_id=min(brokers),
        topics=[_topic(name, *topic) for name, topic in topics.items()],
    )


def _topic(name: str, topic_id: UUID | None, leaders: Sequence[int]) -> object:
    partitions = [
        Partition(
            error_code=NO_ERROR if leader >= 0 else LEADER_NOT_AVAILABLE, partition_index=index, leader_id=leader,
            leader_epoch=0, replica_nodes=[leader], isr_nodes=[leader], offline_replicas=[],
        )
        for index, leader in enumerate(leaders)
    ]  # fmt: skip
    error = NO_ERROR if leaders else UNKNOWN_TOPIC_OR_PARTITION
    return Topic(error_code=error, name=name, topic_id=topic_id, is_internal=False, partitions=partitions)


def coordinators(brokers: Mapping[int, tuple[str, int]], nodes: Mapping[str, int], version: int = 4) -> Response:
    """Node -> host and port; group -> node, of one group before version 4."""
    if version < FIRST_WITH_KEYS:
        (node,) = nodes.values()
        return FindCoordinatorResponse(
            throttle_time_ms=0, error_code=NO_ERROR, error_message=None, node_id=node, host=brokers[node][0],
            port=brokers[node][1],
        )  # fmt: skip
    made = [
        FindCoordinatorResponse.Coordinator(
            key=group,
            node_id=node,
            host=brokers[node][0],
            port=brokers[node][1],
            error_code=NO_ERROR,
            error_message=None,
        )
        for group, node in nodes.items()
    ]
    return FindCoordinatorResponse(throttle_time_ms=0, coordinators=made)


def listed_groups(groups: Mapping[str, str], error: int = NO_ERROR) -> Response:
    """Group -> its state."""
    listed = [
        ListGroupsResponse.ListedGroup(group_id=name, protocol_type="consumer", group_state=state, group_type="classic")
        for name, state in groups.items()
    ]
    return ListGroupsResponse(throttle_time_ms=0, error_code=error, groups=listed)


def described_groups(groups: Mapping[str, Mapping[str, Sequence[int]]]) -> Response:
    """Group -> the partitions of its one member by topic; without topics, it has no member."""
    made = [
        DescribeGroupsResponse.DescribedGroup(
            error_code=NO_ERROR, group_id=name, group_state="Stable" if topics else "Empty", protocol_type="consumer",
            protocol_data="range", members=[_member(name, topics)] if topics else [],
        )
        for name, topics in groups.items()
    ]  # fmt: skip
    return DescribeGroupsResponse(throttle_time_ms=0, groups=made)


def _member(group: str, topics: Mapping[str, Sequence[int]]) -> object:
    assigned = [(topic, list(indexes)) for topic, indexes in topics.items()]
    return DescribeGroupsResponse.DescribedGroup.DescribedGroupMember(
        member_id=f"{group}-member", client_id=group, client_host="/127.0.0.1",
        member_metadata=ConsumerProtocolSubscription(topics=list(topics), version=0).encode(),
        member_assignment=ConsumerProtocolAssignment(assigned_partitions=assigned, version=0).encode(),
    )  # fmt: skip


def commits(
    groups: Mapping[str, tuple[int, Mapping[str, Sequence[Row]]]], throttle_ms: int = 0, version: int = 8
) -> Response:
    """Group -> its error, and its rows by topic; of one group before version 8."""
    if version < FIRST_WITH_GROUPS:
        ((error, topics),) = groups.values()
        alone = [_commits_alone(topic, rows) for topic, rows in topics.items()]
        return OffsetFetchResponse(throttle_time_ms=throttle_ms, topics=alone, error_code=error)
    made = [
        Group(group_id=name, error_code=error, topics=[_commits(topic, rows) for topic, rows in topics.items()])
        for name, (error, topics) in groups.items()
    ]
    return OffsetFetchResponse(throttle_time_ms=throttle_ms, groups=made)


def _commits(topic: str, rows: Sequence[Row]) -> object:
    made = [
        Commit(partition_index=index, committed_offset=offset, committed_leader_epoch=0, metadata="", error_code=error)
        for index, offset, error in rows
    ]
    return Commits(name=topic, partitions=made)


def _commits_alone(topic: str, rows: Sequence[Row]) -> object:
    made = [
        CommitAlone(
            partition_index=index, committed_offset=offset, committed_leader_epoch=0, metadata="", error_code=error
        )
        for index, offset, error in rows
    ]
    return CommitsAlone(name=topic, partitions=made)


def log_offsets(topics: Mapping[str, Sequence[Row]], throttle_ms: int = 0) -> Response:
    """Rows by topic."""
    made = [Offsets(name=topic, partitions=[_offset(*row) for row in rows]) for topic, rows in topics.items()]
    return ListOffsetsResponse(throttle_time_ms=throttle_ms, topics=made)


def _offset(index: int, offset: int, error: int) -> object:
    return Offset(partition_index=index, error_code=error, timestamp=-1, offset=offset, leader_epoch=0)


def by_topic(offsets: Mapping[Place, int], errors: Mapping[Place, int]) -> dict[str, list[Row]]:
    """As on the wire, where partitions come in any order: here the last first."""
    topics: dict[str, list[Row]] = {}
    for topic, index in sorted(offsets, reverse=True):
        error = errors.get((topic, index), NO_ERROR)
        topics.setdefault(topic, []).append((index, NO_OFFSET if error else offsets[topic, index], error))
    return topics
