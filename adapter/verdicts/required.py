"""How many members of a group keep a promise about waiting, by what arrives, what waits and what one member can do.

A lag alone is no demand: it follows from the members that were there. The number of members follows from the rate at
which messages arrive, which does not depend on them, and what already waits is worked off within the promise beside it.
Only members that shorten a wait count: each one has whole partitions, and no two can share one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags, Indexes
from adapter.verdicts.assignment import NO_LIMIT, Sharing, most_members

Messages = NDArray[np.float64]

SHORTEST_SECONDS = 60.0
"""Messages that wait are worked off in no less: a quicker reaction overshoots, because new members need time."""
WORTHWHILE = 0.25
"""Beyond what the sum of the rates asks for, a member must read at least this share of its capacity that nobody would
read without it. Otherwise one busy partition would ask for a member for every other one."""
CHANCE = 3.0
"""Standard deviations of a number of messages that come independently of one another."""
CALMING = 1.05
"""The number falls only if the rates could grow by this factor without raising it again."""
LONGEST_FREEZE_SECONDS = 300.0
"""Kafka's default for max.poll.interval.ms, the longest that a member may hold up a rebalance."""
PROVEN_SECONDS = 120.0
"""After a step, members read for so long before it is judged: rates are over up to 95 s."""
INEFFECTIVE = 0.1
"""A step up that raised the throughput by less than this share of what it should have did not help."""
LIMITED_SECONDS = 1800.0
GROWN = 1.1
"""After that time, or once so many times as much arrives, a step up that did not help is tried again."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Promise:
    max_wait: float
    """Seconds that a message waits at most."""
    utilization: float = 0.9
    """Of the capacity, the share that is planned with."""
    pause_seconds: float = 0.0
    """For which a rebalance stops all members."""
    delay_seconds: float = 65.0
    """From the offsets that ask for a member until it reads: half an interval, a sync of the HPA controller (15 s), the
    start of a pod (30 s) and its joining (10 s), rounded up."""

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


class Required(NamedTuple):
    members: int
    basis: Basis
    hot: Indexes
    """Partitions that get more than one member can read, so that no number of members keeps their promise."""
    still: Indexes
    """Partitions that wait, and whose commits stand still."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step up, while something waited."""

    members: int
    read: float
    """Before it."""


@dataclass(frozen=True, slots=True)
class Course:
    """What the next number depends on, of those before it."""

    members: int
    """That were required."""
    drain: float = math.inf
    """Messages per second that were to be worked off, when the members were last those that were expected; infinite if
    they never were."""
    unsettled_since: float | None = None
    difference: int = 0
    """Members that are there beyond those that are expected (negative: that are missing), and that have been accepted,
    because a change takes no longer than LONGEST_FREEZE_SECONDS."""
    seen: int | None = None
    """Members that were last there."""
    seen_since: float = 0.0
    step: _Step | None = None
    limit: int = NO_LIMIT
    """More members did not help."""
    limited_until: float = -math.inf
    limited_rate: float = math.inf
    """Messages per second that arrived when that was found."""

    def is_settled(self, now: float) -> bool:
        """Whether the members are those that are expected, as far as they ever are."""
        return self.unsettled_since is None or now - self.unsettled_since >= LONGEST_FREEZE_SECONDS


def beyond_flight(lag: Messages, arriving: Messages, seconds: Messages | float) -> Messages:
    """Returns the lag without what arrived in so many seconds: a member has read it, or is about to, and has not
    committed it yet. Every commit interval, the lag of a group that keeps up rises by as much and falls again."""
    return np.maximum(lag - arriving * seconds, 0.0)


def following_a_rise(arriving: Messages, lately: Messages, seconds: float) -> Messages:
    """Returns the rates of a window, raised to the sum of those of its last seconds if that is more than chance makes:
    a window of a minute is half a minute behind a load that rises. `lately` may not be known (NaN)."""
    usual, recent = float(arriving.sum()), float(lately.sum())
    if not recent * seconds >= 1 or recent <= usual * (1 + CHANCE / math.sqrt(recent * seconds)):
        return arriving
    return arriving * (recent / usual) if usual > 0 else lately


def required(now: float, demand: Demand, promise: Promise, course: Course | None = None) -> tuple[Required, Course]:
    """Returns the number of members, and the course for the next call; None: this is the first one. `now` is in seconds
    and never goes back."""
    still = _still(demand)
    counted = _without(demand, still)
    hot = np.flatnonzero(counted.arriving > demand.capacity) if _is_exclusive(demand) else still[:0]
    course = _watched(now, demand, Course(demand.expected_members or 0) if course is None else course)
    is_settled = course.is_settled(now)
    drain = float(_drains(counted, promise).sum())
    if not is_settled:
        # The pause of a rebalance, and members that are still starting, ask for no more members.
        drain = min(drain, course.drain)
    course = _judged(now, demand, course, is_lagging=drain > 0) if is_settled else course
    wanted, basis = _calmed(_wanted(counted, promise, drain), counted, promise, drain, course, is_settled=is_settled)
    is_limited = now < course.limited_until and float(demand.arriving.sum()) <= GROWN * course.limited_rate
    if is_limited and wanted > course.limit:
        wanted, basis = course.limit, Basis.DOWNSTREAM
    is_measured = is_settled and not math.isnan(demand.read)
    if is_measured and course.step is None and drain > 0 and 0 < (demand.members or 0) < wanted:
        course = replace(course, step=_Step(demand.members or 0, demand.read))
    return Required(wanted, basis, hot, still), replace(course, members=wanted, drain=drain)


def _still(demand: Demand) -> Indexes:
    none = np.empty(0, np.intp)
    return none if demand.is_still is None else np.flatnonzero(demand.is_still & (demand.lag > 0))


def _without(demand: Demand, still: Indexes) -> Demand:
    """Returns the demand without partitions that stand still. If there is nothing else, one member still has work."""
    if not len(still):
        return demand
    arriving, beyond = demand.arriving.copy(), demand.beyond.copy()
    arriving[still] = beyond[still] = 0.0
    return replace(demand, arriving=arriving, beyond=beyond)


def _is_exclusive(demand: Demand) -> bool:
    """Whether one member at most reads each partition."""
    return demand.sharing is not Sharing.SEVERAL_READERS


def _calmed(
    wanted: tuple[int, Basis], demand: Demand, promise: Promise, drain: float, course: Course, *, is_settled: bool
) -> tuple[int, Basis]:
    """Keeps the number before instead of a smaller one that might soon be too small."""
    number, _ = wanted
    if number >= course.members:
        return wanted
    lowest = course.members
    if is_settled:
        busier = replace(demand, arriving=demand.arriving * CALMING)
        lowest = min(_wanted(busier, promise, drain)[0], lowest)
    return (lowest, Basis.HELD) if lowest > number else wanted


def _drains(demand: Demand, promise: Promise) -> Messages:
    """Returns the messages per second to read of each partition beside those that arrive. A member of its own could
    read no more of it than what is left of its capacity."""
    drains = demand.beyond / promise.drain_seconds
    if not _is_exclusive(demand):
        return drains
    return np.minimum(drains, np.maximum(demand.capacity - demand.arriving, 0.0))


def _wanted(demand: Demand, promise: Promise, drain: float) -> tuple[int, Basis]:
    """Returns the number of members without what was before."""
    if not demand.arriving.any() and not demand.lag.any():
        return 0, Basis.IDLE
    carried = np.minimum(demand.arriving, demand.capacity) if _is_exclusive(demand) else demand.arriving
    rate = float(carried.sum()) * (1 + promise.pause_seconds / promise.drain_seconds) + drain
    by_rates = max(math.ceil(rate / (demand.capacity * promise.utilization) - _ROUNDING), 1)
    if not _is_exclusive(demand):
        return by_rates, Basis.RATES
    by_partitions = _by_partitions(demand, carried, by_rates)
    most = most_members(demand.partitions, demand.sharing)
    if by_partitions > by_rates:
        return min(by_partitions, most), Basis.PARTITIONS
    return min(by_rates, most), Basis.RATES


def _by_partitions(demand: Demand, carried: Messages, least: int) -> int:
    """Returns the number of members, `least` or more, that read what arrives by whole partitions."""
    numbers = _useful_numbers(demand.partitions, demand.sharing, least)
    means = [float(part.mean()) if len(part) else 0.0 for part in np.split(carried, _ends(demand.partitions))]
    even = next((number for number in numbers if _even_load(demand, means, number) <= demand.capacity), numbers[-1])
    if even == least and float(demand.arriving.max()) == float(demand.arriving.min()):
        return even
    candidates = [number for number in numbers if number >= even]
    if demand.members is not None and demand.owners is not None and demand.members >= even:
        candidates = sorted({*candidates, demand.members})
    worth = WORTHWHILE * demand.capacity
    # Of two numbers that are equally good, the smaller one counts, whatever the last digits of their sums are.
    return max(candidates, key=lambda number: (round(_read_by(demand, number) - worth * number, 6), -number))


def _even_load(demand: Demand, means: Sequence[float], members: int) -> float:
    """Returns the messages per second of the member with most partitions, if all of a topic got the same."""
    if demand.sharing is Sharing.BY_TOPIC:
        loads = (_share(number, members) * mean for number, mean in zip(demand.partitions, means, strict=True))
        return sum(loads) - _ROUNDING
    total = sum(demand.partitions)
    mean = sum(number * mean for number, mean in zip(demand.partitions, means, strict=True)) / total
    return _share(total, members) * mean - _ROUNDING


def _read_by(demand: Demand, members: int) -> float:
    """Returns the messages per second that so many members read of those that arrive.

    The real assignment counts where it is known. Otherwise the members are taken to get partitions in turns, and with
    the assignor `range` one run of each topic."""
    owners = demand.owners
    if owners is None or members != demand.members:
        owners = _in_turns(demand, members)
    is_owned = owners >= 0
    loads = np.bincount(owners[is_owned], demand.arriving[is_owned])
    return float(np.minimum(loads, demand.capacity).sum())


def _in_turns(demand: Demand, members: int) -> Indexes:
    if demand.sharing is not Sharing.BY_TOPIC:
        return np.arange(len(demand.arriving)) % members
    runs = [np.arange(number) * min(members, number) // max(number, 1) for number in demand.partitions]
    return np.concatenate(runs)


def _useful_numbers(partitions: Sequence[int], sharing: Sharing, least: int) -> list[int]:
    """Returns the numbers of members from `least` on at which the largest share of partitions becomes smaller."""
    divided = partitions if sharing is Sharing.BY_TOPIC else (sum(partitions),)
    most = max(divided)
    numbers = {_share(number, each) for number in divided if number for each in range(1, _share(number, least) + 1)}
    return sorted({min(least, most), *(number for number in numbers if number >= least)})


def _share(partitions: int, members: int) -> int:
    """Rounds up."""
    return -(-partitions // members)


def _ends(partitions: Sequence[int]) -> Indexes:
    return np.cumsum(np.array(partitions[:-1], np.intp))


def _watched(now: float, demand: Demand, course: Course) -> Course:
    """Follows which members are there, and since when they are not those that are expected."""
    if demand.members != course.seen:
        course = replace(course, seen=demand.members, seen_since=now)
    difference = _difference(demand)
    is_usual = difference in {0, course.difference}
    is_late = course.unsettled_since is not None and course.is_settled(now)
    if difference is not None and (is_usual or is_late):
        return replace(course, unsettled_since=None, difference=difference)
    return course if course.unsettled_since is not None else replace(course, unsettled_since=now)


def _difference(demand: Demand) -> int | None:
    """Returns the members beyond those that are expected; None: the members are not known."""
    if demand.members is None:
        return None
    return 0 if demand.expected_members is None else demand.members - demand.expected_members


def _judged(now: float, demand: Demand, course: Course, *, is_lagging: bool) -> Course:
    """Decides whether the latest step up has helped, once its members have read for long enough."""
    step, members = course.step, demand.members or 0
    if step is None or math.isnan(demand.read) or now - course.seen_since < PROVEN_SECONDS:
        return course
    if members <= step.members or not is_lagging or _keeps_up(demand):
        return replace(course, step=None)
    has_helped = demand.read >= step.read * (1 + INEFFECTIVE * (members / step.members - 1))
    if has_helped:
        return replace(course, step=None)
    rate = float(demand.arriving.sum())
    return replace(course, step=None, limit=step.members, limited_until=now + LIMITED_SECONDS, limited_rate=rate)


def _keeps_up(demand: Demand) -> bool:
    """Whether members read about as much as arrives and can be read: then nothing further down limits them, however
    little that is."""
    carried = np.minimum(demand.arriving, demand.capacity) if _is_exclusive(demand) else demand.arriving
    return demand.read >= (1 - INEFFECTIVE) * float(carried.sum())
