"""Any change of any bytes in a valid response gives a value or MalformedResponse, and nothing else.

What the library decodes is decoded as its connection does it, where every error closes the connection.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin import DescribeGroupsResponse, ListGroupsResponse

from adapter.cluster.groups import Kind
from adapter.columns import LARGEST_OFFSET, is_offset
from adapter.kafka.group_descriptions import descriptions_in
from adapter.protocol import group_responses
from adapter.protocol.codes import MalformedResponse
from adapter.protocol.offset_responses import Columns, commits_in, offsets_in
from tests.adapter.protocol.test_offset_requests import (
    commit_responses,
    offset_responses,
    responses_about_one_group,
)

_Group = DescribeGroupsResponse.DescribedGroup
_Member = _Group.DescribedGroupMember

LISTING = ListGroupsResponse(
    throttle_time_ms=0,
    error_code=0,
    groups=[
        ListGroupsResponse.ListedGroup(
            group_id=name, protocol_type="consumer", group_state="Stable", group_type="classic"
        )
        for name in ("billing", "mail")
    ],
    version=5,
)
MEMBERSHIP = b"\0\1\0\0\0\1\0\6orders\0\0\0\1\0\0\0\0\0\0\0\0"
DESCRIPTION = DescribeGroupsResponse(
    throttle_time_ms=0,
    groups=[
        _Group(
            error_code=0,
            group_id="billing",
            group_state="Stable",
            protocol_type="consumer",
            protocol_data="range",
            members=[
                _Member(
                    member_id="m",
                    group_instance_id=None,
                    client_id="c",
                    client_host="/127.0.0.1",
                    member_metadata=MEMBERSHIP,
                    member_assignment=MEMBERSHIP,
                )
            ],
        )
    ],
    version=5,
)

change = st.tuples(
    st.sampled_from(["set", "insert", "remove", "cut"]), st.integers(0, 2**20), st.binary(min_size=1, max_size=6)
)
changes = st.lists(change, min_size=1, max_size=4)
Changes = list[tuple[str, int, bytes]]


def changed(body: bytes, how: Changes) -> bytes:
    for kind, where, content in how:
        at = where % (len(body) + 1)
        if kind == "set":
            body = body[:at] + content + body[at + len(content) :]
        elif kind == "insert":
            body = body[:at] + content + body[at:]
        elif kind == "remove":
            body = body[:at] + body[at + len(content) :]
        else:
            body = body[:at]
    return body


def value_or_malformed(decode: Callable[[bytes], Any], body: bytes) -> Any:  # noqa: ANN401 - whatever it decodes to
    try:
        return decode(body)
    except MalformedResponse:
        return None


def by_library(response: Any, read: Callable[[Any], Any]) -> Callable[[bytes], Any]:  # noqa: ANN401
    def decode(body: bytes) -> Any:  # noqa: ANN401
        try:
            decoded = type(response).decode(body, version=response.API_VERSION)
        except Exception:  # noqa: BLE001 - closes the connection: see `test_faults_on_the_wire.py`
            return None
        return read(decoded)

    return decode


def plain(columns: Columns) -> object:
    shape, numbers = columns.shape, (columns.offset, columns.error, columns.group_error)
    places = (shape.group, shape.sizes, shape.partition)
    return shape.groups, shape.topics, [each.tolist() for each in (*places, *numbers)]


def reads_alike_whatever_was_read_before(decode: Callable[..., Columns], valid: bytes, body: bytes) -> None:
    """The shape of the response before never changes what is read."""
    known = decode(valid).shape
    fresh = value_or_malformed(decode, body)
    again = value_or_malformed(lambda one: decode(one, known), body)

    assert (fresh is None) == (again is None)
    if fresh is not None and again is not None:
        assert plain(fresh) == plain(again)


@given(commit_responses, changes)
def test_changed_commits_are_read_independently_of_earlier_ones(response: Any, how: Changes) -> None:  # noqa: ANN401
    body = bytes(response.encode())
    reads_alike_whatever_was_read_before(commits_in, body, changed(body, how))


@given(responses_about_one_group, changes)
def test_changed_commits_of_one_group_are_read_independently_of_earlier_ones(
    response: Any,  # noqa: ANN401
    how: Changes,
) -> None:
    body = bytes(response.encode())
    decode = partial(commits_in, version=response.API_VERSION, group="billing")
    reads_alike_whatever_was_read_before(decode, body, changed(body, how))


@given(offset_responses, changes)
def test_changed_offsets_are_read_independently_of_earlier_ones(response: Any, how: Changes) -> None:  # noqa: ANN401
    body = bytes(response.encode())
    decode = partial(offsets_in, version=response.API_VERSION)
    reads_alike_whatever_was_read_before(decode, body, changed(body, how))


@given(changes)
def test_changed_listings(how: Changes) -> None:
    found = value_or_malformed(by_library(LISTING, group_responses.listing_in), changed(bytes(LISTING.encode()), how))

    assert found is None or all(isinstance(group, str) for group in found.groups)


@given(changes)
def test_changed_descriptions(how: Changes) -> None:
    value_or_malformed(
        by_library(DESCRIPTION, lambda one: descriptions_in(one, Kind.CLASSIC)),
        changed(bytes(DESCRIPTION.encode()), how),
    )


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_no_negative_or_absurd_number_is_an_offset(values: list[int]) -> None:
    assert is_offset(np.array(values, dtype=np.int64)).tolist() == [0 <= value <= LARGEST_OFFSET for value in values]
