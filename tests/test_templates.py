"""The short way through a response of a known shape gives what the general way gives, and what the library reads."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import ListOffsetsResponse, OffsetFetchResponse

from adapter import responses as walking
from adapter.responses import Columns
from adapter.templates import Template, commits_in, offsets_in
from adapter.wire import GROUP_NOT_FOUND, MalformedResponse
from tests import decoded, responses

Decode = Callable[[bytes, Template | None], tuple[Columns, Template]]

names = st.text(min_size=1, max_size=20)
int16, int32, int64 = (st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (16, 32, 64))
indexes = st.integers(0, 2**31 - 1)
metadata = st.one_of(st.just(""), st.just(""), st.none(), st.text(max_size=30))


def commit(index: int, offset: int, epoch: int, text: str | None, error: int) -> object:
    return responses.Commit(
        partition_index=index, committed_offset=offset, committed_leader_epoch=epoch, metadata=text, error_code=error
    )


def offset(index: int, error: int, timestamp: int, end: int, epoch: int) -> object:
    return responses.Offset(
        partition_index=index, error_code=error, timestamp=timestamp, offset=end, leader_epoch=epoch
    )


topics = st.lists(
    st.builds(
        lambda name, rows: responses.Commits(name=name, partitions=rows),
        names,
        st.lists(st.builds(commit, indexes, int64, int32, metadata, int16), max_size=6),
    ),
    max_size=4,
)
commit_bodies = st.builds(
    lambda throttle, groups: OffsetFetchResponse(throttle_time_ms=throttle, groups=groups, version=8),
    int32,
    st.lists(
        st.builds(lambda n, t, e: responses.Group(group_id=n, topics=t, error_code=e), names, topics, int16), max_size=4
    ),
)
offset_bodies = st.builds(
    lambda throttle, rows: ListOffsetsResponse(throttle_time_ms=throttle, topics=rows, version=7),
    int32,
    st.lists(
        st.builds(
            lambda name, rows: responses.Offsets(name=name, partitions=rows),
            names,
            st.lists(st.builds(offset, indexes, int16, int64, int64, int32), max_size=6),
        ),
        max_size=5,
    ),
)
fresh = st.tuples(int64, int32, int16, int64)


def plain(columns: Columns) -> object:
    shape = columns.shape
    return (
        shape.groups,
        shape.group.tolist(),
        shape.topics,
        shape.sizes.tolist(),
        shape.partition.tolist(),
        columns.offset.tolist(),
        columns.error.tolist(),
        columns.group_error.tolist(),
    )


def outcome(decode: Decode, body: bytes, known: Template | None) -> object:
    try:
        return plain(decode(body, known)[0])
    except MalformedResponse:
        return "malformed"


@given(commit_bodies, st.lists(fresh, min_size=1, max_size=40), st.data())
def test_commits_of_the_same_shape_are_read_as_any_others(
    response: OffsetFetchResponse, numbers: list[tuple[int, int, int, int]], data: st.DataObject
) -> None:
    columns, template = commits_in(bytes(response.encode()))
    response.throttle_time_ms = data.draw(int32)
    rows = [row for group in response.groups for topic in group.topics for row in topic.partitions]
    for place, row in enumerate(rows):
        row.committed_offset, row.committed_leader_epoch, row.error_code, _ = numbers[place % len(numbers)]
        row.metadata = row.metadata and "x" * len(row.metadata.encode())
    for place, group in enumerate(response.groups):
        group.error_code = numbers[place % len(numbers)][2]
    body = bytes(response.encode())
    again, same = commits_in(body, template)
    library = OffsetFetchResponse.decode(body, version=8)

    assert same is template
    assert again.shape is columns.shape
    assert plain(again) == plain(commits_in(body)[0])
    assert again.offset.tolist() == [
        row.committed_offset for group in library.groups for topic in group.topics for row in topic.partitions
    ]
    assert again.group_error.tolist() == [
        0 if group.error_code == GROUP_NOT_FOUND else group.error_code for group in library.groups
    ]


@given(offset_bodies, st.lists(fresh, min_size=1, max_size=40), st.data())
def test_offsets_of_the_same_shape_are_read_as_any_others(
    response: ListOffsetsResponse, numbers: list[tuple[int, int, int, int]], data: st.DataObject
) -> None:
    columns, template = offsets_in(bytes(response.encode()))
    response.throttle_time_ms = data.draw(int32)
    rows = [row for topic in response.topics for row in topic.partitions]
    for place, row in enumerate(rows):
        row.offset, row.leader_epoch, row.error_code, row.timestamp = numbers[place % len(numbers)]
    body = bytes(response.encode())
    again, same = offsets_in(body, template)
    library = ListOffsetsResponse.decode(body, version=7)

    assert same is template
    assert again.shape is columns.shape
    assert plain(again) == plain(offsets_in(body)[0])
    assert list(zip(again.offset.tolist(), again.error.tolist(), strict=True)) == [
        (row.offset, row.error_code) for topic in library.topics for row in topic.partitions
    ]


@given(commit_bodies, st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=4), st.integers(0, 9))
def test_commits_changed_in_any_byte_or_cut_off_are_read_as_without_a_template(
    response: OffsetFetchResponse, changes: list[tuple[int, int]], cut: int
) -> None:
    body = bytes(response.encode())
    mutated = changed(body, changes, cut)

    assert outcome(commits_in, mutated, commits_in(body)[1]) == outcome(commits_in, mutated, None)


@given(offset_bodies, st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=4), st.integers(0, 9))
def test_offsets_changed_in_any_byte_or_cut_off_are_read_as_without_a_template(
    response: ListOffsetsResponse, changes: list[tuple[int, int]], cut: int
) -> None:
    body = bytes(response.encode())
    mutated = changed(body, changes, cut)

    assert outcome(offsets_in, mutated, offsets_in(body)[1]) == outcome(offsets_in, mutated, None)


def changed(body: bytes, changes: list[tuple[int, int]], cut: int) -> bytes:
    """Some bytes replaced; in one of ten cases the end is missing."""
    made = bytearray(body)
    for place, value in changes:
        made[place % len(made)] = value
    return bytes(made[:-1] if cut == 0 else made)


@given(commit_bodies, commit_bodies)
def test_another_response_is_never_read_by_the_template_of_the_last(
    first: OffsetFetchResponse, second: OffsetFetchResponse
) -> None:
    bodies = bytes(first.encode()), bytes(second.encode())

    assert outcome(commits_in, bodies[1], commits_in(bodies[0])[1]) == outcome(commits_in, bodies[1], None)


def test_a_response_of_a_known_shape_is_not_walked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _, template = commits_in(responses.offset_fetch({"billing": (0, {"orders": [(0, 7, 0)]})}))
    monkeypatch.delattr(walking.Reader, "varint")

    again, _ = commits_in(responses.offset_fetch({"billing": (0, {"orders": [(0, 8, 0)]})}), template)
    assert decoded.by_group(again)["billing"].topics["orders"].rows == [(0, 8, 0)]


def test_metadata_of_another_length_change_the_template_and_not_the_shape() -> None:
    def body(text: str) -> bytes:
        rows = [commit(0, 7, 0, text, 0)]
        group = responses.Group(
            group_id="app", topics=[responses.Commits(name="orders", partitions=rows)], error_code=0
        )
        return bytes(OffsetFetchResponse(throttle_time_ms=0, groups=[group], version=8).encode())

    columns, template = commits_in(body("AQ=="))
    again, other = commits_in(body("AQAAAA=="), template)

    assert other is not template
    assert again.shape is columns.shape
