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


def some_have(lags: dict[int, int], produced: int = 1000, others: int = 10) -> list[Row]:
    """Eight partitions, each with its own member."""
    return [
        partition(number, lags.get(number, others), produced if number in lags else 1000, owner=f"m-{number}")
        for number in range(8)
    ]


def test_a_partition_that_has_the_lag_of_a_topic_is_slow_since_the_first_such_hour() -> None:
    slow = topics_of(one_has(0), one_has(500, owner="m-1"), one_has(900, owner="m-1"))["orders"]["slow"]

    assert (slow["partitions"], slow["hours"], slow["lag"], slow["owners"]) == ([2], 2, 900, ["m-1"])
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


@pytest.mark.parametrize(
    "lags",
    [{1: 500, 6: 300}, {1: 500, 4: 400, 6: 300}, {1: 500, 4: 300, 6: 100}],
    ids=["two", "three", "a third one that has less, and the others far less"],
)
def test_a_few_partitions_that_have_the_lag_together_are_slow_together(lags: dict[int, int]) -> None:
    slow = topics_of(some_have(lags), some_have(lags))["orders"]["slow"]
    total = sum(lags.values())

    assert (slow["partitions"], slow["hours"], slow["lag"]) == (list(lags), 2, total)
    assert slow["owners"] == [f"m-{number}" for number in lags]
    assert slow["lag_share"] == pytest.approx(total / (total + 10 * (8 - len(lags))))
    assert slow["produced_share"] == pytest.approx(len(lags) / 8)


@pytest.mark.parametrize(
    "hour",
    [
        some_have({1: 500, 2: 500, 4: 500, 6: 500}),
        some_have({1: 500, 6: 300}, others=80),
        some_have({1: 60, 6: 30}, others=1),
        some_have({1: 500, 6: 300}, produced=9000),
        [partition(number, 500 if number < 2 else 1) for number in range(3)],
    ],
    ids=["four of them", "not far above the others", "below the threshold", "hot", "more than half of them"],
)
def test_many_partitions_or_those_that_differ_little_or_get_much_are_not_slow_together(hour: list[Row]) -> None:
    assert topics_of(hour, hour)["orders"]["slow"] is None


def test_a_second_slow_partition_joins_the_incident_of_the_first() -> None:
    slow = topics_of(some_have({1: 500}), some_have({1: 700, 6: 600}), some_have({6: 900}))["orders"]["slow"]

    assert (slow["partitions"], slow["since"], slow["hours"]) == ([1, 6], START, 3)
    assert (slow["lag"], slow["owners"]) == (1300, ["m-1", "m-6"])


def test_a_second_slow_partition_is_named_while_the_first_has_nearly_all_of_the_lag() -> None:
    """It has more than its share of the threshold, and the others have far less."""
    late, small = some_have({1: 900, 6: 60}), some_have({1: 900, 6: 12}, others=1)

    assert topics_of(some_have({1: 500}), late)["orders"]["slow"]["partitions"] == [1, 6]
    assert topics_of(small, small)["orders"]["slow"]["partitions"] == [1]


def test_slow_partitions_of_which_one_has_no_known_member_name_none() -> None:
    """Otherwise the one that is known would seem to read all of them."""
    hour = [row | {"owner": None if row["partition"] == 6 else row["owner"]} for row in some_have({1: 500, 6: 300})]
    slow = topics_of(some_have({1: 500, 6: 300}), hour)["orders"]["slow"]

    assert (slow["partitions"], slow["owners"]) == ([1, 6], [])


def test_another_partition_or_a_pause_of_hours_begins_another_incident() -> None:
    late = topics_of(one_has(500), *[one_has(0)] * 3, one_has(500))["orders"]["slow"]
    other = topics_of(one_has(500), one_has(500, which=1))["orders"]["slow"]
    same = topics_of(one_has(500), *[one_has(0)] * 2, one_has(500))["orders"]["slow"]

    assert (late["since"], late["hours"]) == (START + timedelta(hours=4), 1)
    assert (other["partitions"], other["hours"]) == ([1], 1)
    assert (same["since"], same["hours"]) == (START, 2)


def beside(*old: Row) -> list[Row]:
    """A topic that a member reads, and another one."""
    return [partition(0, owner="m-0"), *(row | {"topic": "old"} for row in old)]


def test_a_topic_without_an_owner_beside_one_with_owners_is_unread() -> None:
    read, unread = partition(0, owner="m-1"), partition(0, 90, produced=70, consumed=0)
    found = topics_of(beside(read), beside(unread), beside(unread))

    since = START + timedelta(hours=1)
    assert found["old"]["unread"] == {"since": since, "produced": 140, "lag": 90, "was_read": True}
    assert found["orders"]["unread"] is None


@pytest.mark.parametrize(("minutes", "since"), [(20, 20), (-45, 60)], ids=["in the hour before", "long before"])
def test_a_topic_is_unread_since_its_last_commit_that_moved(minutes: int, since: int) -> None:
    """In an hour at whose end it has no owner any more."""
    left = partition(0, 5, moved_at=START + timedelta(minutes=minutes))
    unread = topics_of(beside(left), beside(partition(0, 90, consumed=0)))["old"]["unread"]

    assert unread["since"] == START + timedelta(minutes=since)


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
