"""A hot partition that moves, and whether the one of the busiest hour fell behind alone."""

from dataclasses import replace

import pytest

from spark.advice.incidents.hot import falls_behind_alone
from spark.figures.model import HourShares, Share
from tests.support.history.report_groups import MONDAY, topic


@pytest.mark.parametrize(
    ("hot_consumed", "others_consumed", "is_alone"),
    [
        (100_000, 300_000, True),
        (100_000, 299_999, True),
        (100_000, 294_000, True),
        (100_000, 293_000, False),
        (199_999, 300_000, False),
        (195_000, 300_000, True),
    ],
)
def test_partitions_keep_up_that_consume_all_but_a_fiftieth(
    hot_consumed: int, others_consumed: int, *, is_alone: bool
) -> None:
    """200,000 messages in the hot partition, and 100,000 in each of three others; what is not committed is no lag."""
    hot = Share(0, 200_000, hot_consumed, 100_000)
    others = (Share(number, 100_000, others_consumed - 200_000 if number == 1 else 100_000, 0) for number in (1, 2, 3))
    of = replace(topic(threshold=600), shares=HourShares(MONDAY, (hot, *others)))

    assert falls_behind_alone(of) is is_alone
