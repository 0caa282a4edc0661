"""Kafka's responses -> columns. No IO, and no `import kafka`: responses come in as the library's decoded objects.

A partition without commit arrives as -1, which is also our `NO_COMMIT`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from adapter.cluster.groups import GroupStatus, Kind, Listing, Phase, phase_in
from adapter.columns import Codes, Offsets
from adapter.protocol.apis import FIRST_WITH_KEYS
from adapter.protocol.codes import NO_ERROR, MalformedResponse
from adapter.protocol.reader import malformed_as_ours

Decoded: TypeAlias = Any
"""A message, or a part of one, as the client library decodes it: it has no types."""


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


class FoundCoordinator(NamedTuple):
    """The coordinator of a group, as any broker reports it."""

    node: int
    error: int


@malformed_as_ours()
def coordinators_in(groups: Sequence[str], response: Decoded) -> dict[str, FoundCoordinator]:
    """Reads a FindCoordinator response about these groups; before version 4, it is about one and does not name it."""
    if response.API_VERSION >= FIRST_WITH_KEYS:
        return {each.key: FoundCoordinator(each.node_id, each.error_code) for each in response.coordinators}
    return {group: FoundCoordinator(response.node_id, response.error_code) for group in groups}


@malformed_as_ours()
def listing_in(response: Decoded) -> Listing:
    """Reads a ListGroups response: the broker's groups of every type that can have offsets."""
    present = [group for group in response.groups if _can_have_offsets(group)]
    return Listing(
        groups=frozenset(group.group_id for group in present),
        loading=response.error_code != NO_ERROR,
        statuses={group.group_id: status for group in present if (status := _status_of(group)) is not None},
    )


def _can_have_offsets(group: Decoded) -> bool:
    """Kafka Connect's workers have none of their own; a sink connector's consumers are another group."""
    return group.protocol_type != "connect" and phase_in(group.group_state or "") is not Phase.DEAD


def _status_of(group: Decoded) -> GroupStatus | None:
    """Brokers before 3.8 report no type: all their groups are classic. Members of other protocols read no topics."""
    kind = (group.group_type or Kind.CLASSIC).lower()
    if kind not in _KINDS or group.protocol_type not in {"", "consumer", *_KINDS}:
        return None
    return GroupStatus(Kind(kind), phase_in(group.group_state) if group.group_state else Phase.UNKNOWN)


_KINDS = frozenset(kind.value for kind in Kind)


@malformed_as_ours()
def shares_in(response: Decoded) -> dict[str, GroupShares]:
    """Reads a DescribeShareGroupOffsets response; version 0 reports no lag."""
    return {
        group.group_id: GroupShares(
            group.error_code, {topic.topic_name: _shared_partitions(topic.partitions) for topic in group.topics}
        )
        for group in response.groups
    }


def _shared_partitions(partitions: Iterable[Decoded]) -> SharedPartitions:
    rows = [(one.partition_index, one.start_offset, one.lag, one.error_code) for one in partitions]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4)
    if (columns[:, 0] < 0).any():
        raise MalformedResponse("a partition with a negative number")
    partition, start, lag, error = columns.T
    return SharedPartitions(partition.astype(np.int32), start, lag, error.astype(np.int32))
