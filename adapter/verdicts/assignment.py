"""How many members of a group can have a partition. The reports, the metric of replicas and whatever limits replicas go
by this rule."""

import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags, Indexes

Counts = NDArray[np.int64]

Messages = NDArray[np.float64]

NO_LIMIT = sys.maxsize
UNKNOWN = -1
"""Members that are not known."""
WORTHWHILE = 0.25
"""Beyond what the sum of the rates asks for, a member must read at least this share of its capacity that nobody would
read without it. Otherwise one busy partition would ask for a member for every other one."""
MOST_CELLS = 200_000
"""Partitions by numbers of members that are compared at once, to bound the memory."""
_ROUNDING = 1e-9


class Sharing(StrEnum):
    """How a group's members share the partitions of several topics."""

    BY_TOPIC = "by_topic"
    """Each topic is divided by itself among the same first members, as the RangeAssignor does."""
    TOGETHER = "together"
    """All partitions are divided among the members together, as the assignors uniform, sticky and round robin do."""
    SEVERAL_READERS = "several_readers"
    """Several members may read the same partition (share groups)."""


SHARING_BY_ASSIGNOR: Mapping[str, Sharing] = MappingProxyType(
    {
        "range": Sharing.BY_TOPIC,
        **dict.fromkeys(("uniform", "roundrobin", "sticky", "cooperative-sticky"), Sharing.TOGETHER),
    }
)
"""By the name of the assignor that the members have chosen."""
SHARING_BY_KIND: Mapping[str, Sharing] = MappingProxyType(
    {"consumer": Sharing.TOGETHER, "share": Sharing.SEVERAL_READERS}
)
"""Until a group's members have been described: by the default assignor of its kind, where it is not BY_TOPIC."""


def most_members(partitions: Collection[int], sharing: Sharing) -> int:
    """`partitions`: of each topic. NO_LIMIT if any number of members can have one."""
    match sharing:
        case Sharing.BY_TOPIC:
            return max(partitions, default=0)
        case Sharing.TOGETHER:
            return sum(partitions)
        case Sharing.SEVERAL_READERS:
            return NO_LIMIT


def is_spread(owners: Collection[Sequence[str]]) -> bool:
    """Whether an assignment shows that topics are divided together. `owners`: of each topic's partitions, the member of
    each one."""
    members = {owner for topic in owners for owner in topic}
    return len(members) > max(map(len, owners), default=0) or any(_is_uneven(topic, members) for topic in owners)


def _is_uneven(owners: Sequence[str], members: Collection[str]) -> bool:
    """With the RangeAssignor, the members' shares of a topic differ by at most one partition."""
    numbers = Counter(owners)
    return max(numbers.values(), default=0) - min((numbers[member] for member in members), default=0) > 1


@dataclass(frozen=True, slots=True, eq=False)
class Divisions:
    """How the partitions (columns) of many groups (rows) are divided among members, as far as it does not depend on who
    the members are. A part is what is divided by itself: each topic, or all partitions together."""

    is_by_topic: Flags
    is_exclusive: Flags
    """Whether one member at most reads each partition."""
    most: Counts
    """Members that can have a partition."""
    place: Indexes
    """Of each partition in its part; as wide as the widest group."""
    part: Indexes
    """Of each partition."""
    size: Counts
    """Partitions of each part (columns), as many parts as the group with most has."""
    numbers: Counts
    """Of members at which the largest share of some part becomes smaller, in order; the last one is repeated."""

    @classmethod
    def of(cls, partitions: Sequence[tuple[int, ...]], sharings: Sequence[Sharing]) -> Self:
        """`partitions`: of each topic of each group."""
        each = [_divided(*it) for it in zip(partitions, sharings, strict=True)]
        width, parts, steps = (max(len(it[column]) for it in each) for column in (0, 2, 3))
        return cls(
            np.array([sharing is Sharing.BY_TOPIC for sharing in sharings]),
            np.array([sharing is not Sharing.SEVERAL_READERS for sharing in sharings]),
            np.array([most_members(*it) for it in zip(partitions, sharings, strict=True)], np.int64),
            np.stack([_wide(place, width, 0) for place, _, _, _ in each]),
            np.stack([_wide(part, width, 0) for _, part, _, _ in each]),
            np.stack([_wide(size, parts, 0) for _, _, size, _ in each]),
            np.stack([_wide(numbers, steps, int(numbers[-1])) for _, _, _, numbers in each]),
        )

    def among(self, rows: Indexes) -> "Divisions":
        """Returns those of some groups."""
        return Divisions(
            self.is_by_topic[rows],
            self.is_exclusive[rows],
            self.most[rows],
            self.place[rows],
            self.part[rows],
            self.size[rows],
            self.numbers[rows],
        )

    def in_turns(self, members: Counts) -> Indexes:
        """Returns the owner of each partition (last axis) for numbers of members (columns), who get partitions in
        turns, or one run of each topic."""
        number, place = members[:, :, np.newaxis], self.place[:, np.newaxis]
        if not self.is_by_topic.any():
            return place % number
        size = np.maximum(np.take_along_axis(self.size, self.part, axis=1), 1)[:, np.newaxis]
        runs = place * np.minimum(number, size) // size
        return np.where(self.is_by_topic[:, np.newaxis, np.newaxis], runs, place % number)


class Reading(NamedTuple):
    """What arrives in many groups (rows), and who reads it."""

    arriving: Messages
    """Messages per second in each partition (columns)."""
    capacity: Messages
    """Messages per second of one member."""
    members: Counts
    """UNKNOWN where they are not known."""
    owners: Indexes | None
    """The member that has each partition, from 0; negative: nobody. None: not known."""

    def among(self, rows: Indexes) -> "Reading":
        """Returns that of some groups."""
        owners = None if self.owners is None else self.owners[rows]
        return Reading(self.arriving[rows], self.capacity[rows], self.members[rows], owners)


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Messages per second that arrive in groups, as far as most numbers of members follow from these alone."""

    total: Messages
    carried: Messages
    """What members could read of it, if each partition had one of its own."""
    means: Messages
    """Of what is carried in the partitions of each part (columns)."""
    largest: Messages
    """In one partition."""
    second: Messages
    """In one of the others."""

    @classmethod
    def of(
        cls, arriving: Messages, able: Messages, size: Counts, part: Indexes, number: Counts | Literal[1] = 1
    ) -> Self:
        """`arriving`: in each partition (columns) of each group (rows). `able`: what one member can read. `size` and
        `part`: as `Divisions` has them. `number`: of partitions of the same part that each column stands for."""
        groups, carried = np.arange(len(arriving)), np.minimum(arriving, able[:, np.newaxis]) * number
        slots = groups[:, np.newaxis] * size.shape[1] + part
        sums = np.bincount(slots.ravel(), carried.ravel(), size.size).reshape(size.shape)
        at, rest = arriving.argmax(axis=1), arriving.copy()
        largest = arriving[groups, at]
        rest[groups, at] = np.where(np.broadcast_to(number, arriving.shape)[groups, at] > 1, largest, 0.0)
        means = sums / np.maximum(size, 1)
        return cls((arriving * number).sum(axis=1), carried.sum(axis=1), means, largest, rest.max(axis=1))

    def among(self, rows: Indexes | slice) -> "Rates":
        """Returns those of some groups."""
        return Rates(self.total[rows], self.carried[rows], self.means[rows], self.largest[rows], self.second[rows])


class Asked(Protocol):
    """Groups (rows) whose numbers of members are asked for."""

    @property
    def rates(self) -> Rates: ...

    @property
    def capacity(self) -> Messages:
        """Messages per second of one member."""

    @property
    def members(self) -> Counts:
        """UNKNOWN where they are not known."""

    def held(self) -> Counts | None:
        """Returns of how many partitions with messages a member has at most, where the owners are known; more than
        there are, where nobody has one. None: no owners are known."""

    def reading(self, rows: Indexes) -> Reading:
        """Returns what arrives in each partition of some of them, and who reads it."""


def held_at_most(arriving: Messages, owners: Indexes) -> Counts:
    """Returns what `Asked.held` does. Both are by partition (columns)."""
    slots = max(int(owners.max(initial=-1)) + 1, 1) + 1
    places = np.arange(len(owners))[:, np.newaxis] * slots + owners + 1
    numbers = np.bincount(places.ravel(), (arriving > 0).ravel(), len(owners) * slots).reshape(len(owners), slots)
    return np.where(numbers[:, 0] > 0, owners.shape[1] + 1, numbers[:, 1:].max(axis=1)).astype(np.int64)


@lru_cache(maxsize=256)
def _divided(partitions: tuple[int, ...], sharing: Sharing) -> tuple[Indexes, Indexes, Counts, Counts]:
    """Returns places, parts, sizes and numbers of one group."""
    size = partitions if sharing is Sharing.BY_TOPIC else (sum(partitions),)
    place = np.concatenate([np.arange(number) for number in size])
    numbers = {-(-number // share) for number in size for share in range(1, number + 1)} or {0}
    part = np.repeat(np.arange(len(size)), size)
    return place, part, np.array(size, np.int64), np.array(sorted(numbers), np.int64)


def _wide(column: Indexes, width: int, rest: int) -> Indexes:
    return np.concatenate([column, np.full(width - len(column), rest, column.dtype)])


def whole_partitions(asked: Asked, divisions: Divisions, least: Counts) -> Counts:
    """Returns the numbers of members, `least` or more, that read what arrives by whole partitions."""
    even = _evenly(asked, divisions, least)
    # No smaller share than one partition exists.
    rows = np.flatnonzero((even < divisions.most) & ~_is_little_left(asked, divisions, even))
    if len(rows):
        even[rows] = _worthwhile(asked.reading(rows), divisions.among(rows), even[rows], least[rows])
    return even


def _is_little_left(asked: Asked, divisions: Divisions, members: Counts) -> Flags:
    """Whether so many members surely leave too little for one more: also if each has as many partitions as a member can
    have, and all but the busiest one get as much as the next busiest."""
    rates, capacity = asked.rates, asked.capacity
    most = (-(-divisions.size // members[:, np.newaxis])).sum(axis=1)
    if (held := asked.held()) is not None:
        most = np.where(members == asked.members, held, most)
    left = np.minimum(rates.largest, capacity) + (most - 1) * rates.second - capacity + _ROUNDING * rates.carried
    is_little: Flags = (left <= WORTHWHILE * capacity) & (most * rates.second <= capacity)
    is_little &= most <= divisions.place.shape[1]
    return is_little


def _evenly(asked: Asked, divisions: Divisions, least: Counts) -> Counts:
    """Returns the first numbers with which the member with most partitions reads them, if all of a part got the same;
    otherwise the largest."""
    sizes, means, capacity = divisions.size, asked.rates.means, asked.capacity

    def is_enough(rows: Indexes | slice, members: Counts) -> Flags:
        """Of numbers of members (columns)."""
        shares = -(-sizes[rows, np.newaxis] // members[..., np.newaxis])
        enough: Flags = (shares * means[rows, np.newaxis]).sum(axis=2) - _ROUNDING <= capacity[rows, np.newaxis]
        return enough

    first = np.minimum(least, divisions.most)
    even, rows = first.copy(), np.flatnonzero(~is_enough(slice(None), first[:, np.newaxis])[:, 0])
    if len(rows):
        numbers = divisions.numbers[rows]
        are_enough = is_enough(rows, numbers) & (numbers >= first[rows, np.newaxis])
        are_enough[:, -1] = True
        even[rows] = numbers[np.arange(len(rows)), are_enough.argmax(axis=1)]
    return even


def _worthwhile(reading: Reading, divisions: Divisions, even: Counts, least: Counts) -> Counts:
    """Returns the numbers from `even` on of whose members each reads enough that nobody would read without it."""
    arriving = reading.arriving.sum(axis=1)
    is_uniform = reading.arriving.max(axis=1) * divisions.size.sum(axis=1) <= arriving + _ROUNDING
    # More members read at most what these leave, so one more must be worth it at least.
    carried = np.minimum(reading.arriving, reading.capacity[:, np.newaxis]).sum(axis=1)
    left = carried - _read_by(reading, divisions, even[:, np.newaxis])[:, 0]
    rows = np.flatnonzero((left > WORTHWHILE * reading.capacity) & ~(is_uniform & (even == least)))
    if len(rows):
        most = even[rows] + left[rows] / (WORTHWHILE * reading.capacity[rows])
        even[rows] = _best(reading.among(rows), divisions.among(rows), even[rows], most)
    return even


def _best(reading: Reading, divisions: Divisions, even: Counts, most: Messages) -> Counts:
    """Returns the best of the numbers from `even` to `most`. Of two that are equally good, the smaller one counts,
    whatever the last digits of their sums are."""
    known = even if reading.owners is None else reading.members
    numbers = np.column_stack([even, known, divisions.numbers])
    is_tried = (numbers > even[:, np.newaxis]) & (numbers <= most[:, np.newaxis] + _ROUNDING)
    numbers = np.sort(np.where(is_tried, numbers, even[:, np.newaxis]), axis=1)
    numbers = numbers[:, -1 - int(is_tried.sum(axis=1).max()) :]
    at_once = max(1, MOST_CELLS // reading.arriving.size)
    parts = [numbers[:, first : first + at_once] for first in range(0, numbers.shape[1], at_once)]
    read = np.concatenate([_read_by(reading, divisions, part) for part in parts], axis=1)
    gains = np.round(read - WORTHWHILE * reading.capacity[:, np.newaxis] * numbers, 6)
    best: Counts = numbers[np.arange(len(even)), gains.argmax(axis=1)]
    return best


def _read_by(reading: Reading, divisions: Divisions, members: Counts) -> Messages:
    """Returns the messages per second that numbers of members (columns) read of those that arrive.

    The real assignment counts where it is known. Otherwise the members are taken to get partitions in turns, and with
    the assignor `range` one run of each topic."""
    owners = divisions.in_turns(members)
    if reading.owners is not None:
        is_real = members == reading.members[:, np.newaxis]
        owners = np.where(is_real[:, :, np.newaxis], reading.owners[:, np.newaxis], owners)
    slots = int(owners.max()) + 2
    places = np.arange(members.size).reshape(*members.shape, 1) * slots + owners + 1
    arriving = np.broadcast_to(reading.arriving[:, np.newaxis], owners.shape)
    loads = np.bincount(places.ravel(), arriving.ravel(), members.size * slots).reshape(*members.shape, slots)
    read: Messages = np.minimum(loads[:, :, 1:], reading.capacity[:, np.newaxis, np.newaxis]).sum(axis=2)
    return read
