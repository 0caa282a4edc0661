import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers, lists, tuples

from adapter.verdicts.owners import Assignor, owners_table
from adapter.verdicts.simulation.consumers import Consumers
from adapter.verdicts.simulation.groups import Ends
from adapter.verdicts.simulation.plant import Plant
from tests.support.arriving import arriving


def plant(*groups: Consumers, members: int = 1, waiting: float = 0.0) -> Plant:
    width = max(each.width for each in groups)
    exists = (np.arange(width) < np.array([[each.width] for each in groups])).astype(float)
    return Plant(groups, waiting * exists, np.full(len(groups), members))


def one(
    partitions: int = 1, capacity: float = 10.0, *, assignor: Assignor = Assignor.UNIFORM, commit: float = 1.0
) -> Consumers:
    return Consumers(capacity, (partitions,), assignor, pause_seconds=5.0, commit_seconds=commit)


def step(it: Plant, messages: float, members: int, now: float = 10.0, replaced: float = 0.0) -> list[float]:
    """Ten seconds in which so many messages arrive in each partition; returns what was read."""
    each = np.full(len(it.lag), messages / 10)
    it.begin(arriving(each, each, replaced=replaced), 0)
    read: list[float] = it.step(now, 10.0, np.full(len(it.lag), members)).tolist()
    return read


def waiting_in(it: Plant, lane: int = 0) -> list[float]:
    waiting: list[float] = it.waiting(np.array([lane]))[0].tolist()
    return waiting


def test_a_member_reads_what_it_can_and_the_rest_waits() -> None:
    it = plant(one())

    assert step(it, 130, 1) == [100]
    assert waiting_in(it) == pytest.approx([30])


def test_members_read_whole_partitions() -> None:
    """Two members could do 200 messages; one has two partitions with 130, the other one has one with 65."""
    it = plant(one(3), members=2)

    assert step(it, 65, 2) == [165]
    assert sorted(waiting_in(it)) == pytest.approx([0, 15, 15])


def test_nobody_reads_without_members_and_more_members_than_partitions_change_nothing() -> None:
    it = plant(one(), members=0)

    assert step(it, 130, 0) == [0]
    assert step(plant(one(), members=5), 130, 5) == [100]


@pytest.mark.parametrize(("assignor", "read"), [(Assignor.STICKY, 100), (Assignor.UNIFORM, 150)])
def test_a_rebalance_stops_all_members_or_those_whose_partitions_move(assignor: Assignor, read: float) -> None:
    """The second member takes one of two partitions. Five of ten seconds are lost to both, or half of that."""
    it = plant(one(2, assignor=assignor), members=1)

    assert step(it, 1000, 2) == [read]
    assert step(it, 1000, 2, now=20.0) == [200]


def test_what_was_read_counts_until_it_is_committed() -> None:
    it = plant(one(commit=30.0))
    uncommitted = []
    for now in (10.0, 20.0, 30.0, 34.0):
        step(it, 50, 1, now)
        uncommitted.append(it.uncommitted[0])

    assert uncommitted == [50, 100, 0, 20]


def test_members_of_a_share_group_read_all_partitions_together() -> None:
    it = plant(Consumers(10.0, (2,), assignor=None), members=5)

    assert step(it, 1000, 5) == [500]
    assert step(it, 1000, 0, now=20.0) == [0]


def test_groups_of_other_sizes_have_no_effect_on_one_another_and_nothing_is_lost() -> None:
    random = np.random.default_rng(3)
    groups = [Consumers(8.0, (5,)), Consumers(3.0, (2, 4), Assignor.RANGE), Consumers(50.0, (3,), assignor=None)]
    busiest, others = random.uniform(0, 6, (2, 40, 3))
    members, weights = random.integers(0, 7, (40, 3)), random.uniform(0.1, 2, (3, 6))

    together = Plant(groups, np.zeros((3, 6)), members[0], weights)
    alone = [
        Plant([each], np.zeros((1, each.width)), members[0, [at]], weights[[at], : each.width])
        for at, each in enumerate(groups)
    ]
    read = np.zeros(3)
    for at, (first, rest, numbers) in enumerate(zip(busiest, others, members, strict=True)):
        together.begin(arriving(first, rest), 0)
        read += together.step(10.0 * at, 10.0, numbers)
        for lane, it in enumerate(alone):
            it.begin(arriving(first[[lane]], rest[[lane]]), 0)
            it.step(10.0 * at, 10.0, numbers[[lane]])

    arrived = 10 * (busiest + others * [weights[at, 1 : each.width].sum() for at, each in enumerate(groups)])
    assert together.lag + read == pytest.approx(arrived.sum(axis=0))
    for lane, it in enumerate(alone):
        assert waiting_in(together, lane)[: groups[lane].width] == pytest.approx(waiting_in(it))
        assert together.lag[lane] == pytest.approx(sum(waiting_in(together, lane)))
    assert together.lag.max() > 100


def test_members_that_another_group_once_had_leave_nothing_behind() -> None:
    """Both have five members in turns, and nothing arrives meanwhile that would compute their rates again."""
    together, alone = plant(one(5), one(5), waiting=100.0), [plant(one(5), waiting=100.0) for _ in range(2)]
    both = [(5, 1), (1, 1), (1, 5), (1, 5), (1, 1)]
    for it in (together, *alone):
        it.begin(arriving(*np.full((2, len(it.lag)), 20.0)), 0)

    for now, members in zip(range(10, 60, 10), both, strict=True):
        together.step(now, 10.0, np.array(members))
        for it, number in zip(alone, members, strict=True):
            it.step(now, 10.0, np.array([number]))
        assert together.lag.tolist() == [it.lag[0] for it in alone]


def by_hand(consumers: Consumers, weights: list[float], steps: list[tuple[float, float, int]]) -> list[float]:
    """What waits in each partition, one after the other, after steps of ten seconds: busiest, others, members."""
    waiting, before, stopped = [0.0] * consumers.width, steps[0][2], 0.0
    table = owners_table(consumers.partitions, Assignor.RANGE)
    for busiest, others, members in steps:
        stopped += consumers.pause_seconds if members != before else 0.0
        lost, before = min(stopped, 10.0), members
        stopped -= lost
        waiting = [
            all_before + 10 * (others * weight if at else busiest)
            for at, (all_before, weight) in enumerate(zip(waiting, weights, strict=True))
        ]
        owners = table[members].tolist()
        loads = [sum(of for of, owner in zip(waiting, owners, strict=True) if owner == it) for it in range(members)]
        left = [max(0.0, 1 - consumers.capacity * (10 - lost) / load) if load else 0.0 for load in loads]
        waiting = [of * left[owner] for of, owner in zip(waiting, owners, strict=True)]
    return waiting


@given(
    weights=lists(floats(0.1, 4), min_size=5, max_size=5),
    steps=lists(tuples(floats(0, 30), floats(0, 30), integers(1, 5)), min_size=1, max_size=12),
)
def test_what_waits_in_each_partition_is_as_computed_one_by_one(
    weights: list[float], steps: list[tuple[float, float, int]]
) -> None:
    consumers = Consumers(20.0, (5,), Assignor.RANGE, pause_seconds=7.0)
    it = Plant([consumers], np.zeros((1, 5)), np.array([steps[0][2]]), np.array([weights]))
    for at, (busiest, others, members) in enumerate(steps):
        it.begin(arriving(busiest, others), 0)
        it.step(10.0 * at, 10.0, np.array([members]))

    expected = by_hand(consumers, weights, steps)
    assert waiting_in(it) == pytest.approx(expected, abs=1e-6)
    ends = Ends(np.empty((1, 1), np.float32), np.empty((1, 1), np.int32), *np.empty((2, 1, 1)))
    it.end(np.array([steps[-1][2]]), ends, 0)
    assert ends.busiest[0, 0] == pytest.approx(expected[0], abs=1e-6)
    longest = max(of / weight for of, weight in zip(expected[1:], weights[1:], strict=True))
    assert ends.others[0, 0] == pytest.approx(longest, abs=1e-6)


def test_partitions_that_are_added_are_divided_again_and_nothing_is_lost() -> None:
    """Twice as many partitions get half each; what waited stays where it was."""
    before, after = Consumers(10.0, (2,), pause_seconds=0.0), Consumers(10.0, (4,), pause_seconds=0.0)
    it = Plant([before], np.array([[50.0, 50.0, 0, 0]]), np.array([4]))
    it.begin(arriving(20.0, 20.0), 0)
    it.step(10.0, 10.0, np.array([4]))
    assert waiting_in(it) == pytest.approx([150, 150, 0, 0])

    it.grow(0, after, np.ones(4))
    it.begin(arriving(10.0, 10.0), 0)
    it.step(20.0, 10.0, np.array([4]))
    assert waiting_in(it) == pytest.approx([150, 150, 0, 0])
    assert it.groups.lanes["members"].tolist() == [4]


def test_members_that_can_do_less_read_less() -> None:
    it = plant(one())
    it.begin(arriving(13.0, 13.0, capacity=0.5), 0)

    assert it.step(10.0, 10.0, np.array([1])) == [50]


@pytest.mark.parametrize(("assignor", "read"), [(Assignor.RANGE, 0), (Assignor.UNIFORM, 100)])
def test_a_member_that_is_replaced_stops_the_group_twice_or_its_own_partitions(assignor: Assignor, read: float) -> None:
    """Five seconds each: ten of ten for two members, or half of that."""
    it = plant(one(2, assignor=assignor), members=2)

    assert step(it, 1000, 2, replaced=1.0) == [read]


def test_an_assignor_of_ones_own_decides_who_reads_what() -> None:
    """All three partitions for the second member."""
    table = np.array([[-1] * 3, [0] * 3, [1] * 3, [1] * 3], np.int32)
    it = Plant([Consumers(10.0, (3,), table=table, commit_seconds=1.0)], np.zeros((1, 3)), np.array([2]))

    assert step(it, 100, 2) == [100]
    assert it.groups.partitions["owner"].tolist() == [[2, 2, 2]]


def test_a_stop_costs_a_group_nothing_more_where_another_one_gets_members_meanwhile() -> None:
    """The first group stops for twenty seconds; the second one has five members after ten."""
    together, alone = plant(one(5), one(5)), plant(one(5))
    for it in (together, alone):
        stopped = np.array([20.0, 0.0])[: len(it.lag)]
        it.begin(arriving(*np.full((2, len(it.lag)), 1.0), stopped_seconds=stopped), 0)

    for now, others in ((10.0, 5), (20.0, 5), (30.0, 1)):
        together.step(now, 10.0, np.array([1, others]))
        alone.step(now, 10.0, np.array([1]))
        assert together.lag[0] == alone.lag[0]


def test_a_group_has_the_same_lag_to_the_last_digit_whatever_is_beside_it() -> None:
    random, number = np.random.default_rng(11), np.array([10, 9, 17, 2])
    groups = [one(12), one(12), one(30), one(2)]
    waiting, weights = random.uniform(0, 100, (2, 4, 30)) * (np.arange(30) < [[12], [12], [30], [2]])
    together = Plant(groups, waiting, number, weights, [12, 12, 30, 2])
    together.begin(arriving(*np.full((2, 4), 3.1)), 0)
    together.step(7.0, 7.0, number)

    for lane, group in enumerate(groups):
        own = slice(group.width)
        alone = Plant([group], waiting[[lane], own], number[[lane]], weights[[lane], own])
        alone.begin(arriving(3.1, 3.1), 0)
        alone.step(7.0, 7.0, number[[lane]])
        assert together.lag[lane] == alone.lag[0]
