"""What hours say of a range: each question is asked once, of several topics at a time."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark.figures.agreement import Agreement
from spark.figures.model import NUMBERS, Periods
from spark.figures.periods import between
from spark.folds.lag_statistics import STATISTICS
from spark.report.assembly import expected_of, jumps_of, periods_by_key, threshold_of
from spark.report.group_file import Agreements
from spark.report.range_figures import hours_in, hours_of_groups, topics_of
from spark.tables.columns import TableRows
from tests.support.history.report_groups import MONDAY, hours, together

NAN = float("nan")


def hours_of(topics: dict[tuple[str, str], Periods]) -> TableRows:
    """Group and topic -> its hours, as the hourly table has them."""
    return hours_in(pa.concat_tables([table(*names, of) for names, of in topics.items()]))


def table(group: str, topic: str, of: Periods) -> pa.Table:
    names = {"cluster": ["main"] * len(of), "group": [group] * len(of), "topic": [topic] * len(of)}
    numbers = {name: pa.array(getattr(of, name), from_pandas=True) for name in NUMBERS}
    return pa.table({**names, "hour": pa.array(of.start, pa.timestamp("us", tz="UTC")), **numbers})


def jumps(of: dict[str, list[tuple[int, float]]]) -> pa.Table:
    """Group -> hour and messages."""
    rows = [
        {
            "cluster": "main",
            "group": group,
            "jumps": [{"hour": at(hour), "messages": messages} for hour, messages in each],
        }
        for group, each in of.items()
    ]
    return jumps_of(pa.Table.from_pylist(rows, STATISTICS))


def at(hour: int) -> datetime:
    return MONDAY + timedelta(hours=hour)


def changed(of: Periods, change: Callable[[Periods], Any]) -> Periods:
    change(of)
    return of


def by_group(rows: pa.Table, column: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows.sort_by("hour").to_pylist():
        found.setdefault(row["group"], []).append(row[column])
    return found


def test_what_no_member_read_is_what_commits_jumped_and_what_may_be_of_an_unknown_hour() -> None:
    """An hour after one of which less than half is known may contain that one's messages, if it has a sample itself."""
    late = hours(6)
    late.samples[:] = [360, 0, 170, 360, 181, 360]
    apart = between(late, np.array([True, True, False, True, True, True]))
    topics = {
        ("quiet", "a"): hours(6),
        ("jumps", "a"): hours(4),
        ("late", "a"): late,
        ("late in two topics", "a"): late,
        ("late in two topics", "b"): late,
        ("late with a hole", "a"): apart,
        ("never known", "a"): hours(3, samples=0),
    }
    moved = jumps({"none": [], "jumps": [(1, 50.0), (3, 300.0), (9, 7.0)], "late": [(2, 5.0)]})
    found = hours_of_groups(hours_of(topics), moved)

    assert by_group(found, "jumped") == {
        "quiet": [0] * 6,
        "jumps": [0, 50, 0, 300],
        "late": [0, 0, 36_005, 36_000, 0, 0],
        "late in two topics": [0, 0, 72_000, 72_000, 0, 0],
        "late with a hole": [0] * 5,
        "never known": [0, 0, 0],
    }


def test_a_group_s_hours_have_its_topics_counts_together_and_the_largest_of_all_else() -> None:
    some, others = hours(5, lag=lambda hour: 10.0 * hour), hours(7, lag=lambda hour: 30.0 - hour, members_max=3)
    some.produced[2], others.lag_p50[1], some.skew[:] = NAN, NAN, NAN
    topics = {("billing", "a"): some, ("billing", "b"): others}
    rows = hours_of_groups(hours_of(topics), jumps({}))
    (found,) = periods_by_key(rows.append_column("topic", pa.array([""] * len(rows))), "hour").values()
    wanted = together([some, others])

    for name in ("start", *NUMBERS):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), name)


def test_the_busiest_hour_is_the_newest_one_with_the_highest_rate_and_not_one_that_counts_a_gap() -> None:
    topics = {
        ("a gap, and a minute", "t"): hours(5, production=lambda hour: 10.0 + hour),
        ("one rate, the newest shorter", "t"): hours(4),
        ("hardly covered", "t"): hours(3, production=lambda hour: 1.0 + hour, covered_seconds=60),
        ("nothing produced", "t"): hours(3, production=lambda _: 0.0),
        ("not known", "t"): hours(3, production=lambda _: NAN),
    }
    gap, equal, *_ = topics.values()
    gap.produced[1], gap.covered_seconds[1] = 9 * 36_000, 9 * 3600
    gap.produced[4], gap.covered_seconds[4] = 3_000, 60
    equal.produced[3], equal.covered_seconds[3] = 30_000, 3_000
    found = topics_of(hours_of(topics))

    assert {row["group"]: row["busiest_hour"] for row in found.to_pylist()} == {
        "a gap, and a minute": at(3),
        "one rate, the newest shorter": at(2),
        "hardly covered": at(2),
        "nothing produced": None,
        "not known": None,
    }


def test_a_topic_has_its_busiest_rate_and_the_interval_of_its_newest_hour() -> None:
    topics = {
        ("busy", "t"): hours(4, production=lambda hour: 10.0 + hour),
        ("idle", "t"): hours(4, production=lambda _: 0.0),
        ("not covered", "t"): hours(4, covered_seconds=0),
        ("rare", "t"): hours(2, expected_samples=60),
        ("none is promised", "t"): hours(2, expected_samples=0),
    }
    topics["rare", "t"].expected_samples[1] = 0
    rows = topics_of(hours_of(topics)).to_pylist()
    unknown = rows.pop([row["group"] for row in rows].index("none is promised"))

    assert np.isnan(unknown["interval_seconds"])
    assert {row["group"]: (row["busiest_rate"], row["interval_seconds"]) for row in rows} == {
        "busy": (13, 10),
        "idle": (None, 10),
        "not covered": (None, 10),
        "rare": (10, 60),
    }


@pytest.mark.parametrize(("intervals", "wait"), [([NAN, 60.0], 90), ([NAN, NAN], 60)])
def test_without_an_agreement_the_wait_follows_from_the_intervals_that_are_known_or_from_the_adapters_default(
    intervals: list[float], wait: float
) -> None:
    rows = {"cluster": ["main"] * 2, "group": ["billing"] * 2, "topic": ["orders", "returns"]}
    others = {"interval_seconds": intervals, "expected_samples": [60, 0], "busiest_rate": [2.0, 1.0]}
    expected = expected_of(pa.table({**rows, **others}), Agreements())

    assert [it.threshold for it in expected] == [2 * wait, wait]


@pytest.mark.parametrize(
    ("rate", "agreement", "threshold"),
    [
        (13.0, Agreement(), 780),
        (13.0, Agreement(max_wait_seconds=300), 3900),
        (0.001, Agreement(), 1),
        (None, Agreement(), 1),
        (13.0, Agreement(threshold=0), 0),
        (13.0, Agreement(threshold=9, thresholds={"t": 7}), 7),
        (13.0, Agreement(threshold=9, thresholds={"u": 7}), 9),
    ],
)
def test_a_threshold_is_what_the_busiest_hour_produces_in_the_agreed_wait_unless_it_is_given(
    rate: float | None, agreement: Agreement, threshold: int
) -> None:
    assert threshold_of({"topic": "t", "busiest_rate": rate}, agreement) == threshold
