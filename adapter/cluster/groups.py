"""Which groups there are and which broker coordinates each: learnt from ListGroups and from who answers OffsetFetch.

No FindCoordinator: the library would cache its answer for ever. A group whose coordinator is not known is asked for at
every broker; all but the coordinator answer "not mine" for that group alone, so it costs no request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

ROUNDS_BEFORE_GONE = 3
NOBODY = -1
"""No node has this number."""


class Kind(StrEnum):
    """How a group's members share its topics, as far as we can ask about it."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    """KIP-848."""
    SHARE = "share"
    """KIP-932: no commits; the coordinator keeps what is done of each partition."""
    STREAMS = "streams"
    """KIP-1071."""


class Phase(StrEnum):
    """What a group's members are doing, as far as it matters here."""

    EMPTY = "empty"
    STABLE = "stable"
    MOVING = "moving"
    """Members come, go, or take over partitions."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a listing says of a group whose members can be described."""

    kind: Kind
    phase: Phase


class Owned(NamedTuple):
    """The partitions of one topic that are assigned to one member alone."""

    member: str
    """The member id."""
    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """A group's members at one time."""

    members: int
    is_stable: bool
    topics: frozenset[str] = frozenset()
    """What they read, as a Stable group's members say; empty where that is not known."""
    owned: tuple[Owned, ...] = ()
    """The assignment of a Stable group; empty where it is not known."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One broker's answer to ListGroups."""

    groups: frozenset[str]
    loading: bool
    """The broker is still reading its part of the offsets topic: groups may be missing from its list."""
    standings: Mapping[str, Standing] = field(default_factory=dict)
    """Of the groups whose members read topics."""

    def only(self, is_watched: Callable[[str], bool]) -> Listing:
        """The same, with the watched groups alone."""
        groups = frozenset(filter(is_watched, self.groups))
        standings = {group: standing for group, standing in self.standings.items() if group in groups}
        return Listing(groups, self.loading, standings)


@dataclass(frozen=True, slots=True)
class Directory:
    groups: frozenset[str] = frozenset()
    """Every group that was listed and is not known to be gone."""
    coordinators: Mapping[str, int] = field(default_factory=dict)
    """Group -> node that last listed it or answered for it; absent: to be asked for everywhere."""
    listed: frozenset[str] = frozenset()
    """The groups in the newest listing of each broker."""
    absences: Mapping[str, int] = field(default_factory=dict)
    """Group -> rounds running in which it could have been listed and was not, and had no offsets."""
    standings: Mapping[str, Standing] = field(default_factory=dict)
    """What the newest listing of its coordinator says of each group; the same object until the next round."""


def with_listings(
    known: Directory,
    listings: Mapping[int, Listing],
    brokers: Collection[int],
    without_offsets: Collection[str],
    leader_of: Callable[[str], int] = lambda _: NOBODY,
) -> Directory:
    """The directory after a round of ListGroups; `without_offsets`: groups whose coordinator last gave no offsets.

    A coordinator that answers OffsetFetch is believed more than a listing, as during a move two brokers list a group;
    but not where it did not list its groups: another broker may have taken them over.
    A group's absence counts if every broker has listed all its groups, or the one that must be its coordinator:
    `leader_of` gives who leads the group's partition of the offsets topic, NOBODY where that is not known.
    """
    found = {group: node for node, listing in listings.items() for group in listing.groups}
    whole = {node for node, listing in listings.items() if not listing.loading}
    is_complete = whole >= set(brokers)
    unlisted = known.groups - found.keys()
    absences = {
        group: known.absences.get(group, 0)
        + (is_complete or known.coordinators.get(group, NOBODY) in whole & {leader_of(group)})
        for group in unlisted & set(without_offsets)
    }
    gone = {group for group, rounds in absences.items() if rounds >= ROUNDS_BEFORE_GONE}
    groups = (known.groups | found.keys()) - gone
    return Directory(
        groups=groups,
        coordinators={
            **found,
            **{
                group: node
                for group, node in known.coordinators.items()
                if group not in gone and (node in listings or group not in found)
            },
        },
        listed=frozenset(found),
        absences={group: rounds for group, rounds in absences.items() if group not in gone},
        standings=_standings(known, listings, found.keys() | gone),
    )


def _standings(known: Directory, listings: Mapping[int, Listing], told: Collection[str]) -> dict[str, Standing]:
    """A group whose coordinator told nothing is what it was, unless it is among those `told` of."""
    silent = {
        group: standing
        for group, standing in known.standings.items()
        if group not in told and _tells_nothing(listings.get(known.coordinators.get(group, NOBODY)))
    }
    return silent | {group: one for listing in listings.values() for group, one in listing.standings.items()}


def _tells_nothing(listing: Listing | None) -> bool:
    return listing is None or listing.loading


def with_coordinators(known: Directory, answered: Mapping[str, int], refused: Collection[str]) -> Directory:
    """The directory after OffsetFetch: who answered for a group is its coordinator, who refused is not any more."""
    refused = frozenset(refused)
    kept = {group: node for group, node in known.coordinators.items() if group not in refused}
    return replace(known, coordinators={**kept, **answered})


def asked_at(directory: Directory, groups: Iterable[str], brokers: Collection[int]) -> dict[int, list[str]]:
    """Node -> the groups to ask it for: at its coordinator, or everywhere while that is unknown or gone."""
    plan: dict[int, list[str]] = {node: [] for node in brokers}
    for group in groups:
        coordinator = directory.coordinators.get(group)
        for node in (coordinator,) if coordinator in plan else tuple(plan):
            plan[node].append(group)
    return {node: names for node, names in plan.items() if names}
