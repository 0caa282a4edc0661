"""Decides which unlisted groups may exist, so that a query does not treat them as absent."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from adapter.cluster.coordinators import OFFSETS_TOPIC, ListingTimes, partition_of
from adapter.cluster.topics import NO_LEADER, Topic, Topology
from adapter.columns import NEVER


@dataclass(frozen=True, slots=True)
class PossibleGroups:
    """Which unknown groups may exist, and why."""

    anywhere: str | None = None
    """Any group may exist."""
    partitions: int = 0
    """Of the offsets topic."""
    of_partition: Mapping[int, str] = field(default_factory=dict)
    """Partition of the offsets topic -> why groups of this partition may exist."""
    in_sums: str | None = None
    """Why a sum over all groups may lack some."""

    @property
    def leaves_doubt(self) -> bool:
        return self.anywhere is not None or bool(self.of_partition) or self.in_sums is not None

    def about(self, group: str) -> str | None:
        """Returns why an unknown group may exist; None if it does not."""
        if self.anywhere is not None or not self.of_partition:
            return self.anywhere
        return self.of_partition.get(partition_of(group, self.partitions))


NO_POSSIBLE_GROUPS = PossibleGroups()


def any_group_possible(reason: str) -> PossibleGroups:
    return PossibleGroups(anywhere=reason, in_sums=reason)


@dataclass(frozen=True, slots=True)
class Limits:
    """How old a listing may be, in monotonic seconds."""

    now: float
    newest: float
    """Start of the latest round of listings: older listings may lack new groups."""
    oldest: float
    """A sum may lack groups that are missing only in listings older than this."""


def possible_groups_of(
    listed_at: ListingTimes, topology: Topology, limits: Limits, why: Callable[[int], str | None]
) -> PossibleGroups:
    """`why` returns why a broker is unavailable, or None."""
    topic = listed_at.offsets_topic(topology)
    unheard = list(_brokers(listed_at, topology) if topic is None else _partitions(listed_at, topic, topology))
    doubts = [one for one in unheard if one.at < limits.newest or one.node == NO_LEADER or why(one.node) is not None]
    in_sums = next((_text(one, limits, why) for one in doubts if one.at < limits.oldest), None)
    if topic is None:
        return PossibleGroups(anywhere=next((_text(one, limits, why) for one in doubts), None), in_sums=in_sums)
    of_partition = {one.partition: _text(one, limits, why) for one in doubts}
    return PossibleGroups(partitions=len(topic.leaders), of_partition=of_partition, in_sums=in_sums)


@dataclass(frozen=True, slots=True)
class _Source:
    """The broker that can list some groups, and when it last did."""

    node: int
    at: float
    address: str
    partition: int = -1


def _brokers(listed_at: ListingTimes, topology: Topology) -> Iterator[_Source]:
    for node, address in sorted(topology.brokers.items()):
        yield _Source(node, listed_at.brokers.get(node, NEVER), address)


def _partitions(listed_at: ListingTimes, topic: Topic, topology: Topology) -> Iterator[_Source]:
    for partition, (node, at) in enumerate(zip(topic.leaders.tolist(), listed_at.partitions.tolist(), strict=True)):
        yield _Source(node, at, topology.brokers.get(node, "an unknown address"), partition)


def _text(source: _Source, limits: Limits, why: Callable[[int], str | None]) -> str:
    if source.node == NO_LEADER:
        return f"partition {source.partition} of {OFFSETS_TOPIC} has no leader"
    since = "yet" if source.at == NEVER else f"for {limits.now - source.at:.0f} s"
    reason = why(source.node) or "it is still loading them"
    return f"broker {source.node} at {source.address} has not listed its groups {since}: {reason}"
