"""The number of members that read what arrives by whole partitions, which no two members can share.

Plain Python on the numbers of one group, which replays compile. `sizes` are the partitions of each part of a group,
which are divided by themselves: those of each topic, or all together, one part after another. `room` has as many places
as there are partitions, parts or members that own partitions, whichever is most, for what is computed meanwhile."""

import math
from collections.abc import Callable
from typing import NamedTuple

from adapter.records import Column
from adapter.verdicts.assignment import NO_LIMIT
from adapter.verdicts.demands import Need, able_of

WORTHWHILE = 0.25
"""Beyond what the sum of the rates asks for, a member must read at least this share of its capacity that nobody would
read without it. Otherwise one busy partition would ask for a member for every other one."""
ROUNDING = 1e-9


class Rates(NamedTuple):
    """Messages per second that arrive in a group, as far as most numbers of members follow from these alone."""

    growth: float
    """What arrives in each partition is multiplied by this."""
    carried: float
    """What members could read of it, if each partition had one of its own."""
    largest: float
    """In one partition."""
    second: float
    """In one of the others."""


def rates_of(need: Need, growth: float, arriving: Column[float], sizes: Column[int], means: Column[float]) -> Rates:
    """Writes in `means` what could be read in a partition of each part, on average."""
    able, carried, largest, second, first = able_of(need), 0.0, 0.0, 0.0, 0
    for part in range(len(sizes)):
        of_part = 0.0
        for place in range(first, first + sizes[part]):
            rate = arriving[place] * growth
            of_part += min(rate, able)
            if rate > largest:
                second, largest = largest, rate
            elif rate > second:
                second = rate
        means[part] = of_part / max(sizes[part], 1)
        carried += of_part
        first += sizes[part]
    return Rates(growth, carried, largest, second)


def whole_partitions(
    need: Need,
    least: int,
    rates: Rates,
    arriving: Column[float],
    owners: Column[int],
    sizes: Column[int],
    room: Column[float],
) -> int:
    """Returns the number of members, `least` or more. `room` has the means of `rates_of`."""
    even = evenly(need, least, sizes, room)
    # No smaller share than one partition exists.
    if even >= need.most or is_little_left(need, even, rates, arriving, owners, sizes, room):
        return even
    return worthwhile(need, even, rates, arriving, owners, sizes, room)


def evenly(need: Need, least: int, sizes: Column[int], means: Column[float]) -> int:
    """Returns the first number with which the member with most partitions reads them, if all of a part got the same;
    otherwise the largest."""
    members = min(least, need.most)
    while members < need.most and load_of(members, sizes, means) - ROUNDING > need.capacity:
        members = next_number(members, sizes)
    return members


def load_of(members: int, sizes: Column[int], means: Column[float]) -> float:
    """Returns the messages per second in the most partitions that one of so many members has."""
    load = 0.0
    for part in range(len(sizes)):
        load += share_of(sizes[part], members) * means[part]
    return load


def share_of(size: int, members: int) -> int:
    """Returns the most partitions of a part that one of so many members has."""
    return math.ceil(size / members)


def next_number(members: int, sizes: Column[int]) -> int:
    """Returns the next number of members at which the largest share of some part becomes smaller, or NO_LIMIT."""
    found = NO_LIMIT
    for part in range(len(sizes)):
        share = share_of(sizes[part], members)
        if share > 1:
            found = min(found, share_of(sizes[part], share - 1))
    return found


def is_little_left(
    need: Need,
    members: int,
    rates: Rates,
    arriving: Column[float],
    owners: Column[int],
    sizes: Column[int],
    room: Column[float],
) -> bool:
    """Whether so many members surely leave too little for one more: also if each has as many partitions as a member can
    have, and all but the busiest one get as much as the next busiest."""
    if need.has_owners and members == need.members:
        most = held_at_most(arriving, owners, room)
    else:
        most = 0.0
        for part in range(len(sizes)):
            most += share_of(sizes[part], members)
    others, capacity = most * rates.second, need.capacity
    left = min(rates.largest, capacity) + (most - 1) * rates.second - capacity + ROUNDING * rates.carried
    return left <= WORTHWHILE * capacity and others <= capacity and most <= len(arriving)


def held_at_most(arriving: Column[float], owners: Column[int], numbers: Column[float]) -> float:
    """Returns of how many partitions with messages a member has at most; more than there are, where nobody has one.
    Writes the numbers of members."""
    most = 0.0
    for member in range(len(numbers)):
        numbers[member] = 0.0
    for place in range(len(arriving)):
        if arriving[place] > 0:
            owner = owners[place]
            if owner < 0:
                return len(arriving) + 1.0
            numbers[owner] += 1.0
            most = max(most, numbers[owner])
    return most


def worthwhile(
    need: Need,
    even: int,
    rates: Rates,
    arriving: Column[float],
    owners: Column[int],
    sizes: Column[int],
    room: Column[float],
) -> int:
    """Returns the number from `even` on of whose members each reads enough that nobody would read without it. Of two
    that are equally good, the smaller one counts, whatever the last digits of their sums are."""
    share = WORTHWHILE * need.capacity
    read = read_by(need, even, rates.growth, arriving, owners, sizes, room)
    # More members read at most what these leave, so one more must be worth it at least.
    left = rates.carried - read
    if left <= share:
        return even
    last = even + left / share + ROUNDING
    best, most, number = even, rounded(read - share * even), next_number(even, sizes)
    while number <= last:
        gain = rounded(read_by(need, number, rates.growth, arriving, owners, sizes, room) - share * number)
        if gain > most:
            best, most = number, gain
        number = next_number(number, sizes)
    if need.has_owners and even < need.members <= last:
        gain = rounded(read_by(need, need.members, rates.growth, arriving, owners, sizes, room) - share * need.members)
        if gain > most or (gain == most and need.members < best):
            best = need.members
    return best


def rounded(rate: float) -> int:
    """Returns millionths."""
    return round(rate * 1e6)


def read_by(
    need: Need,
    members: int,
    growth: float,
    arriving: Column[float],
    owners: Column[int],
    sizes: Column[int],
    room: Column[float],
) -> float:
    """Returns the messages per second that a number of members read of those that arrive.

    The real assignment counts where it is known. Otherwise the members are taken to get partitions in turns, and with
    the assignor `range` one run of each topic."""
    if need.has_owners and members == need.members:
        return read_by_owners(need.capacity, growth, arriving, owners, room)
    read = 0.0
    for member in range(members):
        load, first = 0.0, 0
        for part in range(len(sizes)):
            size = sizes[part]
            if not need.is_by_topic:
                for place in range(first + member, first + size, members):
                    load += arriving[place] * growth
            elif member < min(members, size):
                # Of a part, each member has the places whose number, multiplied by the members, is so many sizes.
                there = min(members, size)
                for place in range(share_of(member * size, there), share_of((member + 1) * size, there)):
                    load += arriving[first + place] * growth
            first += size
        read += min(load, need.capacity)
    return read


def read_by_owners(
    capacity: float, growth: float, arriving: Column[float], owners: Column[int], loads: Column[float]
) -> float:
    """Writes the loads of members."""
    for member in range(len(loads)):
        loads[member] = 0.0
    for place in range(len(arriving)):
        if owners[place] >= 0:
            loads[owners[place]] += arriving[place] * growth
    read = 0.0
    for member in range(len(loads)):
        read += min(loads[member], capacity)
    return read


RULES: tuple[Callable[..., object], ...] = (
    rates_of,
    whole_partitions,
    evenly,
    load_of,
    share_of,
    next_number,
    is_little_left,
    held_at_most,
    worthwhile,
    rounded,
    read_by,
    read_by_owners,
)
"""What kernels may call, of this module."""
