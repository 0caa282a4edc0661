"""How many members of a group keep a promise about waiting, by what arrives, what waits and what one member can do.

A lag alone is no demand: it follows from the members that were there. The number of members follows from the rate at
which messages arrive, which does not depend on them, and what already waits is worked off within the promise beside it.
Only members that shorten a wait count: each one has whole partitions, and no two can share one."""

import math
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from adapter.columns import Flags, Indexes
from adapter.records import Column
from adapter.verdicts.assignment import UNKNOWN, Sharing, most_members
from adapter.verdicts.courses import GROWN, Course, is_settled, judge, rate_of, watch
from adapter.verdicts.demands import CALMING, Demand, Messages, Need, Promise, able_of, drain_of
from adapter.verdicts.whole_partitions import ROUNDING, rates_of, whole_partitions

CHANCE = 3.0
"""Standard deviations of a number of messages that come independently of one another."""
QUICK_SECONDS, QUICK_CYCLES = 15.0, 2
"""A load that rises is seen over so many seconds or cycles, whichever is longer."""
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
"""By the numbers that rules have for them."""
_IDLE, _RATES, _PARTITIONS, _HELD, _DOWNSTREAM = range(len(BASES))


class Required(NamedTuple):
    members: int
    basis: Basis
    hot: Indexes
    """Partitions that get more than one member can read, so that no number of members keeps their promise."""
    still: Indexes
    """Partitions that wait, and whose commits stand still."""


def quick_window_of(interval: float) -> float:
    """Returns the seconds over which a load that rises is seen, if offsets are read at this interval."""
    return max(QUICK_SECONDS, QUICK_CYCLES * interval)


def rise_of(usual: float, recent: float, seconds: float) -> float:
    """Returns by what the rates of a window are multiplied to follow a rise, from their sum and that of its last
    seconds, if that is more than chance makes: a window of a minute is half a minute behind a load that rises. 1: there
    is none, or `recent` is not known (NaN). Infinite: nothing arrived before."""
    messages = recent * seconds
    if not (messages >= 1 and recent > usual * (1 + CHANCE / math.sqrt(messages))):
        return 1.0
    return recent / usual if usual > 0 else math.inf


def following_a_rise(arriving: Messages, lately: Messages, seconds: float) -> Messages:
    """Returns the rates of one group's partitions over a window, raised to the sum of those of its last seconds
    (`rise_of`). `lately` may not be known (NaN)."""
    rise = rise_of(float(arriving.sum()), float(lately.sum()), seconds)
    return lately if math.isinf(rise) else arriving * rise


def required(now: float, demand: Demand, promise: Promise, course: Course | None = None) -> tuple[Required, Course]:
    """Returns the number of members, and the course for the next call; None: this is the first one. `now` is in seconds
    and never goes back."""
    still = None if demand.is_still is None else demand.is_still & (demand.lag > 0)
    arriving, beyond = demand.arriving, demand.beyond
    if still is not None and still.any():
        # If there is nothing else, one member still has work.
        arriving, beyond = (np.where(still, 0.0, column) for column in (arriving, beyond))
    need = need_of(demand, promise)
    rates, able = arriving.tolist(), able_of(need)
    if beyond.any():
        need.drain = drain_of(beyond.tolist(), rates, able, promise.drain_seconds)
    rates_now = rates if demand.arriving_now is arriving else demand.arriving_now.tolist()
    owners = [] if demand.owners is None else demand.owners.tolist()
    sizes = list(demand.partitions) if need.is_by_topic else [len(rates)]
    room = [0.0] * max(len(rates), len(sizes), max(owners, default=0) + 1)
    after = Course(demand.expected_members or 0) if course is None else replace(course)
    members, basis = decided(now, need, after, rates, rates_now, owners, sizes, room)
    return Required(members, BASES[basis], _places(arriving > able), _places(still)), after


def need_of(demand: Demand, promise: Promise) -> Need:
    """Returns what there is of a group beside its columns, without what is to be worked off."""
    return Need(
        capacity=demand.capacity,
        most=most_members(demand.partitions, demand.sharing),
        is_exclusive=demand.sharing is not Sharing.SEVERAL_READERS,
        is_by_topic=demand.sharing is Sharing.BY_TOPIC,
        utilization=promise.utilization,
        pause_seconds=promise.pause_seconds,
        drain_seconds=promise.drain_seconds,
        waits=bool(demand.lag.any()),
        drain=0.0,
        read=demand.read,
        members=UNKNOWN if demand.members is None else demand.members,
        expected_members=UNKNOWN if demand.expected_members is None else demand.expected_members,
        has_owners=demand.owners is not None,
    )


def _places(flags: Flags | None) -> Indexes:
    return np.empty(0, np.intp) if flags is None else np.flatnonzero(flags)


def decided(
    now: float,
    need: Need,
    course: Course,
    arriving: Column[float],
    arriving_now: Column[float],
    owners: Column[int],
    sizes: Column[int],
    room: Column[float],
) -> tuple[int, int]:
    """Returns the number of members of one group and its place in BASES, and follows the course. `arriving`: messages
    per second in each partition; `arriving_now`: also in those whose commits stand still, and without what is only
    expected. `owners`, if they are known: the member that has each partition, from 0; negative: nobody. `sizes` and
    `room`: as `whole_partitions` has them."""
    watch(now, need, course)
    settled = is_settled(now, course)
    # The pause of a rebalance, and members that are still starting, ask for no more members.
    need.drain = need.drain if settled else min(need.drain, course.drain)
    judge(now, need, course, need.drain > 0, arriving_now)
    wanted, basis = wanted_by(need, 1.0, arriving, owners, sizes, room)
    if wanted < course.members:
        # The number before is kept instead of a smaller one that might soon be too small.
        kept = course.members
        if settled:
            enough, _ = wanted_by(need, CALMING, arriving, owners, sizes, room)
            kept = max(min(enough, kept), wanted)
        wanted, basis = kept, _HELD if kept > wanted else basis
    is_limited = now < course.limited_until and wanted > course.limit
    if is_limited and rate_of(arriving_now, math.inf) <= GROWN * course.limited_rate:
        wanted, basis = course.limit, _DOWNSTREAM
    is_read = settled and need.drain > 0 and not math.isnan(need.read)
    if is_read and course.step_members == 0 and 0 < need.members < wanted:
        course.step_members, course.step_read = need.members, need.read
    course.members, course.drain = wanted, need.drain
    return wanted, basis


def wanted_by(
    need: Need,
    growth: float,
    arriving: Column[float],
    owners: Column[int],
    sizes: Column[int],
    room: Column[float],
) -> tuple[int, int]:
    """Returns the number of members without what was before, and its place in BASES. `growth`: of what arrives."""
    rates = rates_of(need, growth, arriving, sizes, room)
    if not need.waits and rates.largest <= 0:
        return 0, _IDLE
    rate = rates.carried * (1 + need.pause_seconds / need.drain_seconds) + need.drain
    by_rates = max(math.ceil(min(rate / (need.capacity * need.utilization) - ROUNDING, _MOST)), 1)
    by_partitions = by_rates
    if need.is_exclusive:
        by_partitions = whole_partitions(need, by_rates, rates, arriving, owners, sizes, room)
    return min(max(by_partitions, by_rates), need.most), _PARTITIONS if by_partitions > by_rates else _RATES


RULES: tuple[Callable[..., object], ...] = (rise_of, decided, wanted_by)
"""What kernels may call, of this module."""
