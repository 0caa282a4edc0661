"""Which windows of a group's samples show what its members can do."""

from collections.abc import Callable, Iterator
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from spark.folds.lag_statistics import statistics_of
from spark.folds.topic_samples import COLUMNS, Topics
from spark.tables.columns import rows_of
from tests.spark.folds.test_lag_statistics import SCHEMA, START, Row, sample

HOUR = 3600.0
KEY = ("main", "billing", "t")


Course = Callable[[float], float]


def course(produced: Course, consumed: Course, wait: Course) -> Callable[[int], Iterator[Row]]:
    """An hour, sampled every 10 s, in which all partitions have a backlog; rates in messages per second."""

    def of_hour(hour: int) -> Iterator[Row]:
        for at in range(360):
            seconds = HOUR * hour + 10.0 * at
            now = int(10 * consumed(seconds))
            busy = {"waiting": 4, "waiting_consumed": now, "consumed": now, "produced": int(10 * produced(seconds))}
            yield sample("t", seconds, 9000) | busy | {"wait_seconds": wait(seconds)}

    return of_hour


def capacity(*hours: Iterator[Row], zone: str = "UTC") -> dict[str, Any] | None:
    tables = (rows_of(pa.Table.from_pylist(list(hour), SCHEMA), COLUMNS) for hour in hours)
    found = statistics_of(tables, Topics([KEY], np.array([1]), ZoneInfo(zone)))
    (row,) = found.to_pylist()
    learned: dict[str, Any] | None = row["capacity"]
    return learned


def wave(seconds: float) -> float:
    """Between 10/s and 50/s, every hour anew."""
    return 30 + 20 * float(np.sin(2 * np.pi * seconds / HOUR))


def test_a_group_that_reads_ten_minutes_late_is_not_saturated() -> None:
    late = course(wave, lambda at: wave(at - 600), lambda at: 600 + at % 20)

    assert capacity(late(0), late(1)) is None


@pytest.mark.parametrize(
    ("production", "wait"), [(40.0, lambda at: 600 + at / 2), (10.0, lambda at: 7200 - at), (20.0, lambda at: at / 10)]
)
def test_a_group_whose_wait_grows_or_falls_is_saturated(production: float, wait: Course) -> None:
    found = capacity(course(lambda _: production, lambda _: 20.0, wait)(0))

    assert found is not None
    assert (found["windows"], found["p25"]) == (60, 10)


@pytest.mark.parametrize(("production", "windows"), [(100.0, 60), (21.0, None), (0.0, 60)])
def test_without_a_known_wait_what_was_produced_shows_who_only_follows(production: float, windows: int | None) -> None:
    found = capacity(course(lambda _: production, lambda _: 20.0, lambda _: np.nan)(0))

    assert (found and found["windows"]) == windows


def test_hours_of_the_day_are_those_of_the_zone() -> None:
    """The history begins at 00:00 UTC, where it is 05:30 in India."""
    busy = course(lambda _: 10.0, lambda _: 20.0, lambda at: 7200 - at)
    utc, india = (capacity(busy(0), zone=zone) for zone in ("UTC", "Asia/Kolkata"))

    assert utc is not None
    assert india is not None
    assert utc["windows_by_hour"][0] == 60
    assert india["windows_by_hour"][5:7] == [30, 30]


def test_a_partition_that_stands_still_beside_others_that_are_read_is_no_slow_work() -> None:
    """One of four partitions has a backlog, and nothing is read from it."""
    still = (row | {"waiting": 1, "waiting_consumed": 0} for row in course(wave, wave, lambda at: at)(0))

    assert capacity(still) is None


def scaled(members: Course, of_each: Course) -> Callable[[int], Iterator[Row]]:
    """Messages always wait for a minute or so, as behind an autoscaler that goes by the lag."""

    def of_hour(hour: int) -> Iterator[Row]:
        def read(at: float) -> float:
            return members(at) * of_each(at)

        for row in course(read, read, lambda at: 60 + at % 20)(hour):
            yield row | {"members": int(members((row["sampled_at"] - START).total_seconds()))}

    return of_hour


def in_turn(at: float) -> float:
    """From one member to four and back, in steps of ten minutes."""
    return (1.0, 2.0, 3.0, 4.0, 3.0, 2.0)[int(at // 600) % 6]


def test_members_that_are_added_late_are_saturated_although_messages_always_wait_as_long() -> None:
    found = capacity(scaled(in_turn, lambda _: 25.0)(0))

    assert found is not None
    assert (found["windows"], found["p25"], found["p95"]) == (60, 25, 25)


@pytest.mark.parametrize(
    ("members", "of_each"),
    [(lambda _: 2.0, lambda at: wave(at - 600)), (in_turn, lambda at: 60 / in_turn(at)), (lambda _: 2.0, lambda _: 25)],
    ids=["as many", "whatever comes in", "as many and as much"],
)
def test_members_that_read_what_came_in_are_not_saturated_however_many_there_are(
    members: Course, of_each: Course
) -> None:
    assert capacity(scaled(members, of_each)(0)) is None
