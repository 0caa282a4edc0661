"""What the history has and what a new process sees become one past: as if the process had never been away."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.columns import NO_COMMIT, NOT_KNOWN
from adapter.lag.demand import rates_in, waits_in
from adapter.lag.earlier import EarlierCycle, preceded_by, ring_of
from adapter.lag.layout import layout_of
from adapter.lag.ring import Ring, Track, bytes_of, empty_ring, followed_by, past_of
from tests.support import samples
from tests.support.samples import NOW, Row, row

INTERVAL = 10.0
ORDERS = ("billing", "orders", 0)
LAYOUT = samples.layout([ORDERS])


def lived(cycles: Sequence[Row], begin: float = 0.0) -> Ring:
    """The ring of a process that read these cycles from `begin` seconds since NOW on."""
    ring = empty_ring(LAYOUT)
    for number, one in enumerate(cycles):
        at = begin + number * INTERVAL
        ring = lived_on(ring, one, at, received=at)
    return ring


def lived_on(ring: Ring, one: Row, at: float, received: float) -> Ring:
    rows = {ORDERS: replace(one, received=NOW + received)}
    snapshot = replace(samples.snapshot(rows), layout=LAYOUT)
    return followed_by(ring, samples.observed(rows, LAYOUT), snapshot, np.full(1, NOW + received), NOW + at)


def kept(cycles: Sequence[Row], begin: float = 0.0) -> Ring:
    """The ring from a history that has these cycles."""
    return ring_of(LAYOUT, [earlier(one, begin + number * INTERVAL) for number, one in enumerate(cycles)])


def earlier(one: Row, at: float) -> EarlierCycle:
    is_known = np.array([not one.why])
    return EarlierCycle(
        at=NOW + at,
        committed=np.array([NO_COMMIT if one.why else one.committed]),
        log_end=np.array([NOT_KNOWN if one.why else one.log_end]),
        log_start=np.array([one.log_start]),
        received=np.array([NOW + at]),
        is_commit=is_known,
        is_end=is_known,
    )


def seen(track: Track) -> list[tuple[float, int]]:
    past = past_of(track, np.array([0]))
    columns = (column[:, 0].tolist() for column in (past.received, past.offset, past.is_valid))
    return list(
        dict.fromkeys((round(at - NOW, 3), offset) for at, offset, is_valid in zip(*columns, strict=True) if is_valid)
    )


def wait(ring: Ring, passed: int, at: float) -> tuple[float, bool]:
    seconds, is_bound = waits_in(ring, np.array([0]), np.array([passed]), np.array([NOW + at]))
    return round(float(seconds[0]), 3), bool(is_bound[0])


def ends_of(ticks: list[tuple[float, int]]) -> list[tuple[float, int]]:
    return [*ticks[:1], *ticks[-1:]]


some_cycles = st.lists(
    st.builds(row, st.one_of(st.none(), st.integers(0, 5)), st.integers(6, 12), st.integers(0, 3)),
    min_size=2,
    max_size=8,
)


@settings(deadline=None)
@given(some_cycles, st.data())
def test_a_past_that_is_read_back_is_that_of_a_process_that_was_never_away(
    cycles: list[Row], data: st.DataObject
) -> None:
    own = data.draw(st.integers(1, len(cycles) - 1))
    joined = preceded_by(lived(cycles[-own:], (len(cycles) - own) * INTERVAL), kept(cycles[:-own]))
    whole = lived(cycles)

    # Which ticks between the first and the last are dropped depends on when they came.
    assert ends_of(seen(joined.ends)) == ends_of(seen(whole.ends))
    assert ends_of(seen(joined.commits)) == ends_of(seen(whole.commits))
    assert ends_of(seen(joined.starts)) == ends_of(seen(whole.starts))


def test_a_message_from_before_the_start_has_its_age() -> None:
    ring = preceded_by(lived([row(150, 300)] * 2, begin=30), kept([row(0, 0), row(0, 100), row(0, 200)]))

    assert wait(ring, 150, at=40) == (25, False)
    assert wait(lived([row(150, 300)] * 2, begin=30), 150, at=40) == (10, True)


@pytest.mark.parametrize("answered", [0.003, 0.006358749, 0.25])
@pytest.mark.parametrize("up", [0.0, 34_410.775020898, 7_000_000.1])
def test_the_past_goes_on_however_long_the_machine_runs_and_the_brokers_took(up: float, answered: float) -> None:
    """The clock counts from the machine's start, and the latest offsets were received a moment before a cycle ends."""
    at, rows = NOW + up + 40, {ORDERS: replace(row(40, 90), received=NOW + up + 40 - answered)}
    snapshot = replace(samples.snapshot(rows), layout=LAYOUT)
    own = followed_by(empty_ring(LAYOUT), samples.observed(rows, LAYOUT), snapshot, np.full(1, at), at)
    past = ring_of(LAYOUT, [earlier(row(40, 10 * number), up + 10 * number) for number in range(4)])

    assert preceded_by(own, past).ends.begun.tolist() == [NOW + up]


def test_what_came_while_no_process_ran_has_only_a_bound_until_the_pause_is_short_for_its_age() -> None:
    past, own = kept([row(0, 0), row(0, 100)]), [row(0, 200)] * 40
    short, long = (preceded_by(lived(own[:count], begin=110), past) for count in (6, 12))

    assert wait(short, 150, at=160) == (50, True), "at least since the first cycle of this process"
    seconds, is_bound = wait(long, 150, at=220)
    assert 110 <= seconds <= 210
    assert not is_bound, "wrong by at most half of it, like every age"
    assert wait(short, 50, at=160) == (155, False), "it came before the pause"


def test_a_log_that_was_reset_meanwhile_has_no_past() -> None:
    ring = preceded_by(lived([row(1, 5), row(1, 9)], begin=30), kept([row(0, 0), row(0, 100)]))

    assert seen(ring.ends) == [(30, 5), (40, 9)]


def test_a_log_that_was_reset_since_the_start_has_no_past() -> None:
    ring = preceded_by(lived([row(1, 200), row(1, 120)], begin=30), kept([row(0, 0), row(0, 100)]))

    assert seen(ring.ends) == [(40, 120)]


def test_commits_that_were_set_back_meanwhile_begin_anew() -> None:
    ring = preceded_by(lived([row(3, 100)], begin=30), kept([row(7, 100), row(8, 100)]))

    assert seen(ring.commits) == [(30, 3)]


def test_a_first_commit_after_the_start_continues_nothing() -> None:
    ring = preceded_by(lived([row(None, 100), row(9, 100)], begin=30), kept([row(7, 100), row(8, 100)]))

    assert seen(ring.commits) == [(40, 9)]


def test_commits_that_the_first_cycle_could_not_read_keep_their_past() -> None:
    silent = row(0, 100).unknown("broker 2 does not answer")
    ring = preceded_by(lived([silent, row(9, 100)], begin=30), kept([row(7, 100), row(8, 100)]))

    assert seen(ring.commits) == [(0, 7), (10, 8), (40, 9)]


@settings(deadline=None, max_examples=40)
@given(st.integers(20, 400), st.lists(st.floats(0, 8), min_size=1, max_size=5))
def test_an_age_that_has_become_exact_stays_so(pause: int, late: list[float]) -> None:
    """A message came while no process ran. Whichever ticks around that time are dropped later, and however long the
    brokers take to answer, its age is not a bound again."""
    past, begin = kept([row(0, 10 * number) for number in range(30)]), 290.0 + pause
    ring, bounds = preceded_by(lived([row(0, 1000)], begin), past), list[bool]()
    for number in range(1, 120):
        at, received = begin + number * INTERVAL, begin + number * INTERVAL - late[number % len(late)]
        ring = lived_on(ring, row(0, 1000 + number), at, received)
        bounds.append(wait(ring, 500, received)[1])

    assert bounds[-1] is False
    assert bounds == sorted(bounds, reverse=True)


def test_a_partition_that_cannot_be_read_since_the_start_keeps_its_past() -> None:
    silent = row(0, 100).unknown("broker 2 does not answer")
    ring = preceded_by(lived([silent, silent], begin=30), kept([row(0, 0), row(1, 100)]))

    assert seen(ring.ends) == [(0, 0), (10, 100)]
    assert seen(ring.commits) == [(0, 0), (10, 1)]


def test_a_topic_that_was_created_again_meanwhile_has_no_past() -> None:
    old, new = (layout_of({"billing": ["orders"]}, samples.topology({"orders": [1]}, {"orders": id_})) for id_ in "ab")
    past = ring_of(old, [earlier(row(0, 0), 0), earlier(row(0, 100), 10)])
    own = replace(lived([row(0, 200)], begin=30), layout=new)

    assert seen(preceded_by(own, past).ends) == [(30, 200)]


def test_a_rate_is_known_at_once_if_the_past_is_recent_and_not_if_it_is_old() -> None:
    minute = [row(100 * number, 1000) for number in range(7)]
    recent = preceded_by(lived([row(700, 1000)], begin=70), kept(minute))
    old = preceded_by(lived([row(700, 1000)], begin=400), kept(minute))

    assert rates_in(recent.commits, np.array([0]), 55.0).per_second[0] == pytest.approx(10)
    assert np.isnan(rates_in(old.commits, np.array([0]), 55.0).per_second[0]), "it would be the mean of 340 s"


def test_cycles_that_are_not_later_than_the_one_before_are_left_out() -> None:
    past = ring_of(LAYOUT, [earlier(row(0, 100), 10), earlier(row(0, 90), 5), earlier(row(0, 200), 20)])

    assert seen(past.ends) == [(10, 100), (20, 200)]


def test_the_whole_past_takes_no_more_bytes_than_are_stated() -> None:
    past = kept([row(number, 10 * number, number) for number in range(3000)], begin=-30_000)

    assert bytes_of(preceded_by(lived([row(4000, 50_000, 3000)] * 3), past)) <= 420


def test_nothing_in_the_history_changes_nothing() -> None:
    own = lived([row(0, 5), row(1, 9)])

    assert seen(preceded_by(own, empty_ring(LAYOUT)).ends) == seen(own.ends)
    assert wait(preceded_by(own, empty_ring(LAYOUT)), 2, at=10) == (10, True)
