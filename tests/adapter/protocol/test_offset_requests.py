"""The bytes we write are the library's, what we read from bytes is what the library reads; nothing else gets out."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse, OffsetFetchRequest, OffsetFetchResponse

from adapter.protocol import offset_requests
from adapter.protocol.apis import FIRST_WITH_GROUPS, LIST_OFFSETS, OFFSET_FETCH
from adapter.protocol.codes import GROUP_NOT_FOUND, NO_ERROR, MalformedResponse
from adapter.protocol.encoding import varint
from adapter.protocol.offset_requests import RawRequest
from adapter.protocol.offset_responses import commits_in, offsets_in
from adapter.settings.models import Isolation
from tests.support.kafka import responses
from tests.support.kafka.decoded import GroupCommits, by_group, by_topic, commits_in_bytes, offsets_in_bytes

names = st.text(min_size=1, max_size=40)
int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
partitions = st.lists(st.integers(0, 2**31 - 1), max_size=5)

_Group = OffsetFetchResponse.OffsetFetchResponseGroup
_Commits = _Group.OffsetFetchResponseTopics
_Commit = _Commits.OffsetFetchResponsePartitions
_Offsets = ListOffsetsResponse.ListOffsetsTopicResponse
_Offset = _Offsets.ListOffsetsPartitionResponse

metadata = st.one_of(st.just(""), st.none(), st.text(max_size=300))
commit = st.builds(
    lambda index, offset, epoch, text, error: _Commit(
        partition_index=index, committed_offset=offset, committed_leader_epoch=epoch, metadata=text, error_code=error
    ),
    st.integers(0, 2**31 - 1),
    int64,
    int32,
    metadata,
    int16,
)
commits = st.builds(lambda name, rows: _Commits(name=name, partitions=rows), names, st.lists(commit, max_size=8))
group = st.builds(
    lambda name, topics, error: _Group(group_id=name, topics=topics, error_code=error),
    names,
    st.lists(commits, max_size=4, unique_by=lambda topic: topic.name),
    int16,
)
commit_responses = st.lists(group, max_size=4, unique_by=lambda one: one.group_id).map(
    lambda groups: OffsetFetchResponse(throttle_time_ms=0, groups=groups, version=8)
)
offset = st.builds(
    lambda index, error, timestamp, end, epoch: _Offset(
        partition_index=index, error_code=error, timestamp=timestamp, offset=end, leader_epoch=epoch
    ),
    st.integers(0, 2**31 - 1),
    int16,
    int64,
    int64,
    int32,
)
offset_topics = st.builds(lambda name, rows: _Offsets(name=name, partitions=rows), names, st.lists(offset, max_size=8))
unique_offset_topics = st.lists(offset_topics, max_size=5, unique_by=lambda topic: topic.name)
offset_responses = st.builds(
    lambda topics, version: ListOffsetsResponse(throttle_time_ms=0, topics=topics, version=version),
    unique_offset_topics,
    st.integers(LIST_OFFSETS.oldest, LIST_OFFSETS.newest),
)

_CommitsAlone = OffsetFetchResponse.OffsetFetchResponseTopic
_CommitAlone = _CommitsAlone.OffsetFetchResponsePartition
commit_alone = st.builds(
    lambda index, offset, epoch, text, error: _CommitAlone(
        partition_index=index, committed_offset=offset, committed_leader_epoch=epoch, metadata=text, error_code=error
    ),
    st.integers(0, 2**31 - 1),
    int64,
    int32,
    metadata,
    int16,
)
commits_alone = st.builds(
    lambda name, rows: _CommitsAlone(name=name, partitions=rows), names, st.lists(commit_alone, max_size=8)
)
responses_about_one_group = st.builds(
    lambda topics, error, version: OffsetFetchResponse(
        throttle_time_ms=0, topics=topics, error_code=error, version=version
    ),
    st.lists(commits_alone, max_size=4, unique_by=lambda topic: topic.name),
    int16,
    st.integers(OFFSET_FETCH.oldest, FIRST_WITH_GROUPS - 1),
)


def plain(groups: dict[str, GroupCommits]) -> object:
    return {name: one.plain for name, one in groups.items()}


def framed(request: RawRequest | OffsetFetchRequest | ListOffsetsRequest) -> bytes:
    request.with_header(correlation_id=7, client_id="someone")
    return bytes(request.encode(framed=True, header=True))


@given(st.lists(names, min_size=1, max_size=300))
def test_a_request_for_commits_is_the_library_s_to_the_byte(groups: list[str]) -> None:
    part = OffsetFetchRequest.OffsetFetchRequestGroup
    expected = OffsetFetchRequest(
        groups=[part(group_id=name, topics=None) for name in groups], require_stable=False, version=8
    )

    assert framed(offset_requests.offset_fetch(groups)) == framed(expected)


@pytest.mark.parametrize("version", range(OFFSET_FETCH.oldest, FIRST_WITH_GROUPS))
def test_a_request_for_the_commits_of_one_group_is_the_library_s_to_the_byte(version: int) -> None:
    expected = OffsetFetchRequest(group_id="übersee", topics=None, require_stable=False, version=version)

    assert framed(offset_requests.offset_fetch(["übersee"], version)) == framed(expected)


@given(
    st.dictionaries(names, partitions, max_size=5),
    st.sampled_from([-1, -2]),
    st.sampled_from([*Isolation]),
    st.integers(LIST_OFFSETS.oldest, LIST_OFFSETS.newest),
)
def test_a_request_for_offsets_is_the_library_s_to_the_byte(
    topics: dict[str, list[int]], timestamp: int, isolation: Isolation, version: int
) -> None:
    part = ListOffsetsRequest.ListOffsetsTopic
    expected = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(isolation is Isolation.READ_COMMITTED),
        topics=[
            part(
                name=name,
                partitions=[part.ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in rows],
            )
            for name, rows in topics.items()
        ],
        version=version,
    )

    assert framed(offset_requests.list_offsets(topics, timestamp, isolation, version)) == framed(expected)


@given(commit_responses)
def test_commits_read_from_bytes_are_those_the_library_reads(response: OffsetFetchResponse) -> None:
    body = bytes(response.encode())
    library = OffsetFetchResponse.decode(body, version=8)
    expected = {
        one.group_id: (
            NO_ERROR if one.error_code == GROUP_NOT_FOUND else one.error_code,
            {
                topic.name: [(row.partition_index, row.committed_offset, row.error_code) for row in topic.partitions]
                for topic in one.topics
            },
        )
        for one in library.groups
    }

    assert plain(commits_in_bytes(body)) == expected


@given(responses_about_one_group)
def test_commits_of_one_group_read_from_bytes_are_those_the_library_reads(response: OffsetFetchResponse) -> None:
    body, version = bytes(response.encode()), response.API_VERSION
    library = OffsetFetchResponse.decode(body, version=version)
    error = NO_ERROR if library.error_code == GROUP_NOT_FOUND else library.error_code
    expected = {
        topic.name: [(row.partition_index, row.committed_offset, row.error_code) for row in topic.partitions]
        for topic in library.topics
    }

    assert plain(by_group(commits_in(body, version=version, group="billing"))) == {"billing": (error, expected)}


@given(offset_responses)
def test_offsets_read_from_bytes_are_those_the_library_reads(response: ListOffsetsResponse) -> None:
    body, version = bytes(response.encode()), response.API_VERSION
    library = ListOffsetsResponse.decode(body, version=version)
    expected = {
        topic.name: [(row.partition_index, row.offset, row.error_code) for row in topic.partitions]
        for topic in library.topics
    }

    assert {name: rows.rows for name, rows in by_topic(offsets_in(body, version=version)).items()} == expected


@given(commit_responses, st.integers(0, 2**16))
def test_a_response_that_is_cut_off_is_malformed_or_shorter_never_a_crash(
    response: OffsetFetchResponse, cut: int
) -> None:
    body = bytes(response.encode())
    whole = plain(commits_in_bytes(body))
    try:
        shorter = plain(commits_in_bytes(body[: cut % len(body)]))
    except MalformedResponse:
        return

    assert shorter == whole  # only the last tagged fields, which say nothing, may be missing


@pytest.mark.parametrize("count", [2**28, 2**31 - 1])
def test_a_count_larger_than_the_response_asks_for_no_memory(count: int) -> None:
    body = struct.pack(">i", 0) + varint(count) + b"\0" * 100

    with pytest.raises(MalformedResponse):
        commits_in_bytes(body)


def test_responses_with_the_same_partitions_have_the_same_shape() -> None:
    def commits(offset: int, text: str, topic: str = "orders") -> bytes:
        row = _Commit(partition_index=0, committed_offset=offset, committed_leader_epoch=0, metadata=text, error_code=0)
        of_group = _Group(group_id="app", topics=[_Commits(name=topic, partitions=[row])], error_code=0)
        return bytes(OffsetFetchResponse(throttle_time_ms=0, groups=[of_group], version=8).encode())

    def ends(offset: int, index: int = 0) -> bytes:
        return responses.body(responses.log_offsets({"orders": [(index, offset, 0)]}), 7)

    of_commits, of_ends = commits_in(commits(7, "AQ==")).shape, offsets_in(ends(7)).shape
    assert commits_in(commits(8, "Ag=="), of_commits).shape is of_commits
    assert commits_in(commits(8, "AQ==", "refunds"), of_commits).shape.topics == ("refunds",)
    assert offsets_in(ends(8), of_ends).shape is of_ends
    assert offsets_in(ends(8, index=1), of_ends).shape.partition.tolist() == [1]


@pytest.mark.parametrize("version", [5, 7])
def test_responses_about_one_group_have_the_same_shape_whatever_its_metadata_says(version: int) -> None:
    def commits(offset: int, text: str | None) -> bytes:
        row = _CommitAlone(
            partition_index=0, committed_offset=offset, committed_leader_epoch=0, metadata=text, error_code=0
        )
        topics = [_CommitsAlone(name="orders", partitions=[row])]
        return bytes(OffsetFetchResponse(throttle_time_ms=0, topics=topics, error_code=0, version=version).encode())

    shape = commits_in(commits(7, "AQ=="), version=version, group="app").shape
    again = commits_in(commits(8, "Ag=="), shape, version, "app")
    assert (again.shape is shape, again.offset.tolist()) == (True, [8])


def test_a_group_that_is_not_found_has_committed_nothing() -> None:
    body = bytes(
        OffsetFetchResponse(
            throttle_time_ms=0, groups=[_Group(group_id="g", topics=[], error_code=GROUP_NOT_FOUND)], version=8
        ).encode()
    )

    assert plain(commits_in_bytes(body)) == {"g": (NO_ERROR, {})}


def test_a_group_id_that_is_no_text_survives() -> None:
    body = struct.pack(">i", 0) + b"\x02" + b"\x03\xff\xfe" + b"\x01" + struct.pack(">h", 0) + b"\0\0"

    assert list(commits_in_bytes(body)) == ["\udcff\udcfe"]


def test_a_partition_with_a_negative_number_makes_a_response_malformed() -> None:
    rows = [_Offset(partition_index=-1, error_code=0, timestamp=-1, offset=5, leader_epoch=0)]
    response = ListOffsetsResponse(throttle_time_ms=0, topics=[_Offsets(name="t", partitions=rows)], version=7)

    with pytest.raises(MalformedResponse, match="negative"):
        offsets_in_bytes(bytes(response.encode()))
