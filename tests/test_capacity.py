import numpy as np
import pytest

from spark.advice.capacity import Capacity, capacity_of
from spark.figures.model import Windows
from tests.report_groups import NO_WINDOWS, saturated


def windows(*rows: tuple[float, float, float]) -> Windows:
    seconds, consumed, members = np.array(rows, np.float64).T
    return Windows(seconds, consumed, members)


def test_a_group_that_was_never_saturated_has_no_capacity() -> None:
    assert capacity_of(NO_WINDOWS) is None


def test_capacity_is_what_one_member_consumes_in_a_second() -> None:
    assert capacity_of(windows((60, 12_000, 4))) == Capacity(windows=1, seconds=60, p50=50, p95=50)


def test_percentiles_are_over_windows_interpolated() -> None:
    capacity = capacity_of(windows(*((60, 60 * rate, 1) for rate in (10, 20, 30, 40, 50))))

    assert capacity is not None
    assert capacity.p50 == 30
    assert capacity.p95 == pytest.approx(48)


def test_windows_without_a_member_or_a_message_teach_nothing() -> None:
    assert capacity_of(windows((60, 100, 0), (60, 0, 3), (60, 100, float("nan")))) is None


def test_ten_windows_make_a_capacity_firm() -> None:
    few, enough = capacity_of(saturated(9)), capacity_of(saturated(10))

    assert few is not None
    assert enough is not None
    assert (few.is_firm, enough.is_firm) == (False, True)
