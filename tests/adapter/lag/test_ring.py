"""What is remembered of the movement of offsets: how finely, for how long, and what is another log or was set back."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import pairwise, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.cluster.topics import Topology
from adapter.lag.layout import Layout, layout_of
from adapter.lag.ring import FARTHEST, Distances, Ring, Track, bytes_of, empty_ring, followed_by, past_of
from adapter.lag.snapshot import Cause, State, nothing_observed
from tests.support import samples
from tests.support.samples import NOW, Key, Row, row

ORDERS = ("billing", "orders", 0)
INTERVAL = 10.0


def after(cycles: Iterable[Row], ring: Ring | None = None, begin: float = NOW) -> Ring:
    """One partition, read by these cycles, whose `received` does not count."""
    layout = samples.layout([ORDERS])
    ring = ring or empty_ring(layout)
    for number, one in enumerate(cycles):
        ring = step(ring, {ORDERS: one}, begin + number * INTERVAL)
    return ring


def step(ring: Ring, rows: dict[Key, Row], at: float, layout: Layout | None = None) -> Ring:
    layout = layout or samples.layout(rows)
    rows = {key: replace(one, received=at) for key, one in rows.items()}
    observed, snapshot = samples.observed(rows, layout), samples.snapshot(rows)
    return followed_by(ring, observed, replace(snapshot, layout=layout), np.full(len(layout), at), at)


def seen(track: Track, row: int = 0) -> list[tuple[float, int]]:
    """The seconds from NOW to the receipt, and the offset, of each tick that counts for the row."""
    past = past_of(track, np.array([row]))
    columns = (column[:, 0].tolist() for column in (past.received, past.offset, past.is_valid))
    ticks = [(round(at - NOW, 3), offset) for at, offset, is_valid in zip(*columns, strict=True) if is_valid]
    return list(dict.fromkeys(ticks))


@cache
def long_run() -> tuple[list[list[float]], int, Ring]:
    """The ages of the log ends after each of 9,000 cycles, the oldest first; the most bytes of a row; the last ring."""
    layout = samples.layout([ORDERS])
    ring, ages, most = empty_ring(layout), [], 0
    observed, snapshot = nothing_observed(layout), samples.snapshot({ORDERS: row(0, 0)})
    for at in (NOW + INTERVAL * number for number in range(9000)):
        observed.commit_received[:] = observed.end_received[:] = at
        observed.log_end[:] = observed.committed[:] = observed.log_start[:] = at
        ring = followed_by(ring, observed, snapshot, np.full(1, at), at)
        ages.append([at - tick.at for tick in ring.ends.ticks])
        most = max(most, bytes_of(ring))
    return ages, most, ring


def test_each_kind_of_offset_is_remembered_with_its_receipt_time() -> None:
    ring = after([row(1, 10, 0), row(2, 20, 1)])

    assert seen(ring.ends) == [(0, 10), (10, 20)]
    assert seen(ring.commits) == [(0, 1), (10, 2)]
    assert seen(ring.starts) == [(0, 0), (10, 1)]


def test_the_distance_of_two_ticks_is_at_most_half_the_age_of_the_older_or_one_cycle() -> None:
    kept, _, _ = long_run()

    assert all(older - newer <= max(older / 2, INTERVAL) for ages in kept for older, newer in pairwise(ages))


def test_log_ends_of_four_thousand_cycles_are_remembered() -> None:
    kept, _, _ = long_run()

    assert all(ages[0] >= min(number, 4000) * INTERVAL for number, ages in enumerate(kept))


def test_a_partition_takes_no_more_bytes_than_are_stated() -> None:
    assert long_run()[1] == 420


def test_a_partition_that_moves_by_billions_takes_few_bytes_more() -> None:
    """Once the first offset is no longer remembered, distances are counted from a later one."""
    commits = after(row(FARTHEST * number // 200, FARTHEST * number // 200) for number in range(400)).commits

    assert commits.later is not None
    assert [type(tick.offset) for tick in commits.ticks[:-1]] == [Distances] * (len(commits.ticks) - 1)
    assert all(offset == FARTHEST * round(second / INTERVAL) // 200 for second, offset in seen(commits))


def test_what_distances_are_beyond_is_kept_once_however_often_a_log_was_reset() -> None:
    ends = after(row(0, offset) for offset in (10, 20, 5, 30, 4, 9)).ends

    assert len({id(tick.offset.base) for tick in ends.ticks if isinstance(tick.offset, Distances)}) == 1


@settings(max_examples=200)
@given(st.lists(st.tuples(*[st.sampled_from([0, 7, 2**31, 2**32, 2**34, 2**50])] * 2), min_size=1, max_size=40))
def test_every_offset_is_remembered_as_it_was_read(read: list[tuple[int, int]]) -> None:
    """Two partitions: either may be reset, or move by billions, while the other stays."""
    keys = [("billing", "orders", 0), ("billing", "orders", 1)]
    layout = samples.layout(keys)
    ring = empty_ring(layout)
    for number, offsets in enumerate(read):
        rows = {key: row(offset, offset) for key, offset in zip(keys, offsets, strict=True)}
        ring = step(ring, rows, NOW + INTERVAL * number, layout)

    for at, track in product(range(len(keys)), (ring.ends, ring.commits)):
        assert seen(track, at)
        assert all(offset == read[round(second / INTERVAL)][at] for second, offset in seen(track, at))


def test_nothing_from_before_a_log_was_reset_counts() -> None:
    ring = after([row(1, 10), row(1, 20), row(1, 5), row(1, 30)])

    assert seen(ring.ends) == [(20, 5), (30, 30)]


def test_what_a_log_began_with_still_counts_after_its_tick_was_dropped() -> None:
    ring = after([row(0, 1000), row(0, 1000), row(0, 5), *(row(0, 2000 + number) for number in range(60))])

    assert NOW + 20 not in [tick.at for tick in ring.ends.ticks]
    assert seen(ring.ends)[0] == (20, 5)


def test_what_a_log_began_with_does_not_count_for_longer_than_the_ticks() -> None:
    ring = long_run()[2]

    assert seen(ring.ends)[0][0] == ring.ends.ticks[0].at - NOW > 0


def test_a_commit_that_was_set_back_begins_anew() -> None:
    ring = after([row(8, 10), row(9, 10), row(3, 10), row(4, 10)])

    assert seen(ring.commits) == [(20, 3), (30, 4)]
    assert len(seen(ring.ends)) == 4


def test_a_first_commit_continues_nothing() -> None:
    ring = after([row(None, 10), row(None, 10), row(7, 10), row(8, 10)])

    assert seen(ring.commits) == [(20, 7), (30, 8)]


def test_what_a_cycle_could_not_read_keeps_its_receipt_time() -> None:
    ring = after([row(1, 10), row(1, 10).unknown("broker 2 does not answer"), row(2, 30)])

    assert seen(ring.commits) == [(0, 1), (20, 2)]


def test_log_ends_go_on_while_commits_cannot_be_read() -> None:
    layout = samples.layout([ORDERS])
    ring = after([row(1, 10)])
    before = samples.snapshot({ORDERS: row(1, 10).unknown("no coordinator")})
    observed = nothing_observed(layout, before.causes)
    observed.commit_cause[:] = before.cause
    observed.log_end[:], observed.end_received[:] = 25, NOW + 9

    ring = followed_by(ring, observed, replace(before, layout=layout), np.full(1, NOW - 1), NOW + 10)
    observed.log_end[:] = 4
    ring = followed_by(ring, observed, replace(before, layout=layout), np.full(1, NOW - 1), NOW + 20)

    assert seen(ring.ends) == [(0, 10), (9, 25)]
    assert len(ring.starts.ticks) == 1


def laid_out(ids: dict[str, str], sizes: dict[str, int]) -> Layout:
    topology: Topology = samples.topology({topic: [1] * size for topic, size in sizes.items()}, ids)
    return layout_of({"billing": list(sizes)}, topology)


def test_another_layout_keeps_what_its_rows_have_seen() -> None:
    old, new = (
        laid_out({"orders": "a"}, {"orders": 2}),
        laid_out({"orders": "a", "extra": "x"}, {"extra": 1, "orders": 3}),
    )
    two = {("billing", "orders", number): row(number, 10 + number) for number in range(2)}
    six = {("billing", "orders", number): row(number, 20 + number) for number in range(3)}
    ring = step(step(empty_ring(old), two, NOW, old), {**six, ("billing", "extra", 0): row(1, 2)}, NOW + 10, new)

    assert [seen(ring.ends, number) for number in range(4)] == [
        [(10, 2)],
        [(0, 10), (10, 20)],
        [(0, 11), (10, 21)],
        [(10, 22)],
    ]


def test_a_topic_that_was_created_again_has_no_past() -> None:
    old, new = laid_out({"orders": "a"}, {"orders": 1}), laid_out({"orders": "b"}, {"orders": 1})
    ring = step(step(empty_ring(old), {ORDERS: row(1, 10)}, NOW, old), {ORDERS: row(1, 20)}, NOW + 10, new)

    assert seen(ring.ends) == [(10, 20)]


def test_a_partition_that_was_never_read_has_nothing() -> None:
    ring = after([row(1, 10).unknown("broker 2 does not answer")])

    assert seen(ring.ends) == seen(ring.commits) == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_what_counts_never_goes_backward_and_ends_with_the_newest(offsets: list[int]) -> None:
    ring = after([row(offset, 1000 + offset) for offset in offsets])

    for track, newest in ((ring.ends, 1000 + offsets[-1]), (ring.commits, offsets[-1])):
        values = [offset for _, offset in seen(track)]
        assert values == sorted(values)
        assert values[-1] == newest


def test_a_commit_beyond_the_log_end_is_not_remembered() -> None:
    ahead = Row(500, 10, state=State.AHEAD, why=Cause(State.AHEAD, "beyond").text)

    assert seen(after([row(1, 10), ahead]).commits) == [(0, 1)]
