"""Consumers read one partition after another, as far as they have fetched it."""

import numpy as np

from adapter.verdicts.owners import Assignor, owners_table
from local.promise.readers import BATCH_SECONDS, Readers


def readers(partitions: int, pause: float = 0.0) -> Readers:
    return Readers(20.0, owners_table((partitions,), Assignor.RANGE), pause, np.random.default_rng(1))


def read(group: Readers, batches: int, members: list[float], begin: float = 0.0) -> None:
    for batch in range(batches):
        group.read(begin + batch * BATCH_SECONDS, members)


def test_a_member_reads_all_that_it_has_fetched_of_a_partition_before_it_goes_on() -> None:
    """Eight of one partition take two batches; then come the eight of the other one."""
    group = readers(2)
    group.write(0.0, [0] * 8 + [1] * 8)
    left = []
    for batch in range(4):
        group.read(batch * BATCH_SECONDS, [0.5])
        left.append(sorted(group.waiting.tolist()))

    assert left == [[4, 8], [0, 8], [0, 4], [0, 0]]
    assert group.waits == [0.2] * 4 + [0.4] * 4 + [0.6000000000000001] * 4 + [0.8] * 4


def test_what_comes_while_a_partition_is_read_waits_for_the_others() -> None:
    group = readers(2)
    group.write(0.0, [0] * 4 + [1] * 4)
    group.read(0.0, [0.5])
    first = int(np.argmin(group.waiting))
    group.write(0.1, [first])
    group.read(0.2, [0.5])

    assert group.waiting[first] == 1
    assert group.waiting.sum() == 1


def test_a_member_fetches_again_once_it_has_begun_with_the_last_partition() -> None:
    """What has come until then in a partition that was read first is fetched at once, not as it came."""
    group = readers(3)
    group.write(0.0, [0] * 4 + [1] * 4 + [2] * 4)
    group.read(0.0, [0.5])
    first = int(np.argmin(group.waiting))
    for batch, number in ((1, 1), (2, 3)):
        group.write(batch * BATCH_SECONDS, [first] * number)
        group.read(batch * BATCH_SECONDS, [0.5])
    before = int(group.waiting.sum())
    group.read(3 * BATCH_SECONDS, [0.5])

    assert [before, int(group.waiting.sum())] == [4, 0]


def test_members_share_the_partitions_and_a_rebalance_stops_all_of_them() -> None:
    group = readers(2, pause=1.0)
    group.write(0.0, [0] * 40 + [1] * 40)
    read(group, 5, [0.5])
    alone = int(group.waiting.sum())
    read(group, 5, [0.5, 0.7], begin=1.0)
    stopped = int(group.waiting.sum())
    read(group, 5, [0.5, 0.7], begin=2.0)

    assert [alone, stopped, int(group.waiting.sum())] == [60, 60, 20]


def test_a_member_catches_up_after_a_batch_that_was_not_full() -> None:
    """As one that begins the next batch at once: 1 and then 7 messages in 0.4 s are 20 per second."""
    group = readers(1)
    group.write(0.0, [0])
    group.read(0.0, [0.5])
    group.write(0.1, [0] * 9)
    group.read(0.2, [0.5])

    assert group.waiting.tolist() == [2]


def test_without_members_all_waits() -> None:
    group = readers(3)
    group.write(0.0, [0, 1, 2])
    read(group, 3, [])

    assert group.waiting.tolist() == [1, 1, 1]
