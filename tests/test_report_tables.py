from datetime import timedelta

import numpy as np
import pytest

from spark.figures.model import Jumps
from spark.figures.periods import between
from spark.report.gather import busiest_hour, caught_up_in, jumped_in
from tests.report_groups import MONDAY, hours


def jumps(*rows: tuple[int, float, float]) -> Jumps:
    """Hour, disturbed, alone."""
    at, disturbed, alone = zip(*rows, strict=True)
    start = [np.datetime64((MONDAY + timedelta(hours=hour)).replace(tzinfo=None), "us") for hour in at]
    return Jumps(np.array(start), np.array(disturbed), np.array(alone))


@pytest.mark.parametrize(("members", "without_members"), [(2, 300), (0, 0), (float("nan"), 0)])
def test_what_moved_without_a_member_is_a_jump_only_in_a_group_that_has_members(
    members: float, without_members: float
) -> None:
    jumped = jumped_in(hours(4, members_max=members), jumps((1, 50.0, 300.0), (3, 0.0, 300.0), (9, 7.0, 7.0)))

    assert jumped.tolist() == [0, 50 + without_members, 0, without_members]


def test_what_is_consumed_after_an_hour_that_is_mostly_unknown_may_be_of_that_hour() -> None:
    of = hours(6)
    of.samples[:] = [360, 0, 170, 360, 181, 360]
    apart = between(of, np.array([True, True, False, True, True, True]))

    assert caught_up_in(of, [of]).tolist() == [0, 0, 36_000, 36_000, 0, 0]
    assert caught_up_in(of, [apart, of]).tolist() == [0, 0, 36_000, 36_000, 0, 0]
    assert caught_up_in(of, [of, of]).tolist() == [0, 0, 72_000, 72_000, 0, 0]


def test_a_topic_of_which_nothing_is_known_catches_up_with_nothing() -> None:
    of = hours(3, samples=0)

    assert caught_up_in(of, [of]).tolist() == [0, 0, 0]


def test_the_busiest_hour_is_the_one_with_the_highest_rate_and_not_one_that_counts_a_gap() -> None:
    of = hours(5, production=lambda hour: 10.0 + hour)
    of.produced[1], of.covered_seconds[1] = 9 * 36_000, 9 * 3600
    of.produced[4], of.covered_seconds[4] = 3_000, 60

    assert busiest_hour(of) == MONDAY + timedelta(hours=3)


def test_of_hours_with_one_rate_the_busiest_is_the_newest_whole_one() -> None:
    of = hours(4)
    of.produced[3], of.covered_seconds[3] = 30_000, 3_000

    assert busiest_hour(of) == MONDAY + timedelta(hours=2)


def test_the_busiest_hour_of_hardly_covered_ones_is_still_one() -> None:
    assert busiest_hour(hours(3, production=lambda hour: 1.0 + hour, covered_seconds=60)) == MONDAY + timedelta(hours=2)


@pytest.mark.parametrize("production", [0.0, float("nan")])
def test_where_nothing_was_produced_no_hour_is_the_busiest(production: float) -> None:
    assert busiest_hour(hours(3, production=lambda _: production)) is None


def test_a_group_without_a_jump_has_none_in_any_hour() -> None:
    assert jumped_in(hours(2), None).tolist() == [0, 0]
