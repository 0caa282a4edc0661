"""Computes which broker coordinates a group, and so which groups an unavailable broker may know.

The hash of a group's name selects a partition of `__consumer_offsets`, and the leader of this partition coordinates the
group, whatever its type. So an unlisted group can be known to only one broker, and a broker that leads no partition of
that topic knows none.

This is how Apache Kafka places groups. Other implementations of its protocol may use another hash, which agrees for
some groups by chance, or have no real leaders. So nothing counts as absent by its placement until enough groups have
proven it."""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import islice
from math import log
from uuid import UUID

import numpy as np

from adapter.cluster.groups import NOBODY, Listing
from adapter.cluster.topics import Topic, Topology, led_throughout
from adapter.columns import NEVER, Flags, Seconds

OFFSETS_TOPIC = "__consumer_offsets"
SHARE_STATE_TOPIC = "__share_group_state"
PROOF = log(1e6)
"""The evidence that decides: a million times as likely with Kafka's hash as with another one, or the other way round. A
group at a broker that leads a third of the partitions is evidence of 1, so among three equal brokers 14 are enough."""
LIKELY = 0.9
"""How many groups are where Kafka places them while partitions of the offsets topic move."""
CHECKED_GROUPS = 100
"""This many groups of each listing are checked for whether the cluster places groups as expected."""


def partition_of(key: str, partitions: int) -> int:
    """Returns the partition of an internal topic for a key, as all Kafka coordinators compute it."""
    code = java_hash(key)
    # Java's absolute value of its smallest integer is negative; Kafka uses 0.
    return (0 if code == -(2**31) else abs(code)) % partitions


class Placement(Enum):
    """Whether the cluster places groups as Apache Kafka does."""

    UNKNOWN = auto()
    PROVEN = auto()
    REFUTED = auto()


def is_usable(topic: Topic | None) -> bool:
    """Whether leader epochs show elections of the offsets topic's leaders. Metadata before version 7 has no epochs."""
    return topic is not None and topic.epochs is not None and bool((topic.epochs >= 0).all())


def evidence(topic: Topic, placed: Mapping[str, int]) -> float:
    """Returns how much `placed` (group -> its coordinator) shows that the cluster places groups as expected: the
    logarithm of how much likelier it is with Kafka's hash than with another one. Negative: with another one."""
    shares = _shares(topic)
    parts = ((_leader(topic, group), node) for group, node in islice(placed.items(), CHECKED_GROUPS))
    return sum(_weight(shares[leader], is_there=node == leader) for leader, node in parts)


def proving_groups(topic: Topic) -> list[str]:
    """Returns names whose coordinators decide, whether groups of these names exist or not; fewer if most partitions
    have one leader, none if all have. There are more than are needed, as some partitions may be moving."""
    names: list[str] = []
    total = 0.0
    weights = {leader: _weight(share, is_there=True) for leader, share in _shares(topic).items()}
    candidates = (f"kafka-lag-adapter-{number}" for number in range(CHECKED_GROUPS))
    for name in candidates if any(weights.values()) else ():
        if total >= 1.5 * PROOF:
            break
        if weight := weights[_leader(topic, name)]:
            names.append(name)
            total += weight
    return names


def _leader(topic: Topic, group: str) -> int:
    """Returns the group's coordinator by Kafka's hash."""
    return int(topic.leaders[partition_of(group, len(topic.leaders))])


def _shares(topic: Topic) -> dict[int, float]:
    """Returns leader -> how likely it is the coordinator of a group by another hash."""
    leaders, counts = np.unique(topic.leaders, return_counts=True)
    return dict(zip(leaders.tolist(), (counts / len(topic.leaders)).tolist(), strict=True))


def _weight(chance: float, *, is_there: bool) -> float:
    if chance >= LIKELY:
        return 0.0
    return log(LIKELY / chance) if is_there else log((1 - LIKELY) / (1 - chance))


def moves_without_election(before: Topic | None, after: Topic | None) -> bool:
    """Whether a partition has another leader in the same epoch: then leaders are only a way to spread connections."""
    if before is None or after is None or before.generation != after.generation or not is_usable(before):
        return False
    if before.epochs is None or after.epochs is None:
        return False
    both = slice(min(len(before.leaders), len(after.leaders)))
    old, new = before.leaders[both], after.leaders[both]
    is_moved = (old != new) & (old != NOBODY) & (new != NOBODY) & (before.epochs[both] == after.epochs[both])
    return bool(is_moved.any())


def share_state_keepers(group: str, topics: Iterable[str], topology: Topology) -> frozenset[int]:
    """Returns the brokers that store a share group's state: each partition of a topic is placed by its own hash."""
    state = topology.topics.get(SHARE_STATE_TOPIC)
    if state is None:
        return frozenset()
    existing = [topic for name in topics if (topic := topology.topics.get(name)) is not None and topic.generation]
    # As Java prints a topic id.
    ids = {urlsafe_b64encode(UUID(topic.generation).bytes).decode().rstrip("="): topic for topic in existing}
    keys = (f"{group}:{id_}:{partition}" for id_, topic in ids.items() for partition in range(len(topic.leaders)))
    return frozenset(int(state.leaders[partition_of(key, len(state.leaders))]) for key in keys)


def java_hash(text: str) -> int:
    """Java's `String.hashCode` over UTF-16 code units."""
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), dtype="<u2")
    code = 0
    for unit in units.tolist():
        code = (31 * code + unit) & 0xFFFF_FFFF
    return code - 2**32 if code >> 31 else code


@dataclass(frozen=True, slots=True, eq=False)
class ListingTimes:
    """When each broker, and each partition's leader, last listed all its groups, in monotonic seconds."""

    brokers: Mapping[int, float] = field(default_factory=dict)
    """Node -> time; without brokers that never listed all their groups."""
    generation: str | None = None
    """Of the offsets topic."""
    partitions: Seconds = field(default_factory=lambda: np.empty(0))
    """By partition, if its leader did not change around the listing; NEVER otherwise."""
    disagreeing: frozenset[int] = frozenset()
    """Brokers whose latest listing has groups that, by their names, belong to other brokers."""
    placement: Placement = Placement.UNKNOWN

    def likely_topic(self, topology: Topology) -> Topic | None:
        """Returns the offsets topic unless it is refuted that its leaders coordinate the groups."""
        topic, is_refuted = topology.topics.get(OFFSETS_TOPIC), self.placement is Placement.REFUTED
        return None if is_refuted or self.disagreeing or not is_usable(topic) else topic

    def coordinating_topic(self, topology: Topology) -> Topic | None:
        """Returns the offsets topic if it is proven that its leaders coordinate the groups."""
        topic = self.likely_topic(topology)
        # Whatever the hash, a broker that leads all partitions coordinates all groups.
        is_proven = self.placement is Placement.PROVEN or (topic is not None and len(np.unique(topic.leaders)) == 1)
        return topic if is_proven else None

    def offsets_topic(self, topology: Topology) -> Topic | None:
        """Returns the topic if it shows which broker coordinates which group; None if any broker may coordinate any."""
        topic = self.coordinating_topic(topology)
        return topic if topic is not None and len(topic.leaders) == len(self.partitions) else None

    def leader_of(self, topology: Topology) -> Callable[[str], int]:
        """Returns group -> the only broker that can coordinate it; NOBODY if unknown."""
        topic = self.offsets_topic(topology)
        if topic is None:
            return lambda _: NOBODY
        return lambda group: int(topic.leaders[partition_of(group, len(topic.leaders))])

    def not_listed_since(self, at: float, topology: Topology) -> frozenset[int]:
        """Returns the brokers that may know groups not listed since then, or never."""
        topic = self.offsets_topic(topology)
        if topic is None:
            listed = ((node, self.brokers.get(node, NEVER)) for node in topology.brokers)
            return frozenset(node for node, then in listed if then < at or then == NEVER)
        is_missing = (self.partitions < at) | (self.partitions == NEVER)
        return frozenset(topic.leaders[is_missing].tolist()) - {NOBODY}


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One round of listings, and the Metadata responses that show whose groups they have."""

    at: float
    listings: Mapping[int, Listing]
    before: Topology
    is_full: bool
    """Whether every broker was asked."""
    confirmations: int = 0
    """The number of Metadata responses since, each from a different broker than the previous one."""
    is_complete: Flags = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """By partition of the offsets topic, as far as known: whether its leader reported all its groups."""

    @property
    def whole(self) -> set[int]:
        """The brokers that have listed all their groups."""
        return {node for node, listing in self.listings.items() if not listing.loading}

    def seen_again(self) -> "Round":
        return replace(self, confirmations=self.confirmations + 1)


def updated_times(known: ListingTimes, listed: Round, topology: Topology) -> ListingTimes:
    """`topology` is the Metadata after the round. A partition is listed only if its leader and epoch did not change."""
    topic, earlier = topology.topics.get(OFFSETS_TOPIC), listed.before.topics.get(OFFSETS_TOPIC)
    whole = listed.whole
    misplaced = {node for node, each in listed.listings.items() if _is_misplaced(node, each.groups, (earlier, topic))}
    partitions = _partitions(known, topic)
    if topic is not None:
        is_listed = led_throughout(earlier, topic) & np.isin(topic.leaders, list(whole))
        is_listed[: len(listed.is_complete)] &= listed.is_complete[: len(topic.leaders)]
        partitions[is_listed] = listed.at
    # The first list that contradicts the placement comes with a move, or of another broker than the one that was asked:
    # neither this round nor those before show then that there are no other groups.
    is_surprise = misplaced and not known.disagreeing
    brokers = {} if is_surprise else {**known.brokers, **dict.fromkeys(whole, listed.at)}
    placed = {group: node for node, each in listed.listings.items() for group in islice(each.groups, CHECKED_GROUPS)}
    is_proof = topic is not None and not misplaced and evidence(topic, placed) >= PROOF
    return ListingTimes(
        {node: at for node, at in brokers.items() if node in topology.brokers},
        topic.generation if topic is not None else None,
        partitions,
        ((known.disagreeing - listed.listings.keys()) | misplaced) & topology.brokers.keys(),
        Placement.PROVEN if is_proof else known.placement,
    )


def _partitions(known: ListingTimes, topic: Topic | None) -> Seconds:
    at = np.full(0 if topic is None else len(topic.leaders), NEVER)
    if topic is not None and topic.generation == known.generation:
        both = min(len(at), len(known.partitions))
        at[:both] = known.partitions[:both]
    return at


def _is_misplaced(node: int, groups: Collection[str], topics: Collection[Topic | None]) -> bool:
    """Whether a broker led no partition of these groups: briefly while they move, always if their number changed."""
    placed = [topic.leaders for topic in topics if topic is not None]
    return bool(placed) and any(
        all(leaders[partition_of(group, len(leaders))] != node for leaders in placed)
        for group in islice(groups, CHECKED_GROUPS)
    )
