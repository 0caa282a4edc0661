"""How members came and went, and how often something happened to a group as a whole."""

from collections.abc import Sequence
from datetime import timedelta

from tests.spark.folds.test_lag_statistics import START, Row, sample, statistics


def group_of(rows: Sequence[Row]) -> Row:
    (group,) = statistics(rows).values()
    return group


def members(*numbers: int | None, begin: int = 0, topic: str = "t") -> list[Row]:
    return [sample(topic, begin + 10.0 * at, 5, members=number) for at, number in enumerate(numbers)]


def test_an_hour_has_the_changes_of_members_and_the_time_without_any() -> None:
    found = group_of(members(2, 2, 0, 0, 3, None, 3, 2))["members"]

    assert found == [{"hour": START, "changes": 3, "without_seconds": 20, "fewest": 0, "most": 3}]


def test_a_change_between_two_hours_belongs_to_the_later_one_and_hours_without_any_are_left_out() -> None:
    found = group_of([*members(2, 2), *members(4, 4, begin=3600), *members(4, 4, begin=7200)])["members"]

    assert [(row["hour"], row["changes"]) for row in found] == [(START + timedelta(hours=1), 1)]


def test_several_topics_of_a_group_have_the_same_members() -> None:
    found = group_of([*members(2, 3, 3), *members(2, 3, 3, topic="u")])["members"]

    assert [row["changes"] for row in found] == [1]


def test_a_rewind_of_many_partitions_and_topics_is_one_event() -> None:
    rows = [
        *(sample(topic, at, 5, rewinds=4 * (at == 100)) for topic in ("t", "u") for at in range(0, 300, 10)),
        sample("t", 110 + 3600, 5, rewinds=1),
        sample("u", 120 + 3600, 5, rewinds=2),
        sample("t", 190 + 3600, 5, rewinds=1),
    ]
    found = group_of(rows)["events"]

    begin = START + timedelta(seconds=100)
    assert found == [{"kind": 1, "number": 3, "first": begin, "last": START + timedelta(seconds=3790)}]


def test_an_event_that_is_read_in_two_hours_is_one() -> None:
    found = group_of([sample("t", 3590, 5, skips=1), sample("t", 3600, 5, skips=1)])["events"]

    assert [row["number"] for row in found] == [1]
