from datetime import timedelta

from spark.report.gather import _starts
from tests.support.history.report_groups import MONDAY, hours


def test_of_a_year_only_the_samples_of_the_newest_31_days_are_read() -> None:
    starts = _starts([hours(365 * 24), hours(30 * 24)])

    assert len(starts) == 31 * 24
    assert starts[-1] == MONDAY + timedelta(days=365, hours=-1)
    assert len(_starts([hours(9), hours(5, since=MONDAY + timedelta(hours=8))])) == 13
