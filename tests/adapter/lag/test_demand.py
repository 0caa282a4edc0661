"""Waits and rates by what is remembered of the movement of offsets: against plain Python that keeps every reading."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.lag.demand import ROWS_AT_ONCE, rates_in, waits_in
from adapter.lag.ring import Ring, empty_ring, followed_by
from adapter.lag.snapshot import Cause, State
from tests.support import samples
from tests.support.samples import NOW, row

INTERVAL = 10.0
ORDERS = ("billing", "orders", 0)


@dataclass(frozen=True)
class Reading:
    """What a cycle read of a partition; `end` None: its leader did not answer."""

    end: int | None
    commit: int
    late: float = 0.0
    """How long before the cycle's decision the log end was received, in seconds."""


def ring_of(*partitions: list[Reading]) -> Ring:
    """A cycle for each reading, an interval apart."""
    keys = [("billing", "orders", number) for number in range(len(partitions))]
    layout = samples.layout(keys)
    ring = empty_ring(layout)
    for number in range(len(partitions[0])):
        at, read = NOW + INTERVAL * number, [readings[number] for readings in partitions]
        rows = {key: row(one.commit, one.end or 0) for key, one in zip(keys, read, strict=True)}
        observed, snapshot = samples.observed(rows, layout), replace(samples.snapshot(rows), layout=layout)
        observed.end_received[:] = observed.commit_received[:] = [at - one.late for one in read]
        is_lost = np.array([one.end is None for one in read])
        observed.end_cause[is_lost] = snapshot.cause[is_lost] = 1
        observed = replace(observed, causes=(*observed.causes, Cause(State.UNKNOWN, "lost")))
        ring = followed_by(ring, observed, snapshot, np.full(len(keys), at), at)
    return ring


def wait(ring: Ring, passed: int, at: float) -> tuple[float, bool]:
    """Of the first partition, as of `at` seconds since NOW."""
    seconds, is_bound = waits_in(ring, np.array([0]), np.array([passed]), np.array([NOW + at]))
    return round(float(seconds[0]), 3), bool(is_bound[0])


def ends(*values: int | None) -> list[Reading]:
    return [Reading(value, 0) for value in values]


# -- the age of the oldest message that waits ------------------------------------------------------------------


def test_a_message_is_as_old_as_the_log_end_that_passed_it() -> None:
    assert wait(ring_of(ends(0, 100, 200)), 150, at=20) == (5, False)


def test_the_time_between_two_log_ends_is_that_of_their_receipt() -> None:
    ring = ring_of([Reading(0, 0, late=5), Reading(100, 0, late=1)])

    assert wait(ring, 50, at=9) == (7, False)


def test_a_message_that_came_after_a_pause_is_not_older_than_its_own_log_end() -> None:
    ring = ring_of(ends(7, 7, 7, 7, 7, 7, 7, 8))

    assert wait(ring, 7, at=70) == (10, False)


def test_before_the_first_log_end_the_age_is_a_lower_bound() -> None:
    assert wait(ring_of(ends(50, 100, 200)), 20, at=20) == (20, True)


def test_after_a_reset_only_the_new_log_counts() -> None:
    assert wait(ring_of(ends(0, 900, 5, 9)), 1, at=30) == (10, True)


def test_an_older_pair_has_the_age_of_its_own_time() -> None:
    """Its commit could not be read since, and log ends went on."""
    assert wait(ring_of(ends(0, 100, 200, 300)), 50, at=10) == (5, False)


def test_a_pair_of_a_log_that_was_reset_since_is_not_known() -> None:
    assert wait(ring_of(ends(0, 100, 3)), 50, at=10) == (0, True)


def test_a_partition_whose_log_end_was_never_read_is_not_known() -> None:
    assert wait(ring_of(ends(None, None)), 5, at=10) == (0, True)


def test_many_partitions_are_computed_in_parts() -> None:
    count = ROWS_AT_ONCE + 3
    ring = ring_of(*[ends(0, 10 + number) for number in range(count)])
    seconds, is_bound = waits_in(ring, np.arange(count), np.arange(count) + 5, np.full(count, NOW + 10))

    assert seconds == pytest.approx(10 - 10 * (np.arange(count) + 5) / (np.arange(count) + 10))
    assert not is_bound.any()


some_readings = st.lists(
    st.builds(Reading, st.one_of(st.none(), st.integers(0, 300)), st.just(0), st.sampled_from([0.0, 0.25, 3.0])),
    min_size=2,
    max_size=12,
)
"""Few enough for the distances to be the same as with all readings, but for the coarseness that `near` allows."""


def oracle(readings: list[Reading], passed: int) -> tuple[float, float, bool] | None:
    """The least and the most that the wait can be with any log ends left out whose neighbours are near, and whether it
    is a lower bound; None if the newest log end is not beyond the offset."""
    log: list[tuple[float, int]] = []
    for number, one in enumerate(readings):
        if one.end is not None:
            log = [*(log if not log or one.end >= log[-1][1] else []), (INTERVAL * number - one.late, one.end)]
    if not log or log[-1][1] <= passed:
        return None
    now = log[-1][0]
    before = [number for number, (_, end) in enumerate(log) if end <= passed]
    if not before:
        return now - log[0][0], now - log[0][0], True
    return now - log[before[-1] + 1][0], now - log[before[-1]][0], False


@settings(deadline=None)
@given(some_readings, st.integers(0, 300))
def test_a_wait_is_between_the_log_ends_that_were_read_as_far_as_they_are_kept(
    readings: list[Reading], passed: int
) -> None:
    expected = oracle(readings, passed)
    if expected is None:
        return
    seconds, is_bound = wait(ring_of(readings), passed, at=INTERVAL * len(readings))
    least, most, expected_bound = expected

    assert is_bound is expected_bound
    # Of readings that are left out, the neighbours are at most half their age apart.
    assert least - max(INTERVAL, least) / 2 - 3 <= seconds <= most + max(INTERVAL, most) / 2 + 3


# -- rates -----------------------------------------------------------------------------------------------------


def rate(readings: list[Reading], window: float = 55.0) -> float:
    """Of the log ends; NaN if it is not known."""
    return float(rates_in(ring_of(readings).ends, np.array([0]), window).per_second[0])


def test_a_rate_is_what_came_in_the_window_over_its_time() -> None:
    assert rate(ends(*range(0, 800, 100))) == 10
    assert rate(ends(0, 0, 0, 0, 0, 0, 600)) == 10


def test_a_rate_is_by_receipt_times() -> None:
    readings = [Reading(100 * number, 0, late=0.0 if number else 4.0) for number in range(7)]

    assert rate(readings) == pytest.approx(600 / 64)


def test_a_partition_where_nothing_happens_has_a_rate_of_nothing() -> None:
    assert rate(ends(*[5] * 8)) == 0


def test_a_rate_is_unknown_before_the_window_has_passed() -> None:
    assert np.isnan(rate(ends(0, 100, 200, 300, 400, 500)))
    assert np.isnan(rates_in(empty_ring(samples.layout([ORDERS])).ends, np.array([0]), 55.0).per_second[0])


def test_a_rate_is_unknown_until_the_window_has_passed_since_a_reset() -> None:
    ring = ring_of(ends(0, 100, 200, 300, 400, 500, 600, 700, 5, 15))
    rates = rates_in(ring.ends, np.array([0]), 55.0)

    assert np.isnan(rates.per_second[0])
    assert rates.followed[0] == pytest.approx(10)
    assert rate(ends(0, 900, *range(0, 100, 10))) == 1


def test_readings_that_fail_count_whole_in_the_next_one() -> None:
    assert rate(ends(0, 0, 0, None, None, None, None, None, 400)) == pytest.approx(400 / 60)
