"""Which member of a group reads which partition, by the group's assignor, for every number of members."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from adapter.verdicts.assignment import SHARING_BY_ASSIGNOR, Sharing

Owners = NDArray[np.int32]

NOBODY = -1


class Assignor(StrEnum):
    """By the names that Kafka gives them."""

    RANGE = "range"
    STICKY = "sticky"
    COOPERATIVE_STICKY = "cooperative-sticky"
    UNIFORM = "uniform"
    """The default of the consumer protocol (KIP-848)."""

    @property
    def stops_all(self) -> bool:
        """Whether all members stop reading in a rebalance, and not only those partitions that move."""
        return self in {Assignor.RANGE, Assignor.STICKY}

    @property
    def divides_each_topic(self) -> bool:
        return SHARING_BY_ASSIGNOR[self] is Sharing.BY_TOPIC


@lru_cache(maxsize=4096)
def owners_table(partitions: tuple[int, ...], assignor: Assignor) -> Owners:
    """Returns the owner of each partition (columns) for 0, 1, 2, … members (rows), up to one for each partition; more
    members change nothing. `partitions`: of each topic.

    Assignors that divide topics together move as few partitions as possible from one number of members to the next."""
    number = sum(partitions)
    table = np.full((number + 1, number), NOBODY, np.int32)
    for members in range(1, number + 1):
        if assignor.divides_each_topic:
            table[members] = _topic_by_topic(partitions, members)
        else:
            table[members] = _with_one_more(table[members - 1], members - 1)
    table.flags.writeable = False
    return table


def _topic_by_topic(partitions: Sequence[int], members: int) -> Owners:
    """The first members get one more of each topic that is not divided evenly."""
    topics = []
    for number in partitions:
        each, more = divmod(number, members)
        sizes = np.full(members, each)
        sizes[:more] += 1
        topics.append(np.repeat(np.arange(members, dtype=np.int32), sizes))
    return np.concatenate(topics)


def _with_one_more(owners: Owners, new: int) -> Owners:
    """The new member takes its share from those that have most, one partition at a time."""
    if new == 0:
        return np.zeros_like(owners)
    given = owners.copy()
    numbers = Counter(given.tolist())
    for _ in range(len(owners) // (new + 1)):
        richest = min(numbers, key=lambda member: (-numbers[member], member))
        given[np.flatnonzero(given == richest)[-1]] = new
        numbers[richest] -= 1
    return given
