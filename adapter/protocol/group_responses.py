"""Kafka's responses -> columns. No IO, and no `import kafka`: responses come in as the library's decoded objects.

Offsets are messages; a partition without commit arrives as -1, which is also our `NO_COMMIT`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from adapter.cluster.groups import Description, Kind, Listing, Phase, Standing
from adapter.columns import Codes, Offsets
from adapter.protocol.codes import GROUP_NOT_FOUND, NO_ERROR, MalformedResponse

_PARTITION_LIST = 1
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")


Given = ParamSpec("Given")
Read = TypeVar("Read")


def _of_a_known_shape(read: Callable[Given, Read]) -> Callable[Given, Read]:
    """What the library decodes may lack what its version always has: null instead of a list, or of a name."""

    @wraps(read)
    def read_or_malformed(*args: Given.args, **kwargs: Given.kwargs) -> Read:
        try:
            return read(*args, **kwargs)
        except MalformedResponse:
            raise
        except (TypeError, AttributeError, ValueError, OverflowError) as error:
            raise MalformedResponse(str(error)) from error

    return read_or_malformed


@dataclass(frozen=True, slots=True, eq=False)
class SharedPartitions:
    """How far a share group is in some partitions of one topic, in the order of the wire."""

    partition: Codes
    start: Offsets
    """The first record that is not done; -1: the group has not begun."""
    lag: Offsets
    """How many records are not done, as the broker counts them; -1: it does not."""
    error: Codes


@dataclass(frozen=True, slots=True)
class GroupShares:
    """One group's part of a DescribeShareGroupOffsets response."""

    error: int
    topics: Mapping[str, SharedPartitions]


@_of_a_known_shape
def listing_in(response: Any) -> Listing:  # noqa: ANN401
    """A ListGroups response: the broker's groups of every type that can have offsets."""
    present = [group for group in response.groups if _can_have_offsets(group)]
    return Listing(
        groups=frozenset(group.group_id for group in present),
        loading=response.error_code != NO_ERROR,
        standings={group.group_id: standing for group in present if (standing := _standing_of(group)) is not None},
    )


@_of_a_known_shape
def coordinators_in(response: Any) -> dict[str, int]:  # noqa: ANN401
    """A FindCoordinator response: group -> node; groups with an error are left out."""
    return {one.key: int(one.node_id) for one in response.coordinators if one.error_code == NO_ERROR}


def _can_have_offsets(group: Any) -> bool:  # noqa: ANN401
    """Not the workers of Kafka Connect among themselves: a sink connector's consumers are a group of their own."""
    return group.protocol_type != "connect" and (group.group_state or "").lower() != "dead"


def _standing_of(group: Any) -> Standing | None:  # noqa: ANN401
    """Brokers before 3.8 do not tell types, and have classic groups only; other protocols' members read no topics."""
    kind = (group.group_type or Kind.CLASSIC).lower()
    if not group.group_state or kind not in _KINDS or group.protocol_type not in {"", "consumer", *_KINDS}:
        return None
    state = group.group_state.lower()
    return Standing(Kind(kind), Phase(state) if state in {"empty", "stable"} else Phase.MOVING)


_KINDS = frozenset(kind.value for kind in Kind)


@_of_a_known_shape
def descriptions_in(response: Any, kind: Kind) -> dict[str, Description | None]:  # noqa: ANN401
    """A response to the describe request of a kind: group -> its members; None: there is no such group of that kind.

    Groups that could not be described are left out.
    """
    return {
        group.group_id: None if _is_gone(group) else _description_of(group, kind)
        for group in response.groups
        if group.error_code in {NO_ERROR, GROUP_NOT_FOUND}
    }


def _is_gone(group: Any) -> bool:  # noqa: ANN401
    """Brokers report a missing group as Dead without an error (DescribeGroups before version 6), or as not found."""
    return bool(group.error_code == GROUP_NOT_FOUND or group.group_state.lower() == "dead")


def _description_of(group: Any, kind: Kind) -> Description:  # noqa: ANN401
    is_stable = group.group_state.lower() == "stable"
    return Description(len(group.members), is_stable, _TOPICS_OF[kind](group) if is_stable else frozenset())


@_of_a_known_shape
def shares_in(response: Any) -> dict[str, GroupShares]:  # noqa: ANN401
    """A DescribeShareGroupOffsets response; in version 0 no lag is given."""
    return {
        group.group_id: GroupShares(
            group.error_code, {topic.topic_name: _shared_partitions(topic.partitions) for topic in group.topics}
        )
        for group in response.groups
    }


def _shared_partitions(partitions: Iterable[Any]) -> SharedPartitions:
    rows = [(one.partition_index, one.start_offset, one.lag, one.error_code) for one in partitions]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4)
    if (columns[:, 0] < 0).any():
        raise MalformedResponse("a partition with a negative number")
    partition, start, lag, error = columns.T
    return SharedPartitions(partition.astype(np.int32), start, lag, error.astype(np.int32))


def _classic_topics_of_all(group: Any) -> frozenset[str]:  # noqa: ANN401
    """Nothing if what one of them sent cannot be read: this group then says nothing of topics, the others do."""
    try:
        return _union(_classic_topics(member) for member in group.members)
    except MalformedResponse:
        return frozenset()


def _classic_topics(member: Any) -> frozenset[str]:  # noqa: ANN401
    """Subscription and assignment begin alike: a version, then a list whose entries begin with the topic's name."""
    subscribed = _names(bytes(member.member_metadata or b""), entry_tail=0)
    return subscribed | _names(bytes(member.member_assignment or b""), entry_tail=_PARTITION_LIST)


def _names(body: bytes, entry_tail: int) -> frozenset[str]:
    """The topics in what a member sent; any client may send anything, so every step must lead on, within the body."""
    if not body:
        return frozenset()
    names, position = [], 6
    try:
        for _ in range(_INT32.unpack_from(body, 2)[0]):
            begin = position + _INT16.size
            position = _after(body, begin, _INT16.unpack_from(body, position)[0])
            names.append(body[begin:position].decode())
            if entry_tail == _PARTITION_LIST:
                position = _after(body, position + _INT32.size, 4 * _INT32.unpack_from(body, position)[0])
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedResponse(f"a group member's subscription: {error}") from error
    return frozenset(names)


def _after(body: bytes, begin: int, size: int) -> int:
    if not 0 <= size <= len(body) - begin:
        raise MalformedResponse("a group member's subscription: a length that leads out of it")
    return begin + size


def _consumer_topics(member: Any) -> frozenset[str]:  # noqa: ANN401
    assigned = (*member.assignment.topic_partitions, *member.target_assignment.topic_partitions)
    return frozenset(member.subscribed_topic_names) | {part.topic_name for part in assigned}


def _share_topics(member: Any) -> frozenset[str]:  # noqa: ANN401
    return frozenset(member.subscribed_topic_names) | {part.topic_name for part in member.assignment.topic_partitions}


def _topology_topics(group: Any) -> frozenset[str]:  # noqa: ANN401
    """All members of an application run the same topology; it is null while topics are missing."""
    subtopologies = group.topology.subtopologies if group.topology else None
    return _union(
        frozenset(part.source_topics) | {topic.name for topic in part.repartition_source_topics}
        for part in subtopologies or ()
    )


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


_TOPICS_OF: Mapping[Kind, Callable[[Any], frozenset[str]]] = {
    Kind.CLASSIC: _classic_topics_of_all,
    Kind.CONSUMER: lambda group: _union(map(_consumer_topics, group.members)),
    Kind.SHARE: lambda group: _union(map(_share_topics, group.members)),
    Kind.STREAMS: _topology_topics,
}
