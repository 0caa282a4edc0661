"""What each state gives, and what a cycle makes of the last good row."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.columns import NEVER, NO_COMMIT, NOT_KNOWN
from adapter.lag.snapshot import NO_CAUSE, Cause, Observed, Snapshot, State, empty_snapshot
from adapter.lag.states import settled, without_steps_backward
from adapter.lag.values import Treatment, values_of
from tests.support import samples
from tests.support.samples import NOW, Row, row

KEY = ("billing", "orders", 0)
SILENCE = "broker 2 at kafka-2:9092 does not answer"


def after(one: Row, before: Snapshot | None = None) -> Snapshot:
    """One row's snapshot after a cycle that gave `one`."""
    known = before if before is not None else empty_snapshot(samples.layout([KEY]))
    return settled(samples.observed({KEY: one}, known.layout), known)


def known(one: Row) -> Snapshot:
    return samples.snapshot({KEY: one})


def reported(snapshot: Snapshot) -> tuple[int, int, int, float]:
    """Committed, log end, log start, received."""
    return (
        int(snapshot.committed[0]),
        int(snapshot.log_end[0]),
        int(snapshot.log_start[0]),
        float(snapshot.received[0]),
    )


@pytest.mark.parametrize(
    ("one", "state", "lag", "lead"),
    [
        (row(7, 10, 2), State.OK, 3, 5),
        (row(10, 10, 2), State.OK, 0, 8),
        (row(2, 10, 2), State.OK, 8, 0),
        (row(1, 10, 4), State.TRUNCATED, 6, 0),
        (row(0, 4, 4), State.TRUNCATED, 0, 0),
    ],
)
def test_lag_counts_from_the_log_start_and_lead_is_never_below_0(one: Row, state: State, lag: int, lead: int) -> None:
    snapshot = after(one)
    values = values_of(snapshot, samples.plain_treatment(snapshot.layout))

    assert snapshot.state.tolist() == [state]
    assert (values.lag.tolist(), values.lead.tolist()) == ([lag], [lead])
    assert values.has_commit.all()
    assert values.is_known.all()


def test_a_cycle_that_could_not_read_does_not_end_the_doubt_about_a_commit_beyond_the_end() -> None:
    first = after(row(500, 10), known(row(8, 10)))
    unread = after(row(500, 10).unknown(SILENCE), first)
    second = after(row(500, 10), unread)

    assert unread.state.tolist() == [State.UNKNOWN]
    assert second.state.tolist() == [State.AHEAD]
    assert after(row(500, 10).unknown(SILENCE), second).state.tolist() == [State.AHEAD]


def test_the_first_time_beyond_the_end_keeps_the_last_good_row() -> None:
    first = after(row(500, 10), known(row(8, 10).aged(10)))

    assert reported(first) == (8, 10, 0, NOW - 10)
    assert values_of(first, samples.plain_treatment(first.layout)).is_known.all()


def test_a_row_is_as_old_as_the_older_of_its_commit_and_its_end() -> None:
    before = empty_snapshot(samples.layout([KEY]))
    seen = samples.observed({KEY: row(7, 10)}, before.layout)
    seen.end_received[0] = NOW + 3

    assert reported(settled(seen, before))[3] == NOW


def test_a_row_whose_start_is_not_known_is_not_read_and_says_so() -> None:
    snapshot = after(row(7, 10, NOT_KNOWN))

    assert snapshot.state.tolist() == [State.UNKNOWN]
    assert snapshot.cause_of(0).text == "its log start has not been read yet"


@pytest.mark.parametrize("newer", [row(7, 10), row(8, 10), row(7, 11)])
def test_what_does_not_step_backward_is_believed_of_a_broker_that_was_silent(newer: Row) -> None:
    before = known(row(7, 10).aged(10))
    seen = samples.observed({KEY: newer}, before.layout)

    assert without_steps_backward(seen, before, np.array([True])) is seen


def test_an_end_that_was_not_read_is_no_step_backward_and_keeps_its_own_reason() -> None:
    before = known(row(7, 10).aged(10))
    seen = samples.observed({KEY: row(8, NOT_KNOWN)}, before.layout)
    seen.end_cause[0] = 1
    seen = replace(seen, causes=(*seen.causes, Cause(State.UNKNOWN, SILENCE)))
    doubted = settled(without_steps_backward(seen, before, np.array([True])), before)

    assert doubted.cause_of(0).text == SILENCE


def test_a_last_commit_beyond_the_log_end_is_forgotten() -> None:
    """The log was truncated, so the messages after its end are new ones, whatever their offsets."""
    truncated = after(row(None, 5), after(row(None, 5), after(row(7, 10))))

    assert lag_and_last(truncated) == (0, NO_COMMIT)
    assert lag_and_last(after(row(None, 30), truncated)) == (0, NO_COMMIT)


def test_one_log_end_before_the_last_commit_proves_nothing() -> None:
    """It may be that of a new leader that has not caught up yet."""
    once = after(row(None, 5), after(row(None, 10), after(row(7, 10))))

    assert lag_and_last(once) == (3, 7)
    assert lag_and_last(after(row(None, 11), once)) == (4, 7)


def test_a_commit_from_before_the_log_was_truncated_does_not_return_when_the_one_beyond_its_end_is_gone() -> None:
    ahead = after(row(8, 5), after(row(8, 5), after(row(7, 10))))

    assert lag_and_last(after(row(None, 9), ahead)) == (0, NO_COMMIT)


def lag_and_last(snapshot: Snapshot) -> tuple[int, int]:
    values = values_of(snapshot, samples.plain_treatment(snapshot.layout))
    return int(values.lag[0]), int(snapshot.last_commit[0])


# -- against plain Python, row by row ---------------------------------------------------------------

OFFSETS = st.integers(0, 12)
CYCLE = st.tuples(
    st.one_of(st.just(NO_COMMIT), OFFSETS),
    OFFSETS,
    st.one_of(st.just(NOT_KNOWN), OFFSETS),
    st.booleans(),
    st.booleans(),
)
"""Committed, log end, log start, whether the commit was read, whether the end was."""


class PlainRow:
    """The rules of the states, one row and one cycle at a time."""

    def __init__(self) -> None:
        self.good: tuple[int, int, int] | None = None
        """Committed, log end, cycle."""
        self.start = NOT_KNOWN
        self.last = NO_COMMIT
        self.beyond = 0

    def see(self, cycle: int, committed: int, end: int, start: int, is_read: bool) -> None:  # noqa: FBT001
        self.start = self.start if start == NOT_KNOWN else start
        if not is_read or start == NOT_KNOWN:
            return
        if max(committed, self.last if committed == NO_COMMIT else NO_COMMIT) > end:
            self.beyond += 1
            self.last = NO_COMMIT if self.last > end and self.beyond >= 2 else self.last
            if committed != NO_COMMIT or self.beyond < 2:
                return
        self.beyond = 0
        self.good = (committed, end, cycle)
        self.last = self.last if committed == NO_COMMIT else committed

    def values(self, from_start: bool) -> tuple[int, int | None, int] | None:  # noqa: FBT001
        """Lag, lead and the cycle they are of; None: not known."""
        if self.good is None or self.beyond >= 2:
            return None
        committed, end, cycle = self.good
        if self.start > end:
            return None
        if self.last == NO_COMMIT:
            return (max(end - self.start, 0) if from_start else 0, None, cycle)
        return (max(end - max(self.last, self.start), 0), max(committed - self.start, 0), cycle)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.booleans(), st.lists(CYCLE, min_size=4, max_size=4)), min_size=1, max_size=6),
)
def test_columns_say_what_the_rules_say_row_by_row(
    rows: Sequence[tuple[bool, list[tuple[int, int, int, bool, bool]]]],
) -> None:
    layout = samples.layout([("billing", "orders", len(rows) - 1)])
    flags = np.array([from_start for from_start, _ in rows])
    treatment = Treatment(flags, np.zeros_like(flags), ~flags, ~flags, ~flags, ~flags)
    plain = [PlainRow() for _ in rows]
    snapshot = empty_snapshot(layout)
    for cycle in range(4):
        seen = _observed_cycle(snapshot, [cycles[cycle] for _, cycles in rows], cycle)
        snapshot = settled(seen, snapshot)
        for one, (_, cycles) in zip(plain, rows, strict=True):
            committed, end, start, has_commit, has_end = cycles[cycle]
            one.see(cycle, committed, end, start, has_commit and has_end)

        values = values_of(snapshot, treatment)
        for at, one in enumerate(plain):
            expected = one.values(bool(flags[at]))
            assert bool(values.is_known[at]) is (expected is not None)
            if expected is not None:
                lag, lead, seen_in = expected
                assert (int(values.lag[at]), int(snapshot.received[at])) == (lag, seen_in)
                assert not values.has_commit[at] or int(values.lead[at]) == lead


def _observed_cycle(before: Snapshot, cells: list[tuple[int, int, int, bool, bool]], cycle: int) -> Observed:
    """As a cycle fills its columns: what was not read stays at -1 and has a cause."""
    causes = (NO_CAUSE, Cause(State.UNKNOWN, SILENCE))
    committed, end, start, has_commit, has_end = (np.array(column) for column in zip(*cells, strict=True))
    assert len(before.layout) == len(cells)
    return Observed(
        committed=np.where(has_commit, committed, NO_COMMIT).astype(np.int64),
        commit_received=np.where(has_commit, cycle, NEVER),
        commit_cause=np.where(has_commit, 0, 1).astype(np.int32),
        log_end=np.where(has_end, end, NOT_KNOWN).astype(np.int64),
        end_received=np.where(has_end, cycle, NEVER),
        end_cause=np.where(has_end, 0, 1).astype(np.int32),
        log_start=start.astype(np.int64),
        causes=causes,
    )
