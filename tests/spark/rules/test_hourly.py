import numpy as np

from spark.rules.hourly import steepest_of
from spark.tables.columns import TableRows

MINUTE = 60_000_000


def totals(produced: list[int], seconds: float = 60.0) -> TableRows:
    """A sample a minute of one topic."""
    columns = {
        "sampled_at": np.arange(len(produced), dtype=np.int64) * MINUTE,
        "produced": np.array(produced, np.int64),
        "seconds": np.full(len(produced), seconds),
    }
    return TableRows(columns, {})


def test_a_burst_of_five_minutes_is_not_hidden_by_its_hour() -> None:
    """At twenty times the rate of the other minutes; the hour's mean is 2.6 times."""
    burst = [600] * 15 + [12_000] * 5 + [600] * 40

    assert steepest_of(totals(burst), np.array([0])).tolist() == [200]


def test_five_minutes_that_are_hardly_covered_do_not_count() -> None:
    assert steepest_of(totals([100] * 5 + [9000, 9000]), np.array([0])).tolist() == [100 / 60]
    assert np.isnan(steepest_of(totals([9000]), np.array([0]))).all()
    assert np.isnan(steepest_of(totals([-1] * 60), np.array([0]))).all()


def test_each_topic_has_its_own() -> None:
    assert steepest_of(totals([60] * 60 + [120] * 60), np.array([0, 60])).tolist() == [1, 2]
    assert len(steepest_of(totals([]), np.array([], np.int64))) == 0
