"""Groups and their coordinators, learnt from ListGroups and from the brokers that answer OffsetFetch.

A group without a known coordinator is included in the requests to all brokers; the others refuse it for that group
alone, so it costs no request. Brokers that take one group per request are asked FindCoordinator instead."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from adapter.verdicts.assignment import Sharing

ROUNDS_BEFORE_GONE = 3
NOBODY = -1
"""A node number that no broker has; Kafka uses it for a partition without a leader."""


class Kind(StrEnum):
    """How a group's members share its topics."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    """KIP-848."""
    SHARE = "share"
    """KIP-932: no commits; the coordinator stores the progress of each partition."""
    STREAMS = "streams"
    """KIP-1071."""


class Phase(StrEnum):
    """The state of a group, as far as it matters here."""

    EMPTY = "empty"
    STABLE = "stable"
    MOVING = "moving"
    """Members join, leave, or take over partitions."""
    DEAD = "dead"
    UNKNOWN = "unknown"
    """Not listed (ListGroups before version 4): only a description of the group shows it."""


def phase_in(state: str) -> Phase:
    """`state` is Kafka's word for it."""
    return Phase.__members__.get(state.upper(), Phase.MOVING)


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """What a listing reports about a group whose members can be described."""

    kind: Kind
    phase: Phase


class Owned(NamedTuple):
    """The partitions of one topic that are assigned to one member alone."""

    member: str
    topic: str
    partitions: tuple[int, ...]


class Client(NamedTuple):
    """What a member says of the process that it is, and the coordinator of where it comes from."""

    member: str
    """Its id in the group."""
    instance: str
    """`group.instance.id`; empty if it has none."""
    client: str
    """`client.id`; empty if it has none, or only the default of Kafka's Java client."""
    host: str
    """The address of its connection, as Java writes it: `/10.1.2.3`."""


class MemberCount(NamedTuple):
    """How many members a group had when it was last described, or listed as Empty."""

    members: int
    at: float
    """In monotonic seconds."""


class Assignment(NamedTuple):
    """Which partitions the members of a group own."""

    described_at: float
    """In monotonic seconds."""
    clients: tuple[Client, ...]
    """Every member, with or without partitions."""
    owned: tuple[Owned, ...]


@dataclass(frozen=True, slots=True)
class Description:
    members: int
    topics: frozenset[str] = frozenset()
    """The topics that the members of a Stable group read; empty if it is not Stable, or if they are unknown."""
    owned: tuple[Owned, ...] = ()
    """The assignment of a Stable group; empty if unknown."""
    sharing: Sharing = Sharing.BY_TOPIC
    """How the members of a Stable group share topics."""
    clients: tuple[Client, ...] = ()
    """The members of a Stable group, if they were asked for."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One broker's response to ListGroups."""

    groups: frozenset[str]
    loading: bool
    """The broker is still loading its part of the offsets topic, so groups may be missing."""
    statuses: Mapping[str, GroupStatus] = field(default_factory=dict)
    """Of the groups whose members read topics."""

    def only(self, is_watched: Callable[[str], bool]) -> "Listing":
        groups = frozenset(filter(is_watched, self.groups))
        statuses = {group: status for group, status in self.statuses.items() if group in groups}
        return Listing(groups, self.loading, statuses)


@dataclass(frozen=True, slots=True)
class Directory:
    groups: frozenset[str] = frozenset()
    """Every group that was listed and is not known to be gone."""
    coordinators: Mapping[str, int] = field(default_factory=dict)
    """Group -> the node that last listed it or answered for it; if absent, all brokers are asked."""
    listed: frozenset[str] = frozenset()
    """The groups in each broker's latest listing."""
    absences: Mapping[str, int] = field(default_factory=dict)
    """Group -> consecutive rounds in which it was not listed, although it could have been, and had no offsets."""
    statuses: Mapping[str, GroupStatus] = field(default_factory=dict)
    """What each group's coordinator reported in its latest listing; the same object until the next round."""


def with_listings(
    known: Directory,
    listings: Mapping[int, Listing],
    brokers: Collection[int],
    without_offsets: Collection[str],
    leader_of: Callable[[str], int] = lambda _: NOBODY,
) -> Directory:
    """Returns the directory after a round of ListGroups; `without_offsets` are groups whose coordinator last returned
    no offsets.

    The broker that answers OffsetFetch takes precedence over listings, because two brokers may list a group while it
    moves, unless it did not list its groups: another broker may have taken over. A group's absence counts if every
    broker has listed all its groups, or if its only possible coordinator (`leader_of`) has; NOBODY means that this
    broker is not known."""
    listed = {group: node for node, listing in listings.items() for group in listing.groups}
    whole = {node for node, listing in listings.items() if not listing.loading}
    is_complete = whole >= set(brokers)
    unlisted = known.groups - listed.keys()
    absences = {
        group: known.absences.get(group, 0)
        + (is_complete or known.coordinators.get(group, NOBODY) in whole & {leader_of(group)})
        for group in unlisted & set(without_offsets)
    }
    gone = {group for group, rounds in absences.items() if rounds >= ROUNDS_BEFORE_GONE}
    groups = (known.groups | listed.keys()) - gone
    return Directory(
        groups=groups,
        coordinators={
            **listed,
            **{
                group: node
                for group, node in known.coordinators.items()
                if group not in gone and (node in listings or group not in listed)
            },
        },
        listed=frozenset(listed),
        absences={group: rounds for group, rounds in absences.items() if group not in gone},
        statuses=_statuses(known, listings, listed.keys() | gone),
    )


def _statuses(known: Directory, listings: Mapping[int, Listing], reported: Collection[str]) -> dict[str, GroupStatus]:
    """Keeps a group's previous state if its coordinator did not report, unless another broker did."""
    whole = {node for node, listing in listings.items() if not listing.loading}
    silent = {
        group: status
        for group, status in known.statuses.items()
        if group not in reported and known.coordinators.get(group) not in whole
    }
    return silent | {group: status for listing in listings.values() for group, status in listing.statuses.items()}


def with_coordinators(known: Directory, answered: Mapping[str, int], refused: Collection[str]) -> Directory:
    """Returns the directory after OffsetFetch: the broker that answered is the coordinator, one that refused is not."""
    refused = frozenset(refused)
    kept = {group: node for group, node in known.coordinators.items() if group not in refused}
    return replace(known, coordinators={**kept, **answered})


def asked_at(
    coordinators: Mapping[str, int],
    groups: Iterable[str],
    brokers: Collection[int],
    not_searched: Collection[int] = (),
) -> dict[int, list[str]]:
    """Returns node -> groups to request: from the coordinator, or from all brokers if it is unknown or gone.

    Brokers that are `not_searched` are asked only for what they coordinate, unless there is no other broker."""
    plan: dict[int, list[str]] = {node: [] for node in brokers}
    others = tuple(plan) if len(plan) == 1 else tuple(node for node in plan if node not in not_searched)
    for group in groups:
        coordinator = coordinators.get(group)
        for node in (coordinator,) if coordinator in plan else others:
            plan[node].append(group)
    return {node: names for node, names in plan.items() if names}
