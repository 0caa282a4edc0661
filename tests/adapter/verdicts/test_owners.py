from collections import Counter

import numpy as np
import pytest

from adapter.verdicts.assignment import SHARING_BY_ASSIGNOR, most_members
from adapter.verdicts.owners import NOBODY, Assignor, owners_table

TOGETHER = [each for each in Assignor if each is not Assignor.RANGE]


def test_range_gives_what_is_left_of_each_topic_to_the_same_first_members() -> None:
    assert owners_table((3, 3), Assignor.RANGE)[2].tolist() == [0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize("assignor", TOGETHER)
@pytest.mark.parametrize("partitions", [(1,), (7,), (3, 3), (12, 1, 5)])
def test_other_assignors_give_all_members_as_many_partitions_and_move_few(
    partitions: tuple[int, ...], assignor: Assignor
) -> None:
    table, number = owners_table(partitions, assignor), sum(partitions)
    for members in range(1, number + 1):
        counts = Counter(table[members].tolist())
        moved = np.count_nonzero(table[members] != table[members - 1])

        assert set(counts) == set(range(members))
        assert max(counts.values()) - min(counts.values()) <= 1
        assert moved == (number // members if members > 1 else number)


@pytest.mark.parametrize("assignor", [*Assignor])
def test_as_many_members_have_a_partition_as_can_have_one(assignor: Assignor) -> None:
    table = owners_table((4, 2), assignor)

    assert len(set(table[6].tolist())) == most_members((4, 2), SHARING_BY_ASSIGNOR[assignor])
    assert set(table[0].tolist()) == {NOBODY}
