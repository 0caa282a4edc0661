import numpy as np
import pyarrow as pa
import pytest

from spark.figures.periods import Wanted
from spark.trials.minutes import COLUMNS, Minutes, Shape, minutes_of

FIRST = np.datetime64("2026-11-01T10:00", "m")
EVEN = Shape(np.array([FIRST, FIRST + np.timedelta64(1, "h")], "datetime64[us]"), np.array([0.25, 0.5]))


def rows(places: list[int], produced: list[float | None]) -> pa.Table:
    """At these minutes after FIRST."""
    minute = (FIRST + np.array(places, "timedelta64[m]")).astype("datetime64[us]")
    columns = {name: pa.array([1.0] * len(places)) for name in COLUMNS} | {"produced": pa.array(produced, pa.float64())}
    return pa.table({"minute": pa.array(minute).cast(pa.timestamp("us", "UTC")), **columns})


def of(places: list[int], produced: list[float | None], shape: Shape = EVEN) -> Minutes:
    made = minutes_of([rows(places, produced)], Wanted(), shape)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("places", "produced", "spread"),
    [
        ([0, 1, 2], [6.0, 7.0, 8.0], [6, 7, 8]),
        ([0, 3, 4], [6.0, 30.0, 8.0], [6, 10, 10, 10, 8]),
        ([0, 1, 2], [6.0, None, 30.0], [6, 15, 15]),
    ],
)
def test_what_is_counted_after_a_gap_was_produced_in_all_of_its_minutes(
    places: list[int], produced: list[float | None], spread: list[float]
) -> None:
    assert of(places, produced).produced.tolist() == spread


def test_nobody_knows_what_was_produced_before_the_first_and_after_the_last_known_minute() -> None:
    assert np.isnan(of([0, 1, 2], [None, 6.0, None]).produced).tolist() == [True, False, True]


def test_the_busiest_partition_has_its_share_of_the_hour() -> None:
    skew = of([0, 59, 60, 120], [1.0] * 4).skew

    assert (skew[0], skew[59], skew[60], np.isnan(skew[120])) == (0.25, 0.25, 0.5, True)


def test_members_work_at_the_pace_of_the_hour_and_as_usual_where_it_is_not_known() -> None:
    slow = Shape(EVEN.hour, EVEN.skew, pace=np.array([1.0, 2.5]))
    pace = of([0, 60, 120], [1.0] * 3, slow).pace
    assert pace is not None

    assert pace[[0, 60, 120]].tolist() == [1, 2.5, 1]
