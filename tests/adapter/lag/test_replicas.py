"""How many replicas follow from lags: against plain Python that looks for the number instead of computing it, and for
each field what KEDA's documentation promises of it."""

from dataclasses import dataclass
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.columns import LARGEST_OFFSET
from adapter.lag.replicas import movement_of, replicas_of, still_after
from adapter.settings.models import Replicas
from adapter.verdicts.assignment import Sharing
from tests.support import samples
from tests.support.samples import NOW, row

Partition = tuple[int, bool]
"""Its lag, and whether its commit stands still."""


def shape(**keys: object) -> Replicas:
    """Keys as in the file."""
    return Replicas.model_validate({"lagPerReplica": 10, **keys})


@dataclass(frozen=True)
class Group:
    """The partitions of each topic."""

    topics: tuple[tuple[Partition, ...], ...]
    sharing: Sharing = Sharing.BY_TOPIC

    def replicas(self, shape: Replicas) -> int:
        every = [partition for topic in self.topics for partition in topic]
        lag, is_still = np.array([lag for lag, _ in every]), np.array([still for _, still in every], dtype=bool)
        sizes = [len(topic) for topic in self.topics]
        return replicas_of(lag, sizes, self.sharing, shape, is_still if shape.exclude_persistent_lag else None)


def group(*topics: list[int], sharing: Sharing = Sharing.BY_TOPIC) -> Group:
    """The lags of each topic's partitions."""
    return Group(tuple(tuple((lag, False) for lag in topic) for topic in topics), sharing)


# -- the oracle ----------------------------------------------------------------------------------------


def shares(consumers: int, group: Group) -> list[int]:
    """The number of partitions of each consumer, most first: dealt out one by one."""
    owned = [0] * consumers
    dealt = 0
    for topic in group.topics:
        dealt = 0 if group.sharing is Sharing.BY_TOPIC else dealt
        for _ in topic:
            owned[dealt % consumers] += 1
            dealt += 1
    return sorted(owned, reverse=True)


def lagging(group: Group, shape: Replicas) -> int:
    every = (partition for topic in group.topics for partition in topic)
    return sum(lag > 0 and not (still and shape.exclude_persistent_lag) for lag, still in every)


def has_work_for(replicas: int, group: Group, shape: Replicas) -> bool:
    """Whether one replica less would have too few consumers for all the partitions that can be read at a time."""
    consumers = (replicas - 1) * shape.consumers_per_replica
    several_read = group.sharing is Sharing.SEVERAL_READERS
    at_work = consumers + 1 if several_read else sum(own > 0 for own in shares(consumers + 1, group))
    if shape.limit_to_partitions_with_lag:
        at_work = min(at_work, max(lagging(group, shape), 1))
    return replicas == 1 or at_work > consumers


def by_search(group: Group, shape: Replicas) -> int:
    every = [partition for topic in group.topics for partition in topic]
    if sum(lag for lag, _ in every) <= shape.activation:
        return 0
    moving = sum(lag for lag, still in every if not (still and shape.exclude_persistent_lag))
    enough = next(number for number in count(1) if number * shape.lag_per_replica >= moving)
    if shape.ensure_even_distribution_of_partitions:
        even = range(enough, sum(map(len, group.topics)) + 1)
        found = next((n for n in even if len(set(shares(n * shape.consumers_per_replica, group))) == 1), None)
        if found is not None:
            return found
        enough = enough if group.sharing is Sharing.SEVERAL_READERS else 10**6
    elif shape.allow_idle_consumers:
        return enough
    if group.sharing is Sharing.SEVERAL_READERS and not shape.limit_to_partitions_with_lag:
        return enough
    return next(number for number in count(1) if number == enough or not has_work_for(number + 1, group, shape))


partitions = st.tuples(st.integers(0, 40), st.booleans())
groups = st.builds(
    Group,
    st.lists(st.lists(partitions, min_size=1, max_size=8).map(tuple), min_size=1, max_size=3).map(tuple),
    st.sampled_from(Sharing),
)
shapes = st.builds(
    lambda **keys: Replicas.model_validate(keys),
    lagPerReplica=st.integers(1, 30),
    activation=st.sampled_from([0, 0, 5, 50]),
    consumersPerReplica=st.sampled_from([1, 1, 2, 3]),
    excludePersistentLag=st.booleans(),
    limitToPartitionsWithLag=st.just(False),
    allowIdleConsumers=st.booleans(),
    ensureEvenDistributionOfPartitions=st.booleans(),
) | st.builds(
    lambda **keys: Replicas.model_validate(keys),
    lagPerReplica=st.integers(1, 30),
    consumersPerReplica=st.sampled_from([1, 2]),
    excludePersistentLag=st.booleans(),
    limitToPartitionsWithLag=st.just(True),
)


@given(groups, shapes)
def test_the_number_is_that_of_the_search(group: Group, shape: Replicas) -> None:
    assert group.replicas(shape) == by_search(group, shape)


@given(groups, shapes)
def test_more_lag_never_asks_for_fewer_replicas(group: Group, shape: Replicas) -> None:
    (first, *others), *topics = group.topics
    more = Group((((first[0] + 7, first[1]), *others), *topics), group.sharing)

    assert more.replicas(shape) >= group.replicas(shape)


# -- each field ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lag", "replicas"), [(0, 0), (1, 1), (10, 1), (11, 2), (49, 5), (50, 5), (59, 5), (10**9, 5)])
def test_there_are_never_more_replicas_than_partitions(lag: int, replicas: int) -> None:
    """KEDA limits 59 messages to 59, because 59 // 10 is 5, and the HPA makes 6 replicas of them."""
    assert group([lag, 0, 0, 0, 0]).replicas(shape()) == replicas


def test_idle_consumers_may_be_allowed() -> None:
    assert group([59, 0]).replicas(shape(allowIdleConsumers=True)) == 6


@pytest.mark.parametrize(("lag", "replicas"), [(5, 0), (6, 1), (60, 2)])
def test_lag_must_exceed_the_activation(lag: int, replicas: int) -> None:
    assert group([lag, 0]).replicas(shape(activation=5)) == replicas


def test_an_activation_above_what_several_replicas_are_for_keeps_all_of_them_away() -> None:
    assert group([50, 0]).replicas(shape(activation=50)) == 0


def test_persistent_lag_activates_and_asks_for_no_further_replica() -> None:
    stuck = Group((((1000, True), (15, False), (0, False)),))

    assert stuck.replicas(shape(excludePersistentLag=True)) == 2
    assert stuck.replicas(shape()) == 3
    assert Group((((1000, True), (0, False)),)).replicas(shape(excludePersistentLag=True)) == 1


def test_no_more_consumers_than_partitions_with_lag_that_moves() -> None:
    limited = shape(limitToPartitionsWithLag=True, excludePersistentLag=True)

    assert group([100, 100, 0, 0]).replicas(limited) == 2
    assert Group((((100, True), (100, False), (0, False)),)).replicas(limited) == 1


@pytest.mark.parametrize(("lag", "replicas"), [(1, 1), (11, 2), (21, 5), (51, 10), (1000, 10)])
def test_ten_partitions_are_divided_evenly_by_1_2_5_or_10_replicas(lag: int, replicas: int) -> None:
    """As KEDA documents it."""
    assert group([lag, *[0] * 9]).replicas(shape(ensureEvenDistributionOfPartitions=True)) == replicas


@pytest.mark.parametrize(
    ("sharing", "lag", "replicas"),
    [
        (Sharing.BY_TOPIC, 11, 2),
        (Sharing.BY_TOPIC, 25, 6),  # 3 would divide 6 partitions evenly, but not 4
        (Sharing.TOGETHER, 11, 2),
        (Sharing.TOGETHER, 25, 5),
        (Sharing.TOGETHER, 51, 10),
    ],
)
def test_an_even_distribution_is_one_of_all_topics(sharing: Sharing, lag: int, replicas: int) -> None:
    even = shape(ensureEvenDistributionOfPartitions=True)

    assert group([lag, 0, 0, 0, 0, 0], [0, 0, 0, 0], sharing=sharing).replicas(even) == replicas


@pytest.mark.parametrize(
    ("sharing", "replicas"), [(Sharing.BY_TOPIC, 4), (Sharing.TOGETHER, 7), (Sharing.SEVERAL_READERS, 100)]
)
def test_how_many_can_have_a_partition_of_several_topics_depends_on_the_assignor(
    sharing: Sharing, replicas: int
) -> None:
    assert group([500, 0, 0, 0], [500, 0, 0], sharing=sharing).replicas(shape()) == replicas


def test_a_replica_with_several_consumers_takes_several_partitions() -> None:
    assert group([1000, *[0] * 6]).replicas(shape(consumersPerReplica=3)) == 3
    assert group([15, *[0] * 6]).replicas(shape(consumersPerReplica=3)) == 2


def test_lags_that_no_sum_can_hold_are_as_many_replicas_as_can_be() -> None:
    assert group([LARGEST_OFFSET] * 2000).replicas(shape(lagPerReplica=1)) == 2000


# -- movement ------------------------------------------------------------------------------------------

SECONDS = 80.0


def movement(moved: float, watched: float, judged_at: float | None = None) -> tuple[bool, bool]:
    """Whether a commit stands still that moved and was first seen so many seconds ago, and whether that is unknown."""
    found = samples.snapshot({("billing", "orders", 0): row(5, 10)})
    found.moved_at[0], found.watched_since[0] = NOW - moved, NOW - watched
    still, unknown = movement_of(found, np.array([0]), judged_at, SECONDS)
    return bool(still[0]), bool(unknown[0])


def test_a_commit_stands_still_after_the_longest_usual_time_between_two_and_two_cycles() -> None:
    assert still_after(10.0) == SECONDS
    assert movement(moved=79, watched=1000) == (False, False)
    assert movement(moved=81, watched=1000) == (True, False)


def test_it_is_unknown_whether_a_commit_moves_that_has_just_been_read_for_the_first_time() -> None:
    assert movement(moved=np.inf, watched=79) == (False, True)
    assert movement(moved=np.inf, watched=81) == (True, False)
    assert movement(moved=5, watched=10) == (False, False)


def test_a_group_whose_members_change_is_judged_as_of_before() -> None:
    assert movement(moved=200, watched=1000, judged_at=NOW - 150) == (False, False)
    assert movement(moved=300, watched=1000, judged_at=NOW - 150) == (True, False)


def test_a_row_that_cannot_be_read_keeps_how_it_moved() -> None:
    found = samples.snapshot({("billing", "orders", 0): row(5, 10).aged(50)})
    found.moved_at[0], found.watched_since[0] = NOW - 100, NOW - 1000
    still, _ = movement_of(found, np.array([0]), None, SECONDS)

    assert not still[0]
