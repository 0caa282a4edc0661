import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark.advice.demand import load_of, members_needed
from spark.figures.periods import between
from tests.support.history.report_groups import group, hours, saturated, topic


@pytest.mark.parametrize(
    ("rate", "needed"), [(1001, 14), (1333, 14), (1334, 20), (1417, 20), (2000, 20), (2001, 40), (4000, 40), (9000, 40)]
)
def test_members_carry_whole_partitions(rate: float, needed: int) -> None:
    """40 partitions, 100 messages a second per member: between 14 and 20 members one still carries three partitions."""
    assert members_needed(rate, 100, 40) == needed


@given(st.floats(0.1, 1e6), st.floats(0.1, 1e6), st.integers(1, 500))
def test_no_member_gets_more_than_it_can_do_unless_one_partition_is_too_much(
    rate: float, per_member: float, partitions: int
) -> None:
    needed = members_needed(rate, per_member, partitions)
    largest = math.ceil(partitions / needed)

    assert 1 <= needed <= partitions
    assert largest * rate / partitions <= per_member * (1 + 1e-6) or needed == partitions


@pytest.mark.parametrize(("rate", "partitions", "needed"), [(0, 4, 1), (0, 0, 0), (5, 0, 0)])
def test_nothing_to_do_needs_one_member_and_nothing_to_read_none(rate: float, partitions: int, needed: int) -> None:
    assert members_needed(rate, 100, partitions) == needed


def test_a_capacity_not_learned_is_what_a_member_did_for_sure() -> None:
    load = load_of(group("billing", topic(of=hours(production=lambda hour: 10.0 + hour, members_max=2))))

    assert load.capacity is None
    assert load.per_member == pytest.approx((10 + 47) / 2)


def test_hours_on_both_sides_of_a_gap_are_no_dip() -> None:
    """Every fourth hour is low; it is a dip only where the hour before it was seen as well."""
    of = hours(24, production=lambda hour: 10 if hour % 4 == 1 else 100)
    seen, with_gaps = (group("billing", topic(of=it)) for it in (of, between(of, np.arange(24) % 4 != 0)))

    assert load_of(seen).dips == 6
    assert load_of(with_gaps).dips == 0


@pytest.mark.parametrize(
    ("rates", "dips"),
    [
        ((100, 49, 80), 1),
        ((100, 50, 100), 0),
        ((100, 10, 10, 80), 1),
        ((100, 10, 10, 10, 100), 0),
        ((100, 10, 79, 79), 0),
        ((100, 10), 0),
        ((0, 0, 100), 0),
    ],
)
def test_a_dip_is_below_half_and_back_to_four_fifths_within_two_hours(rates: tuple[float, ...], dips: int) -> None:
    assert load_of(group("billing", topic(of=hours(len(rates), lambda hour: rates[hour])))).dips == dips


def test_what_commits_jumped_is_no_work_that_a_member_did() -> None:
    of = group("billing", topic(of=hours(production=lambda _: 10.0, members_max=2)))
    in_one_hour = np.zeros(48)
    in_one_hour[3] = 30_000
    (calm, disturbed, unsure, unknown) = (
        load_of(replace(of, jumped=jumped)).at_least
        for jumped in (np.zeros(48), in_one_hour, np.full(48, 30_000.0), np.full(48, 70_000.0))
    )

    assert calm == disturbed == pytest.approx(5)
    assert unsure == pytest.approx(6000 / 3600 / 2)
    assert unknown == 0


def test_members_that_were_not_counted_may_have_been_one_for_each_partition() -> None:
    load = load_of(group("billing", topic(of=hours(production=lambda _: 12.0, members_max=float("nan"), partitions=6))))

    assert load.per_member == pytest.approx(2)


def test_a_capacity_that_was_learned_counts() -> None:
    assert load_of(group(capacity=saturated(60, per_member=70))).per_member == 70


def test_an_hour_that_is_hardly_covered_has_no_say_in_the_rates() -> None:
    load = load_of(group("billing", topic(of=hours(production=lambda _: 10, covered_seconds=600))))

    assert math.isnan(load.peak)
    assert load.idle_share == 0
    assert load.covered_seconds == 48 * 600


def test_a_gap_is_no_time_that_was_seen() -> None:
    load = load_of(group("billing", topic(of=hours(number=4, covered_seconds=3 * 86400))))

    assert load.covered_seconds == 4 * 3600


def test_a_capacity_is_never_raised_to_what_a_member_did_in_its_best_hour() -> None:
    """By day members do 8/s, at night 20/s: whoever counts on 20/s by day waits for ever."""
    load = load_of(group("billing", topic(of=hours(production=lambda _: 40)), capacity=saturated(10, per_member=8)))

    assert (load.at_least, load.per_member) == (20, 8)
