import numpy as np

from spark.figures.periods import between as cut
from spark.figures.periods import silent_between
from tests.support.history.report_groups import MONDAY, hours


def hour(number: int) -> np.datetime64:
    return np.datetime64(MONDAY.replace(tzinfo=None), "us") + np.timedelta64(number, "h")


def test_silent_are_the_hours_that_nobody_has() -> None:
    some, others = hours(number=6), hours(number=9)
    keep = np.array([True, False, False, True, False, False])

    silent = silent_between([cut(some, keep), cut(others, np.arange(9) == 8)])

    assert silent.tolist() == [hour(number).tolist() for number in (1, 2, 4, 5, 6, 7)]


def test_of_nothing_nothing_is_silent() -> None:
    assert len(silent_between([])) == 0
    assert len(silent_between([hours(number=1)])) == 0
