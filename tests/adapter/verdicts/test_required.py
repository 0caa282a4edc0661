"""Members that keep a promise, beside a few lines of plain Python that compute the same one partition at a time."""

import math
import operator
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.verdicts.assignment import Sharing
from adapter.verdicts.courses import Course
from adapter.verdicts.demands import Demand, Promise
from adapter.verdicts.owners import Assignor
from adapter.verdicts.required import Basis, following_a_rise, need_of, required
from adapter.verdicts.simulation.consumers import Consumers
from adapter.verdicts.simulation.plant import Plant
from adapter.verdicts.waits import beyond_flight
from adapter.verdicts.whole_partitions import read_by
from tests.support.arriving import arriving
from tests.support.demands import PROMISE, demand

S4 = 85_000 / 60
"""Messages per second, on 40 partitions, with members that read 100 each."""


def number(known: Demand, promise: Promise = PROMISE) -> int:
    return required(0.0, known, promise)[0].members


def zipf(exponent: float, total: float, partitions: int = 40) -> list[float]:
    weights = [1 / (rank + 1) ** exponent for rank in range(partitions)]
    return [total * weight / sum(weights) for weight in weights]


def parts_of(demand: Demand) -> list[range]:
    """Returns the partitions of each topic, or all of them, as they are divided."""
    sizes = demand.partitions if demand.sharing is Sharing.BY_TOPIC else (sum(demand.partitions),)
    ends = [sum(sizes[: part + 1]) for part in range(len(sizes))]
    return [range(end - size, end) for end, size in zip(ends, sizes, strict=True) if size]


def read_plainly(demand: Demand, members: int) -> float:
    """Returns the messages per second that so many members read of those that arrive."""
    loads: dict[int, float] = defaultdict(float)
    for part in parts_of(demand):
        for place, partition in enumerate(part):
            in_runs = place * min(members, len(part)) // len(part)
            owner = in_runs if demand.sharing is Sharing.BY_TOPIC else place % members
            if demand.owners is not None and members == demand.members:
                owner = int(demand.owners[partition])
            loads[owner] += float(demand.arriving[partition])
    return sum(min(load, demand.capacity) for owner, load in loads.items() if owner >= 0)


def plainly(demand: Demand, seconds: float) -> int:
    """The number of members without any before, by trying all numbers. `seconds`: in which what waits is worked off."""
    rates, capacity = demand.arriving.tolist(), demand.capacity
    if not any(rates) and not any(demand.beyond):
        return 0
    carried = [min(rate, capacity) for rate in rates]
    drains = [min(waits / seconds, max(capacity - rate, 0)) for rate, waits in zip(rates, demand.beyond, strict=True)]
    by_rates: int = max(math.ceil((sum(carried) + sum(drains)) / (capacity * 0.9) - 1e-9), 1)
    parts = parts_of(demand)
    most: int = max(map(len, parts))

    def shares(members: int) -> list[int]:
        return [math.ceil(len(part) / members) for part in parts]

    def gain(members: int) -> float:
        return read_plainly(demand, members) - 0.25 * capacity * members

    means = [sum(carried[partition] for partition in part) / len(part) for part in parts]
    useful = [number for number in range(1, most + 1) if number == 1 or shares(number) != shares(number - 1)]
    candidates = sorted({min(by_rates, most), *(number for number in useful if number >= by_rates)})
    loads = {number: sum(map(operator.mul, shares(number), means)) for number in candidates}
    even = next((number for number in candidates if loads[number] <= capacity + 1e-9), candidates[-1])
    if even == most:
        return even
    tried = {number for number in candidates if number >= even}
    if demand.owners is not None and demand.members is not None and demand.members > even:
        tried.add(demand.members)
    return min(max(tried, key=lambda number: (round(gain(number), 6), -number)), most)


rates = st.lists(st.floats(0, 250), min_size=1, max_size=30)


def test_of_two_numbers_that_are_equally_good_the_smaller_one_counts() -> None:
    """4 more members would read 100 messages/s more: exactly what is worthwhile, but for the last digit of a sum."""
    assert number(demand([0.0, 0.0, 100.0, 1.9, 0.0, 0.0, 100.0, 64.8])) == 4


def test_partitions_that_get_the_same_ask_for_more_members_where_one_member_has_all_of_them() -> None:
    """As an assignor of the group's own may divide them."""
    known = demand([50.0, 50.0, 50.0], members=2, owners=np.array([0, 0, 0]))

    assert number(known) == plainly(known, 65.0) == 3


@st.composite
def demands_of_all_kinds(draw: st.DrawFn) -> Demand:
    """Of one topic or several, with or without owners. Rates have few digits: otherwise, the last digit of a sum could
    decide between two numbers of members that are equally good."""
    partitions = draw(st.lists(st.integers(0, 12), min_size=1, max_size=4).filter(any))
    width = sum(partitions)
    rates, waits = (draw(st.lists(st.floats(0, most), min_size=width, max_size=width)) for most in (250, 50_000))
    sharing = draw(st.sampled_from([Sharing.BY_TOPIC, Sharing.TOGETHER]))
    members = draw(st.none() | st.integers(1, width))
    owners = None
    if members is not None:
        owners = np.array(draw(st.lists(st.integers(0, members - 1), min_size=width, max_size=width)))
    return demand(
        [round(rate, 1) for rate in rates],
        [round(each) for each in waits],
        partitions=tuple(partitions),
        sharing=sharing,
        members=members,
        owners=owners,
    )


@given(demands_of_all_kinds())
def test_the_number_is_that_of_plain_python(known: Demand) -> None:
    assert number(known) == plainly(known, 65.0)


@given(demands_of_all_kinds(), st.integers(1, 12))
def test_each_member_reads_its_own_partitions(known: Demand, members: int) -> None:
    sizes = list(map(len, parts_of(known)))
    owners = [] if known.owners is None else known.owners.tolist()
    read = read_by(need_of(known, PROMISE), members, 1.0, known.arriving.tolist(), owners, sizes, [0.0] * 60)

    assert read == pytest.approx(read_plainly(known, members))


@given(rates)
def test_no_rate_asks_for_more_members_than_partitions(rates: list[float]) -> None:
    assert number(demand(rates, [1e9] * len(rates))) <= len(rates)


@given(rates, st.floats(1, 1000))
def test_members_that_can_do_more_are_never_more_by_the_sum_of_the_rates(rates: list[float], capacity: float) -> None:
    alike = [sum(rates) / len(rates)] * len(rates)

    assert number(demand(alike, capacity=2 * capacity)) <= number(demand(alike, capacity=capacity))


@given(rates)
def test_the_same_demand_gives_the_same_number_again(rates: list[float]) -> None:
    known = demand(rates, members=1, expected_members=1)
    first, course = required(0.0, known, PROMISE)

    for now in range(10, 600, 10):
        again, course = required(float(now), known, PROMISE, course)
        assert again.members == first.members


def test_nothing_that_waits_or_arrives_needs_no_member() -> None:
    assert required(0.0, demand([0.0, 0.0]), PROMISE)[0].basis is Basis.IDLE


def test_a_single_message_needs_one_member() -> None:
    assert number(demand([0.0, 0.0], [1.0, 0.0])) == 1


def test_members_are_as_many_as_can_have_whole_partitions() -> None:
    """1,417 messages/s ask for 15.7 members of 90, but with 16 some have three partitions of 35.4 each."""
    assert number(demand([S4 / 40] * 40)) == 20


def test_a_topic_of_its_own_assignment_is_divided_by_itself() -> None:
    """Two topics of 4: with `range`, the first members have partitions of both."""
    by_topic = demand([45.0] * 8, partitions=(4, 4), sharing=Sharing.BY_TOPIC)
    together = demand([45.0] * 8, partitions=(4, 4), sharing=Sharing.TOGETHER)

    assert (number(by_topic), number(together)) == (4, 4)
    assert number(replace(by_topic, partitions=(2, 6))) == 6


def test_members_of_a_share_group_follow_the_sum_alone() -> None:
    assert number(demand([500.0], sharing=Sharing.SEVERAL_READERS)) == 6


def test_what_waits_is_worked_off_beside_what_arrives() -> None:
    """65 s for 10 partitions of 585: 90 messages/s more."""
    assert number(demand([9.0] * 10)) == 1
    assert number(demand([9.0] * 10, [585.0] * 10)) == 2


def test_a_load_that_rises_is_followed_before_the_window_is_over() -> None:
    usual, lately = np.array([10.0, 30.0]), np.array([20.0, 40.0])

    assert following_a_rise(usual, lately, 20.0).tolist() == [15.0, 45.0]


@pytest.mark.parametrize("lately", [[11.0, 31.0], [5.0, 15.0], [np.nan, 100.0], [0.0, 0.0]])
def test_chance_a_fall_and_what_is_not_known_are_no_rise(lately: list[float]) -> None:
    """Of 840 messages in 20 s, chance makes 87 more or fewer."""
    assert following_a_rise(np.array([10.0, 30.0]), np.array(lately), 20.0).tolist() == [10.0, 30.0]


def test_a_load_that_begins_is_followed() -> None:
    assert following_a_rise(np.zeros(2), np.array([3.0, 0.0]), 20.0).tolist() == [3.0, 0.0]


def test_what_is_on_its_way_does_not_count() -> None:
    lag, arriving = np.array([90.0, 500.0]), np.array([10.0, 10.0])

    assert beyond_flight(lag, arriving, 10.0).tolist() == [0.0, 400.0]


def test_a_partition_that_no_member_can_read_is_named_and_asks_for_one() -> None:
    found = required(0.0, demand([1000.0, 1.0, 1.0, 1.0], [1e6, 0.0, 0.0, 0.0]), PROMISE)[0]

    assert (found.members, found.hot.tolist()) == (2, [0])


@pytest.mark.parametrize("place", [0, 7, 39])
@pytest.mark.parametrize("exponent", [0.7, 1.0, 1.5])
def test_a_few_busy_partitions_never_ask_for_a_member_for_each(exponent: float, place: int) -> None:
    rates = np.roll(zipf(exponent, S4), place).tolist()
    lagging = [1e6 if rate > 60 else 0.0 for rate in rates]

    assert number(demand(rates, lagging)) < 30


def test_a_partition_that_stands_still_is_named_and_asks_for_no_more() -> None:
    is_still = np.array([True, False, False, False])
    found = required(0.0, demand([90.0, 20.0, 20.0, 20.0], [1e6, 0, 0, 0], is_still=is_still), PROMISE)[0]

    assert (found.members, found.still.tolist()) == (1, [0])


def test_one_member_is_asked_for_if_everything_that_waits_stands_still() -> None:
    assert number(demand([0.0], [50.0], is_still=np.array([True]))) == 1


def test_the_assignment_that_is_there_counts_where_it_is_known() -> None:
    """By turns, 0 and 2 are of one member; by the real assignment they are not."""
    rates = [78.0, 11.0, 78.0, 11.0]
    good, bad = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])

    assert number(demand(rates, members=2, owners=good)) == 2
    assert number(demand(rates, members=2, owners=bad)) == 4


def test_the_members_that_are_there_are_as_good_a_number_as_others_where_their_assignment_is() -> None:
    """In turns, 2 members read 120 messages/s, and 4 read all 180, which 3 do by the real assignment. By the second
    one, these leave 25 messages/s, which is as much as one more member must read."""
    rates, less = [90.0, 10.0, 70.0, 10.0], [90.0, 15.0, 65.0, 10.0]

    assert number(demand(rates)) == 4
    assert number(demand(rates, members=3, owners=np.array([0, 1, 2, 1]))) == 3
    assert number(demand(less, members=3, owners=np.array([0, -1, 1, -1]))) == 3


def test_a_member_that_has_no_partition_reads_none() -> None:
    assert number(demand([50.0, 1.0, 1.0, 1.0], members=1, owners=np.zeros(4, int))) == 1
    assert number(demand([50.0, 1.0, 1.0, 1.0], members=1, owners=np.full(4, -1))) == 2


def test_an_assignment_of_more_members_than_were_counted_counts_as_it_is() -> None:
    rates = [40.0, 41.0, 42.0, 43.0]

    assert number(demand(rates, members=2, owners=np.arange(4))) == 2
    assert number(demand(rates, members=2, owners=np.full(4, -1))) == 4


def test_a_number_falls_only_if_it_would_not_soon_rise_again() -> None:
    course = required(0.0, demand([19.0] * 10, members=3, expected_members=3), PROMISE)[1]

    held, course = required(10.0, demand([17.5] * 10, members=3, expected_members=3), PROMISE, course)
    fallen, _ = required(20.0, demand([17.0] * 10, members=3, expected_members=3), PROMISE, course)

    assert (held.members, held.basis) == (3, Basis.HELD)
    assert fallen.members == 2


def test_what_waits_asks_for_no_more_while_members_are_missing() -> None:
    first, course = required(0.0, demand([45.0] * 8, [2000.0] * 8, members=2, expected_members=2), PROMISE)

    starting = demand([45.0] * 8, [2600.0] * 8, members=2, expected_members=4)
    later, _ = required(10.0, starting, PROMISE, course)

    assert later.members == first.members


def test_nothing_falls_while_a_group_rebalances() -> None:
    course = required(0.0, demand([45.0] * 8, members=4, expected_members=4), PROMISE)[1]

    moving, course = required(10.0, demand([1.0] * 8, expected_members=4), PROMISE, course)
    after_long, _ = required(320.0, demand([1.0] * 8, expected_members=4), PROMISE, course)

    assert (moving.members, after_long.members) == (4, 1)


def test_members_that_are_never_those_of_the_pods_are_taken_as_usual_and_a_change_of_them_is_one() -> None:
    """One of four pods has no consumer in the group. Five minutes later, what waits counts; and when the members change
    again, it does not until the difference is the usual one."""

    def waiting(lag: float, members: int, expected: int) -> Demand:
        return demand([45.0] * 8, [lag] * 8, members=members, expected_members=expected)

    numbers, course = [], required(0.0, waiting(0, 4, 4), PROMISE)[1]
    looks = [(10, 3, 4), (310, 3, 4), (320, 3, 6), (330, 5, 6), (340, 0, 6), (640, 0, 6)]
    for at, members, expected in looks:
        found, course = required(float(at), waiting(3000.0, members, expected), PROMISE, course)
        numbers.append(found.members)
        course = replace(course, members=4, drain=0.0)

    assert numbers == [4, 8, 4, 8, 4, 8]


def test_rates_raise_the_number_also_while_members_are_missing() -> None:
    course = required(0.0, demand([45.0] * 8, members=4, expected_members=4), PROMISE)[1]

    assert required(10.0, demand([90.0] * 8, members=2, expected_members=4), PROMISE, course)[0].members == 8


def test_a_number_that_goes_on_after_a_restart_does_not_fall_before_the_members_are_known() -> None:
    assert required(0.0, demand([1.0] * 8, expected_members=6), PROMISE)[0].members == 6


def followed(rates: Sequence[float], members: int, minutes: int, *, capacity: float = 100.0) -> list[int]:
    """What a group asks for whose members are always as many as it asked for 40 s before."""
    consumers = Consumers(100.0, (len(rates),), Assignor.COOPERATIVE_STICKY)
    plant = Plant([consumers], np.zeros((1, len(rates))), np.array([members]), np.array([rates]))
    plant.begin(arriving(rates[0], 1.0), 0)
    course, asked = Course(members), [members] * 4
    for now in range(10, 60 * minutes, 10):
        there = asked[-4]
        read = plant.step(now, 10.0, np.array([there], np.int64))
        waiting = plant.waiting(np.array([0]))[0]
        known = Demand(
            np.array(rates, float),
            waiting,
            beyond_flight(waiting, np.array(rates, float), 10.0),
            capacity,
            (len(rates),),
            read=float(read[0]) / 10.0,
            members=there,
            expected_members=asked[-1],
        )
        found, course = required(float(now), known, PROMISE, course)
        asked.append(found.members)
    return asked


@pytest.mark.parametrize("start", [1, 20, 40])
def test_a_constant_load_changes_nothing_after_ten_minutes(start: int) -> None:
    asked = followed([S4 / 40] * 40, start, minutes=40)

    assert set(asked[60:]) == {20}


def test_a_capacity_that_is_overestimated_is_made_up_for() -> None:
    """By what waits: a fifth too much capacity asks for too few members, and the lag of these for the rest."""
    asked = followed([30.0] * 40, 10, minutes=40, capacity=120.0)

    assert sum(asked[-60:]) / 60 >= 12


def test_one_hot_partition_never_runs_a_group_to_its_maximum() -> None:
    assert max(followed(zipf(0.7, S4), 10, minutes=60)) < 30
