from datetime import timedelta

import numpy as np
import pytest

from spark.figures import Jumps
from spark.report_tables import jumped_in
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


def test_a_group_without_a_jump_has_none_in_any_hour() -> None:
    assert jumped_in(hours(2), None).tolist() == [0, 0]
