import numpy as np
import pytest

from adapter.verdicts.owners import Assignor
from adapter.verdicts.plant import Consumers, Plant


def plant(*groups: Consumers, members: int = 1, waiting: float = 0.0) -> Plant:
    width = max(each.width for each in groups)
    exists = (np.arange(width) < np.array([[each.width] for each in groups])).astype(float)
    return Plant(groups, waiting * exists, np.full(len(groups), members))


def one(
    partitions: int = 1, capacity: float = 10.0, *, assignor: Assignor = Assignor.UNIFORM, commit: float = 1.0
) -> Consumers:
    return Consumers(capacity, (partitions,), assignor, pause_seconds=5.0, commit_seconds=commit)


def step(it: Plant, arriving: float, members: int, now: float = 10.0) -> list[float]:
    """Ten seconds in which so many messages arrive in each partition; returns what was read."""
    read: list[float] = it.step(
        now, 10.0, np.full_like(it.waiting, arriving), np.full(len(it.waiting), members)
    ).tolist()
    return read


def test_a_member_reads_what_it_can_and_the_rest_waits() -> None:
    it = plant(one())

    assert step(it, 130, 1) == [100]
    assert it.waiting[0] == pytest.approx([30])


def test_members_read_whole_partitions() -> None:
    """Two members could do 200 messages; one has two partitions with 130, the other one has one with 65."""
    it = plant(one(3), members=2)

    assert step(it, 65, 2) == [165]
    assert sorted(it.waiting[0].round(6).tolist()) == [0, 15, 15]


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
    arriving, members = random.uniform(0, 60, (40, 3, 6)), random.integers(0, 7, (40, 3))
    arriving *= np.arange(6) < np.array([[each.width] for each in groups])

    together = Plant(groups, np.zeros((3, 6)), members[0])
    alone = [Plant([each], np.zeros((1, each.width)), members[0, [at]]) for at, each in enumerate(groups)]
    read = np.zeros(3)
    for at, (amounts, numbers) in enumerate(zip(arriving, members, strict=True)):
        read += together.step(10.0 * at, 10.0, amounts, numbers)
        for lane, it in enumerate(alone):
            it.step(10.0 * at, 10.0, amounts[[lane], : groups[lane].width], numbers[[lane]])

    assert together.waiting.sum(axis=1) + read == pytest.approx(arriving.sum(axis=(0, 2)))
    for lane, it in enumerate(alone):
        assert together.waiting[lane, : groups[lane].width] == pytest.approx(it.waiting[0])
    assert together.waiting.max() > 100
