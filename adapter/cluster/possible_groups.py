"""Decides which unlisted groups may exist, so that a query does not treat them as absent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from adapter.cluster.coordinators import OFFSETS_TOPIC, ListingTimes, partition_of
from adapter.cluster.groups import NOBODY
from adapter.cluster.topics import Topology
from adapter.columns import NEVER


@dataclass(frozen=True, slots=True)
class PossibleGroups:
    """Which unknown groups may exist, and why."""

    partitions: int = 1
    """Of the offsets topic; a single one, of every group, while they are not known."""
    of_partition: Mapping[int, str] = field(default_factory=dict)
    """Partition of the offsets topic -> why groups of this partition may exist."""
    in_sums: str | None = None
    """Why a sum over all groups may lack some."""

    @property
    def leaves_doubt(self) -> bool:
        return bool(self.of_partition)

    def about(self, group: str) -> str | None:
        """Returns why an unknown group may exist; None if it does not."""
        return self.of_partition.get(partition_of(group, self.partitions))


NO_POSSIBLE_GROUPS = PossibleGroups()


def any_group_possible(reason: str) -> PossibleGroups:
    return PossibleGroups(of_partition={0: reason}, in_sums=reason)


def possible_groups_of(
    listed_at: ListingTimes,
    topology: Topology,
    why: Callable[[int], str | None],
    *,
    now: float,
    newest_round: float,
    patience: float,
) -> PossibleGroups:
    """`why` returns why a broker is unavailable, or None.

    Listings before the start of the newest round may lack new groups. A sum over all groups may lack some only if a
    listing is older than `patience`."""
    topic = listed_at.offsets_topic(topology)
    if topic is None:
        sources = [(0, node, listed_at.brokers.get(node, NEVER)) for node in sorted(topology.brokers)]
    else:
        leaders, times = topic.leaders.tolist(), listed_at.partitions.tolist()
        sources = list(zip(range(len(leaders)), leaders, times, strict=True))
    doubts: dict[int, str] = {}
    in_sums = None
    for place, node, at in sources:
        reason = f"partition {place} of {OFFSETS_TOPIC} has no leader"
        if node != NOBODY:
            absence = why(node)
            if absence is None and at >= newest_round:
                continue
            address = topology.brokers.get(node, "an unknown address")
            since = "yet" if at == NEVER else f"for {now - at:.0f} s"
            absence = absence or "it is still loading them"
            reason = f"broker {node} at {address} has not listed its groups {since}: {absence}"
        doubts.setdefault(place, reason)
        if in_sums is None and at < now - patience:
            in_sums = reason
    return PossibleGroups(1 if topic is None else len(topic.leaders), doubts, in_sums)
