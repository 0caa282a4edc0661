"""What hours of partitions show of each topic: slow, unread and hot partitions, and messages without a commit."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from adapter.history.arrow import ARROW_TYPES
from spark.folds.partition_progress import COLUMNS, progress_of
from spark.folds.topic_samples import Topics
from spark.tables.columns import rows_of

START = datetime(2026, 6, 1, tzinfo=UTC)
SCHEMA = pa.schema([pa.field(column.name, ARROW_TYPES[column.type]) for column in COLUMNS])
Row = dict[str, Any]


def partition(number: int, lag: int = 0, produced: int = 1000, topic: str = "orders", **other: object) -> Row:
    row = {"cluster": "main", "group": "billing", "topic": topic, "partition": number, "seconds": 3600.0}
    row |= {"produced": produced, "consumed": produced, "lag_max": lag, "moved_at": None, "uncommitted_lag": None}
    return {**row, "owner": None, **other}


def topics_of(*hours: Sequence[Row]) -> dict[str, Row]:
    """Of whole hours from START, with a threshold of 100 messages."""
    dated = [[row | {"starts_at": START + timedelta(hours=at)} for row in hour] for at, hour in enumerate(hours)]
    keys = sorted({(row["cluster"], row["group"], row["topic"]) for hour in dated for row in hour})
    tables = (rows_of(pa.Table.from_pylist(hour, SCHEMA), COLUMNS) for hour in dated)
    found = progress_of(tables, Topics(keys, np.full(len(keys), 100)))
    return {row["topic"]: row for row in found.to_pylist()}


def one_has(lag: int, which: int = 2, owner: str | None = None) -> list[Row]:
    """Four partitions; the others have a lag of ten messages each."""
    return [partition(number, lag if number == which else 10, owner=owner) for number in range(4)]


def test_a_partition_that_has_the_lag_of_a_topic_is_slow_since_the_first_such_hour() -> None:
    slow = topics_of(one_has(0), one_has(500, owner="m-1"), one_has(900, owner="m-1"))["orders"]["slow"]

    assert (slow["partition"], slow["hours"], slow["lag"], slow["owner"]) == (2, 2, 900, "m-1")
    assert (slow["since"], slow["until"]) == (START + timedelta(hours=1), START + timedelta(hours=3))
    assert (slow["lag_share"], slow["produced_share"]) == (pytest.approx(900 / 930), 0.25)


@pytest.mark.parametrize(
    "hour",
    [
        one_has(90),
        [partition(number, 500) for number in range(4)],
        [partition(0, 500)],
        [partition(number, 500 if number == 2 else 10, 9000 if number == 2 else 1000) for number in range(4)],
    ],
    ids=["below the threshold", "all of them", "the only one", "hot"],
)
def test_a_lag_that_is_small_or_shared_or_that_of_a_hot_partition_makes_none_slow(hour: list[Row]) -> None:
    assert topics_of(hour, hour)["orders"]["slow"] is None


def test_another_partition_or_a_pause_of_hours_begins_another_incident() -> None:
    late = topics_of(one_has(500), *[one_has(0)] * 3, one_has(500))["orders"]["slow"]
    other = topics_of(one_has(500), one_has(500, which=1))["orders"]["slow"]
    same = topics_of(one_has(500), *[one_has(0)] * 2, one_has(500))["orders"]["slow"]

    assert (late["since"], late["hours"]) == (START + timedelta(hours=4), 1)
    assert (other["partition"], other["hours"]) == (1, 1)
    assert (same["since"], same["hours"]) == (START, 2)


def beside(*old: Row) -> list[Row]:
    """A topic that a member reads, and another one."""
    return [partition(0, owner="m-0"), *(row | {"topic": "old"} for row in old)]


def test_a_topic_without_an_owner_beside_one_with_owners_is_unread() -> None:
    read, unread = partition(0, owner="m-1"), partition(0, produced=70, consumed=0)
    found = topics_of(beside(read), beside(unread), beside(unread))

    assert found["old"]["unread"] == {"since": START + timedelta(hours=1), "produced": 140, "was_read": True}
    assert found["orders"]["unread"] is None


@pytest.mark.parametrize(
    "hours",
    [
        [beside(partition(0, consumed=0)), beside(partition(0, owner="m-1"))],
        [beside(partition(0))],
        [[partition(0, topic="old", consumed=0)]],
    ],
    ids=["read again", "consumed without an owner", "no owner is known at all"],
)
def test_a_topic_is_not_unread_if_it_is_read_or_nobody_knows(hours: list[list[Row]]) -> None:
    assert topics_of(*hours)["old"]["unread"] is None


def test_the_hottest_partitions_are_counted_by_hour() -> None:
    def hot(which: int) -> list[Row]:
        return [partition(number, produced=9000 if number == which else 1000) for number in range(4)]

    few = [partition(number, produced=30 if number == 0 else 1) for number in range(4)]
    found = topics_of(few, hot(1), hot(2), hot(1), one_has(0))["orders"]["hot"]

    assert found == {
        "hours": 3,
        "partition": 1,
        "most_hours": 2,
        "partitions": 2,
        "since": START + timedelta(hours=1),
    }


def test_messages_without_a_commit_count_from_the_hour_in_which_there_was_none() -> None:
    def of(uncommitted: int | None) -> list[Row]:
        return [partition(0), partition(1, produced=50, uncommitted_lag=uncommitted)]

    never, once, since = topics_of(of(0), of(0)), topics_of(of(0), of(None)), topics_of(of(0), of(None), of(0))
    figures = [(it["orders"]["uncommitted_produced"], it["orders"]["uncommitted_since"]) for it in (never, once, since)]

    assert figures == [(100, START), (0, None), (50, START + timedelta(hours=2))]
