"""How many members of a group keep a promise about waiting, by what arrives, what waits and what one member can do.

A lag alone is no demand: it follows from the members that were there. The number of members follows from the rate at
which messages arrive, which does not depend on them, and what already waits is worked off within the promise beside it.
Only members that shorten a wait count: each one has whole partitions, and no two can share one."""

from dataclasses import fields, replace
from enum import StrEnum
from typing import Literal, NamedTuple

import numpy as np

from adapter.columns import Flags, Indexes
from adapter.verdicts.assignment import (
    UNKNOWN,
    Counts,
    Divisions,
    Rates,
    Reading,
    held_at_most,
    whole_partitions,
)
from adapter.verdicts.courses import GROWN, Course, Courses, judged, watched
from adapter.verdicts.demands import CALMING, Demand, Demands, Known, Messages, Promise, Promises, Wanting

CHANCE = 3.0
"""Standard deviations of a number of messages that come independently of one another."""
QUICK_SECONDS, QUICK_CYCLES = 15.0, 2
"""A load that rises is seen over so many seconds or cycles, whichever is longer."""
_ROUNDING = 1e-9
_MOST = 2**31 - 1
"""Replicas that Kubernetes can count."""


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


def following_a_rise(
    arriving: Messages, lately: Messages, seconds: Messages | float, number: Counts | Literal[1] = 1
) -> Messages:
    """Returns the rates of a window, raised to the sum of those of its last seconds if that is more than chance makes:
    a window of a minute is half a minute behind a load that rises. `lately` may not be known (NaN). Partitions are the
    last axis, or as many partitions as `number` says."""
    usual, recent = (arriving * number).sum(axis=-1), (lately * number).sum(axis=-1)
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
        self.rates = Rates.of(it.arriving, able, divisions.size, divisions.part)

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
    courses = watched(now, known, courses)
    is_settled = courses.is_settled(now)
    # The pause of a rebalance, and members that are still starting, ask for no more members.
    drain = known.drains()
    drain = np.where(is_settled, drain, np.minimum(drain, courses.drain))
    courses = judged(now, known, courses, is_settled, drain > 0)
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
