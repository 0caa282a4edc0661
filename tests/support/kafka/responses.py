"""Responses as a broker sends them, encoded by the library: what fakes answer, and what decoders are tried with."""

from collections.abc import Mapping, Sequence

from kafka.protocol.consumer import ListOffsetsResponse, OffsetFetchResponse

Row = tuple[int, int, int]
"""Partition, offset, error."""

Group = OffsetFetchResponse.OffsetFetchResponseGroup
Commits = Group.OffsetFetchResponseTopics
Commit = Commits.OffsetFetchResponsePartitions
Offsets = ListOffsetsResponse.ListOffsetsTopicResponse
Offset = Offsets.ListOffsetsPartitionResponse


def offset_fetch(groups: Mapping[str, tuple[int, Mapping[str, Sequence[Row]]]]) -> bytes:
    """Group -> its error, and its rows by topic."""
    made = [
        Group(group_id=name, error_code=error, topics=[_commits(topic, rows) for topic, rows in topics.items()])
        for name, (error, topics) in groups.items()
    ]
    return bytes(OffsetFetchResponse(throttle_time_ms=0, groups=made, version=8).encode())


def _commits(topic: str, rows: Sequence[Row]) -> object:
    made = [
        Commit(partition_index=index, committed_offset=offset, committed_leader_epoch=0, metadata="", error_code=error)
        for index, offset, error in rows
    ]
    return Commits(name=topic, partitions=made)


def list_offsets(topics: Mapping[str, Sequence[Row]]) -> bytes:
    """Rows by topic."""
    made = [Offsets(name=topic, partitions=[_offset(*row) for row in rows]) for topic, rows in topics.items()]
    return bytes(ListOffsetsResponse(throttle_time_ms=0, topics=made, version=7).encode())


def _offset(index: int, offset: int, error: int) -> object:
    return Offset(partition_index=index, error_code=error, timestamp=-1, offset=offset, leader_epoch=0)
