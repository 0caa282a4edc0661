from datetime import timedelta

import numpy as np
import pytest

from spark.advice.weeks import weeks_of
from spark.figures import formatting
from tests.support.history.report_groups import MONDAY, hours, together


def test_the_last_seven_days_stand_beside_the_seven_before() -> None:
    before = hours(168, lambda hour: 10 + 10 * (hour == 5), lambda _: 100.0)
    after = hours(168, lambda _: 30, lambda _: 50.0, since=MONDAY + timedelta(days=7))
    weeks = weeks_of(together([hours(9, since=MONDAY - timedelta(days=1)), before, after]))

    assert weeks is not None
    last, earlier = weeks
    assert (last.hours, last.production_rate, last.busiest_rate, last.lag_p95, last.lag_max) == (168, 30, 30, 75, 100)
    assert (earlier.hours, earlier.busiest_rate, earlier.lag_p95, earlier.lag_max) == (168, 20, 150, 200)
    assert earlier.production_rate == pytest.approx(10 + 10 / 168)


def test_hardly_any_hours_of_an_earlier_week_are_nothing_to_compare_with() -> None:
    assert weeks_of(hours(168 + 23)) is None
    assert weeks_of(hours(168 + 24)) is not None
    assert weeks_of(hours(0)) is None


def test_what_a_week_does_not_know_is_unknown() -> None:
    of = hours(336, covered_seconds=0)
    of.lag_p95[:] = of.lag_max[:] = of.production_rate_max[:] = np.nan
    weeks = weeks_of(of)

    assert weeks is not None
    assert np.isnan([weeks[0].production_rate, weeks[0].busiest_rate, weeks[0].lag_p95, weeks[0].lag_max]).all()


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        (3, 2, "+50\u202f%"),
        (1, 2, "-50\u202f%"),
        (2, 2, "none"),
        (0, 0, "none"),
        (1, 0, "from 0"),
        (np.nan, 1, "unknown"),
    ],
)
def test_a_change_is_in_per_cent_of_the_earlier_week(new: float, old: float, said: str) -> None:
    assert formatting.change(new, old) == said
