"""Production by the hours of zones that are not whole hours ahead of UTC, where START is 05:30 and 05:45."""

from collections.abc import Iterable
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from spark.folds.lag_statistics import statistics_of
from spark.folds.topic_samples import COLUMNS, Topics
from spark.tables.columns import rows_of
from tests.spark.folds.test_lag_statistics import SCHEMA, START, Row, sample

KEYS = [("main", "billing", topic) for topic in ("t", "u")]


def local_hours(zone: str, *hours: Iterable[Row]) -> list[Row]:
    tables = (rows_of(pa.Table.from_pylist(list(hour), SCHEMA), COLUMNS) for hour in hours)
    (row,) = statistics_of(tables, Topics(KEYS, np.array([1, 1]), ZoneInfo(zone))).to_pylist()
    found: list[Row] = row["local_hours"]
    return found


def minutes(hour: int, topic: str = "t") -> list[Row]:
    """Each produces as many messages as it is of the hour."""
    return [
        sample(topic, 3600.0 * hour + 60 * at, 5) | {"produced": at, "seconds": 60.0, "interval_seconds": 60.0}
        for at in range(60)
    ]


@pytest.mark.parametrize(("zone", "first"), [("Asia/Kolkata", 30), ("Asia/Kathmandu", 15)])
def test_hours_begin_with_those_of_the_zone(zone: str, first: int) -> None:
    """The hour that has parts of two hours of UTC has the messages of both."""
    found = local_hours(zone, minutes(0), minutes(1))
    begin = START + timedelta(minutes=first)

    assert [row["hour"] for row in found] == [begin - timedelta(hours=1), begin, begin + timedelta(hours=1)]
    late, early = sum(range(first, 60)), sum(range(first))
    assert [row["produced"] for row in found] == [early, late + early, late]
    assert [row["covered_seconds"] for row in found] == [60 * first, 3600, 3600 - 60 * first]


def test_each_topic_has_its_own() -> None:
    found = local_hours("Asia/Kolkata", [*minutes(0), *minutes(0, "u")])

    assert [row["place"] for row in found] == [0, 0, 1, 1]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_where_the_hours_of_the_tables_are_the_zones_own_nothing_is_added(zone: str) -> None:
    assert local_hours(zone, minutes(0)) == []


def test_what_is_not_known_is_not_counted_as_covered() -> None:
    unknown = sample("t", 0, None) | {"produced": None, "seconds": None}

    assert local_hours("Asia/Kolkata", [unknown]) == []
