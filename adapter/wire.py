"""Kafka's responses -> columns. No IO, and no `import kafka`: responses come in as the library's decoded objects.

Offsets are messages; a partition without commit arrives as -1, which is also our `NO_COMMIT`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapter.directory import Listing
from adapter.topology import NO_LEADER, Topic, Topology

Offsets = NDArray[np.int64]
Codes = NDArray[np.int32]

NO_ERROR = 0
UNKNOWN_TOPIC = 3
COORDINATOR_LOADING = 14
COORDINATOR_ABSENT = 15
NOT_COORDINATOR = 16
GROUP_NOT_AUTHORIZED = 30
GROUP_NOT_FOUND = 69


@dataclass(frozen=True, slots=True, eq=False)
class PartitionOffsets:
    """Offsets of some partitions of one topic, in the order of the wire."""

    partition: Codes
    offset: Offsets
    error: Codes
    """Kafka's error code; NO_ERROR where the offset counts."""


@dataclass(frozen=True, slots=True)
class GroupCommits:
    """One group's part of an OffsetFetch response."""

    error: int
    topics: Mapping[str, PartitionOffsets]


def topology_in(response: Any) -> Topology:  # noqa: ANN401 - a response of the library, which has no types
    """A Metadata response (v10 to v12) as a topology; topics with an error of their own are left out."""
    return Topology(
        brokers={broker.node_id: f"{broker.host}:{broker.port}" for broker in response.brokers},
        topics={
            topic.name: Topic(
                generation=str(topic.topic_id) if topic.topic_id else None, leaders=_leaders(topic.partitions)
            )
            for topic in response.topics
            if topic.name is not None and topic.partitions
        },
    )


def _leaders(partitions: Iterable[Any]) -> Codes:
    leader_of = {partition.partition_index: partition.leader_id for partition in partitions}
    return np.array([leader_of.get(index, NO_LEADER) for index in range(max(leader_of) + 1)], dtype=np.int32)


def listing_in(response: Any) -> Listing:  # noqa: ANN401
    """A ListGroups response: the broker's groups, whatever their type."""
    return Listing(
        groups=frozenset(group.group_id for group in response.groups),
        loading=response.error_code != NO_ERROR,
    )
