"""How many members of a group keep a promise about waiting, by what arrives, what waits and what one member can do.

A lag alone is no demand: it follows from the members that were there. The number of members follows from the rate at
which messages arrive, which does not depend on them, and what already waits is worked off within the promise beside it.
Only members that shorten a wait count: each one has whole partitions, and no two can share one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags, Indexes
from adapter.verdicts.assignment import (
    NO_LIMIT,
    UNKNOWN,
    Asked,
    Counts,
    Divisions,
    Rates,
    Reading,
    Sharing,
    held_at_most,
    whole_partitions,
)

Messages = NDArray[np.float64]

SHORTEST_SECONDS = 60.0
"""Messages that wait are worked off in no less: a quicker reaction overshoots, because new members need time."""
CHANCE = 3.0
"""Standard deviations of a number of messages that come independently of one another."""
QUICK_SECONDS, QUICK_CYCLES = 15.0, 2
"""A load that rises is seen over so many seconds or cycles, whichever is longer."""
CALMING = 1.05
"""The number falls only if the rates could grow by this factor without raising it again."""
LONGEST_FREEZE_SECONDS = 300.0
"""Kafka's default for max.poll.interval.ms, the longest that a member may hold up a rebalance."""
PROVEN_SECONDS = 120.0
"""After a step, members read for so long before it is judged: rates are over up to 95 s."""
INEFFECTIVE = 0.1
"""A step up that raised the throughput by less than this share of what it should have did not help."""
DELAY_SECONDS = 60.0
"""A sync of the HPA controller (15 s), the start of a pod (30 s) and its joining (10 s), rounded up."""
PAUSE_SECONDS = 3.0
"""For which a rebalance stops all members, as the assignor `range` does."""
LIMITED_SECONDS = 1800.0
GROWN = 1.1
"""After that time, or once so many times as much arrives, a step up that did not help is tried again."""
_ROUNDING = 1e-9
_MOST = 2**31 - 1
"""Replicas that Kubernetes can count."""


@dataclass(frozen=True, slots=True)
class Promise:
    max_wait: float
    """Seconds that a message waits at most."""
    utilization: float = 0.9
    """Of the capacity, the share that is planned with."""
    pause_seconds: float = 0.0
    """For which a rebalance stops all members."""
    delay_seconds: float = 65.0
    """From the offsets that ask for a member until it reads."""

    @classmethod
    def of(cls, max_wait: float, sharing: Sharing, interval_seconds: float) -> Self:
        """Returns the promise of a group whose offsets are read at this interval."""
        pause = PAUSE_SECONDS if sharing is Sharing.BY_TOPIC else 0.0
        return cls(max_wait, pause_seconds=pause, delay_seconds=DELAY_SECONDS + interval_seconds / 2)

    @property
    def drain_seconds(self) -> float:
        """The time in which messages that wait are worked off."""
        return max(self.max_wait, SHORTEST_SECONDS, self.delay_seconds)


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Of one group at one time; columns have an entry for each partition, one topic after another."""

    arriving: Messages
    """Messages per second."""
    lag: Messages
    beyond: Messages
    """Of the lag, what waits beyond messages on their way (`beyond_flight`)."""
    capacity: float
    """Messages per second of one member."""
    partitions: tuple[int, ...]
    """Of each topic."""
    sharing: Sharing = Sharing.TOGETHER
    is_still: Flags | None = None
    """Partitions whose commits stand still; None: none."""
    read: float = math.nan
    """Messages per second that the group reads; NaN: not known."""
    members: int | None = None
    """None: not known, or the group rebalances."""
    expected_members: int | None = None
    """By the replicas that are there; None: not known."""
    owners: Indexes | None = None
    """The member that has each partition, from 0; negative: nobody. None: not known."""
    measured: Messages | None = None
    """What arrives now, where `arriving` is what is expected to; None: the same."""

    @property
    def arriving_now(self) -> Messages:
        return self.arriving if self.measured is None else self.measured


class Basis(StrEnum):
    """What the number follows from."""

    IDLE = "idle"
    """Nothing waits and nothing arrives."""
    RATES = "rates"
    """The sum of the rates, and what waits."""
    PARTITIONS = "partitions"
    """Members that have whole partitions: fewer could read the sum, but not every partition."""
    HELD = "held"
    """The number before, which is a little larger than needed, or members are still changing."""
    DOWNSTREAM = "downstream"
    """More members have read no more than fewer, so what they write to or read from limits them."""


BASES = tuple(Basis)
"""By the number that they have in columns."""
_IDLE, _RATES, _PARTITIONS, _HELD, _DOWNSTREAM = range(len(BASES))


class Required(NamedTuple):
    members: int
    basis: Basis
    hot: Indexes
    """Partitions that get more than one member can read, so that no number of members keeps their promise."""
    still: Indexes
    """Partitions that wait, and whose commits stand still."""


@dataclass(frozen=True, slots=True)
class Course:
    """What the next number depends on, of those before it."""

    members: int
    """That were required."""
    drain: float = math.inf
    """Messages per second that were to be worked off, when the members were last those that were expected; infinite if
    they never were."""
    unsettled_since: float = math.nan
    """NaN: the members are those that are expected."""
    difference: int = 0
    """Members that are there beyond those that are expected (negative: that are missing), and that have been accepted,
    because a change takes no longer than LONGEST_FREEZE_SECONDS."""
    seen: int = UNKNOWN
    """Members that were last there."""
    seen_since: float = 0.0
    step_members: int = 0
    """Before a step up while something waited; 0: there was none."""
    step_read: float = math.nan
    """Messages per second that were read before it."""
    limit: int = NO_LIMIT
    """More members did not help."""
    limited_until: float = -math.inf
    limited_rate: float = math.inf
    """Messages per second that arrived when that was found."""


@dataclass(frozen=True, slots=True, eq=False)
class Courses:
    """The fields of a course, each with an entry for every group."""

    members: Counts
    drain: Messages
    unsettled_since: Messages
    difference: Counts
    seen: Counts
    seen_since: Messages
    step_members: Counts
    step_read: Messages
    limit: Counts
    limited_until: Messages
    limited_rate: Messages

    @classmethod
    def of(cls, courses: Sequence[Course]) -> Self:
        return cls(*(np.array([getattr(course, it.name) for course in courses]) for it in fields(cls)))

    def is_settled(self, now: float) -> Flags:
        """Whether the members are those that are expected, as far as they ever are."""
        settled: Flags = ~(now - self.unsettled_since < LONGEST_FREEZE_SECONDS)
        return settled


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """As `Demand`, with a row for each group. Partitions are columns; those that a group lacks have 0 of everything."""

    arriving: Messages
    lag: Messages
    beyond: Messages
    capacity: Messages
    read: Messages
    members: Counts
    """UNKNOWN where they are not known, also if they are expected."""
    expected_members: Counts
    is_still: Flags | None = None
    owners: Indexes | None = None
    measured: Messages | None = None

    @property
    def arriving_now(self) -> Messages:
        return self.arriving if self.measured is None else self.measured

    def among(self, rows: Indexes) -> "Demands":
        """Returns those of some groups."""
        return Demands(
            self.arriving[rows],
            self.lag[rows],
            self.beyond[rows],
            self.capacity[rows],
            self.read[rows],
            self.members[rows],
            self.expected_members[rows],
            None if self.is_still is None else self.is_still[rows],
            None if self.owners is None else self.owners[rows],
            None if self.measured is None else self.measured[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Promises:
    """The fields of a promise, each with an entry for every group."""

    utilization: Messages
    pause_seconds: Messages
    drain_seconds: Messages

    @classmethod
    def of(cls, promises: Sequence[Promise]) -> Self:
        return cls(*(np.array([getattr(promise, it.name) for promise in promises]) for it in fields(cls)))

    def among(self, rows: Indexes) -> "Promises":
        """Returns those of some groups."""
        return Promises(*(getattr(self, it.name)[rows] for it in fields(self)))


class Wanting(Asked, Protocol):
    """Groups whose numbers of members depend on nothing else."""

    @property
    def is_idle(self) -> Flags:
        """Whether nothing waits and nothing arrives."""


class Known(Wanting, Protocol):
    """What is known of many groups (rows) at one time."""

    @property
    def read(self) -> Messages:
        """Messages per second; NaN where they are not known."""

    @property
    def expected_members(self) -> Counts: ...

    def drains(self) -> Messages:
        """Returns the messages per second to read beside those that arrive (`drains_of`)."""

    def measured(self) -> tuple[Messages, Messages]:
        """Returns the messages per second that arrive now, and of these what members could read."""

    def busier(self, rows: Indexes) -> Wanting:
        """Returns some of them, with rates that have grown by CALMING."""


class RequiredOfAll(NamedTuple):
    members: Counts
    basis: Counts
    """Places in BASES."""
    hot: Flags
    """Partitions of each group, as `Required` has them."""
    still: Flags


def quick_window_of(interval: Messages | float) -> Messages:
    """Returns the seconds over which a load that rises is seen, if offsets are read at this interval."""
    return np.maximum(QUICK_SECONDS, QUICK_CYCLES * interval)


def following_a_rise(arriving: Messages, lately: Messages, seconds: Messages | float) -> Messages:
    """Returns the rates of a window, raised to the sum of those of its last seconds if that is more than chance makes:
    a window of a minute is half a minute behind a load that rises. `lately` may not be known (NaN). Partitions are the
    last axis."""
    usual, recent = arriving.sum(axis=-1), lately.sum(axis=-1)
    messages = np.maximum(recent * seconds, 1.0)
    is_rise = (recent * seconds >= 1) & (recent > usual * (1 + CHANCE / np.sqrt(messages)))
    if not is_rise.any():
        return arriving
    factor = np.where(is_rise & (usual > 0), recent / np.where(usual > 0, usual, 1.0), 1.0)
    return np.where((is_rise & (usual <= 0))[..., np.newaxis], lately, arriving * factor[..., np.newaxis])


def required(now: float, demand: Demand, promise: Promise, course: Course | None = None) -> tuple[Required, Course]:
    """Returns the number of members, and the course for the next call; None: this is the first one. `now` is in seconds
    and never goes back."""
    before = Course(demand.expected_members or 0) if course is None else course
    alone = _alone(demand), Divisions.of([demand.partitions], [demand.sharing]), Promises.of([promise])
    found, after = required_of_all(now, *alone, Courses.of([before]))
    (hot,), (still,) = found.hot, found.still
    number = Required(int(found.members[0]), BASES[found.basis[0]], np.flatnonzero(hot), np.flatnonzero(still))
    return number, Course(*(getattr(after, it.name)[0].item() for it in fields(after)))


def _alone(demand: Demand) -> Demands:
    members, expected = (np.array([UNKNOWN if it is None else it]) for it in (demand.members, demand.expected_members))
    return Demands(
        demand.arriving[np.newaxis],
        demand.lag[np.newaxis],
        demand.beyond[np.newaxis],
        np.array([demand.capacity]),
        np.array([demand.read]),
        members,
        expected,
        None if demand.is_still is None else demand.is_still[np.newaxis],
        None if demand.owners is None else demand.owners[np.newaxis],
        None if demand.measured is None else demand.measured[np.newaxis],
    )


def required_of_all(
    now: float, demands: Demands, divisions: Divisions, promises: Promises, courses: Courses
) -> tuple[RequiredOfAll, Courses]:
    """Returns the number of members of each group, and the courses for the next call."""
    none = np.zeros(demands.lag.shape, np.bool_)
    still, counted = none if demands.is_still is None else demands.is_still & (demands.lag > 0), demands
    if still.any():
        # If there is nothing else, one member still has work.
        arriving, beyond = (np.where(still, 0.0, column) for column in (demands.arriving, demands.beyond))
        counted = replace(demands, arriving=arriving, beyond=beyond)
    able = np.where(divisions.is_exclusive, demands.capacity, np.inf)
    known = _Demanded(counted, able, divisions, promises, demands)
    wanted, basis, courses = decided(now, known, divisions, promises, courses)
    return RequiredOfAll(wanted, basis, counted.arriving > able[:, np.newaxis], still), courses


class _Demanded:
    """What `Known` asks for, from demands."""

    def __init__(
        self, it: Demands, able: Messages, divisions: Divisions, promises: Promises, of_all: Demands | None = None
    ) -> None:
        """`of_all`: with the partitions whose commits stand still."""
        self._it, self._able, self._divisions, self._promises, self._of_all = it, able, divisions, promises, of_all
        self.capacity, self.members, self.read = it.capacity, it.members, it.read
        self.expected_members = it.expected_members
        self.rates = Rates.of(it.arriving, able, divisions)

    @property
    def is_idle(self) -> Flags:
        idle: Flags = ~(self._it.arriving.any(axis=1) | self._it.lag.any(axis=1))
        return idle

    def held(self) -> Counts | None:
        return None if self._it.owners is None else held_at_most(self._it.arriving, self._it.owners)

    def reading(self, rows: Indexes) -> Reading:
        it = self._it
        return Reading(it.arriving, it.capacity, it.members, it.owners).among(rows)

    def drains(self) -> Messages:
        return drains_of(self._it.beyond, self._it.arriving, self._able, self._promises.drain_seconds)

    def measured(self) -> tuple[Messages, Messages]:
        arriving = (self._of_all or self._it).arriving_now
        return arriving.sum(axis=1), np.minimum(arriving, self._able[:, np.newaxis]).sum(axis=1)

    def busier(self, rows: Indexes) -> Wanting:
        it = self._it.among(rows)
        it = replace(it, arriving=it.arriving * CALMING)
        return _Demanded(it, self._able[rows], self._divisions.among(rows), self._promises.among(rows))


class _Some:
    """Some of the groups."""

    def __init__(self, it: Wanting, rows: Indexes) -> None:
        self._it, self._rows = it, rows
        self.rates, self.capacity, self.members = it.rates.among(rows), it.capacity[rows], it.members[rows]

    def held(self) -> Counts | None:
        held = self._it.held()
        return None if held is None else held[self._rows]

    def reading(self, rows: Indexes) -> Reading:
        return self._it.reading(self._rows[rows])


def decided(
    now: float, known: Known, divisions: Divisions, promises: Promises, courses: Courses
) -> tuple[Counts, Counts, Courses]:
    """Returns the number of members of each group, what it follows from, and the courses for the next call."""
    courses = _watched(now, known, courses)
    is_settled = courses.is_settled(now)
    # The pause of a rebalance, and members that are still starting, ask for no more members.
    drain = known.drains()
    drain = np.where(is_settled, drain, np.minimum(drain, courses.drain))
    courses = _judged(now, known, courses, is_settled, drain > 0)
    wanted, basis = _wanted(known, divisions, promises, drain)
    wanted, basis = _calmed(wanted, basis, known, divisions, promises, drain, courses, is_settled)
    is_limited = (now < courses.limited_until) & (wanted > courses.limit)
    if is_limited.any():
        is_limited &= known.measured()[0] <= GROWN * courses.limited_rate
        wanted, basis = np.where(is_limited, courses.limit, wanted), np.where(is_limited, _DOWNSTREAM, basis)
    steps = is_settled & ~np.isnan(known.read) & (courses.step_members == 0) & (drain > 0)
    steps &= (known.members > 0) & (known.members < wanted)
    courses = replace(
        courses,
        members=wanted,
        drain=drain,
        step_members=np.where(steps, known.members, courses.step_members),
        step_read=np.where(steps, known.read, courses.step_read),
    )
    return wanted, basis, courses


def _calmed(
    wanted: Counts,
    basis: Counts,
    known: Known,
    divisions: Divisions,
    promises: Promises,
    drain: Messages,
    courses: Courses,
    is_settled: Flags,
) -> tuple[Counts, Counts]:
    """Keeps the number before instead of a smaller one that might soon be too small."""
    falls = wanted < courses.members
    lowest = np.where(falls, courses.members, wanted)
    rows = np.flatnonzero(falls & is_settled)
    if len(rows):
        enough, _ = _wanted(known.busier(rows), divisions.among(rows), promises.among(rows), drain[rows])
        lowest[rows] = np.maximum(np.minimum(enough, lowest[rows]), wanted[rows])
    return lowest, np.where(lowest > wanted, _HELD, basis)


def drains_of(beyond: Messages, arriving: Messages, able: Messages, seconds: Messages) -> Messages:
    """Returns the messages per second to read beside those that arrive, so that what waits beyond messages on their way
    is worked off in so many seconds. A member of its own could read no more of a partition than what is left of its
    capacity."""
    if not beyond.any():
        return np.zeros(len(able))
    drains = beyond / seconds[:, np.newaxis]
    total: Messages = np.minimum(drains, np.maximum(able[:, np.newaxis] - arriving, 0.0)).sum(axis=1)
    return total


def _wanted(asked: Wanting, divisions: Divisions, promises: Promises, drain: Messages) -> tuple[Counts, Counts]:
    """Returns the numbers of members without what was before, and what they follow from."""
    is_idle = asked.is_idle
    rate = asked.rates.carried * (1 + promises.pause_seconds / promises.drain_seconds) + drain
    needed = np.ceil(rate / (asked.capacity * promises.utilization) - _ROUNDING)
    by_rates = np.clip(needed, 1, _MOST).astype(np.int64)
    rows = np.flatnonzero(divisions.is_exclusive & ~is_idle)
    if len(rows) == len(by_rates):
        by_partitions = whole_partitions(asked, divisions, by_rates)
    else:
        by_partitions = by_rates.copy()
        if len(rows):
            by_partitions[rows] = whole_partitions(_Some(asked, rows), divisions.among(rows), by_rates[rows])
    wanted = np.minimum(np.maximum(by_partitions, by_rates), divisions.most)
    basis = np.where(by_partitions > by_rates, _PARTITIONS, _RATES)
    return np.where(is_idle, 0, wanted), np.where(is_idle, _IDLE, basis)


def _watched(now: float, demands: Known, courses: Courses) -> Courses:
    """Follows which members are there, and since when they are not those that are expected."""
    members, since = demands.members, courses.unsettled_since
    difference = np.where(demands.expected_members == UNKNOWN, 0, members - demands.expected_members)
    is_usual = (difference == 0) | (difference == courses.difference)
    is_late = ~np.isnan(since) & courses.is_settled(now)
    settles = (members != UNKNOWN) & (is_usual | is_late)
    return replace(
        courses,
        seen=members,
        seen_since=np.where(members != courses.seen, now, courses.seen_since),
        unsettled_since=np.where(settles, np.nan, np.where(np.isnan(since), now, since)),
        difference=np.where(settles, difference, courses.difference),
    )


def _judged(now: float, demands: Known, courses: Courses, is_settled: Flags, is_lagging: Flags) -> Courses:
    """Decides whether the latest steps up have helped, once their members have read for long enough."""
    read, before = demands.read, courses.step_members
    is_due = is_settled & (before > 0) & ~np.isnan(read) & (now - courses.seen_since >= PROVEN_SECONDS)
    if not is_due.any():
        return courses
    expected = courses.step_read * (1 + INEFFECTIVE * (demands.members / np.maximum(before, 1) - 1))
    # Members that read about as much as arrives and can be read are not limited further down, however little that is.
    # What is only expected cannot be read yet.
    arriving, readable = demands.measured()
    keep_up = read >= (1 - INEFFECTIVE) * readable
    failed = is_due & is_lagging & (demands.members > before) & (read < expected) & ~keep_up
    return replace(
        courses,
        step_members=np.where(is_due, 0, before),
        limit=np.where(failed, before, courses.limit),
        limited_until=np.where(failed, now + LIMITED_SECONDS, courses.limited_until),
        limited_rate=np.where(failed, arriving, courses.limited_rate),
    )
