"""How topics are divided into parts by what footers say of their rows."""

from random import Random

import pytest

from spark.tables.topic_parts import WHOLE, GroupOfRows, Names, Part, bounds_of, most_rows, parts_between


def topic(number: int) -> Names:
    return "main", f"g{number // 5:03}", f"t{number:03}"


def groups(*rows: int, topics: int = 1) -> list[GroupOfRows]:
    """As of a file whose rows are in order, each with so many topics."""
    return [
        GroupOfRows(topic(topics * number), topic(topics * (number + 1) - 1), of_group)
        for number, of_group in enumerate(rows)
    ]


def test_parts_have_about_as_many_rows_as_each_other() -> None:
    of_file = groups(*[10] * 100, topics=3)

    bounds = bounds_of(of_file * 12, 2500)

    assert len(bounds) == 4
    assert [sum(part.has(group.first) for group in of_file) for part in parts_between(bounds)] == [20] * 5


def test_no_part_has_only_some_of_the_rows_of_a_group_if_groups_share_no_topic() -> None:
    of_file = groups(*(Random(4).randint(1, 50) for _ in range(200)), topics=7)  # noqa: S311 -- no secret

    parts = parts_between(bounds_of(of_file, 300))

    assert len(parts) > 10
    assert all(part.has(group.first) == part.has(group.last) for part in parts for group in of_file)


@pytest.mark.parametrize(
    "of_file",
    [[], groups(10, 10), groups(1000), [GroupOfRows(topic(0), topic(99), 10)] * 9],
    ids=["no rows", "few", "one topic", "rows in no order"],
)
def test_what_needs_no_parts_or_can_have_none_is_whole(of_file: list[GroupOfRows]) -> None:
    assert bounds_of(of_file, 20) == ()
    assert parts_between(()) == [WHOLE]


def test_the_largest_part_decides_whether_bounds_still_serve() -> None:
    bounds = bounds_of(groups(*[10] * 9), 30)

    assert most_rows(groups(*[10] * 9), bounds) == 30
    assert most_rows(groups(*[10] * 6, 10, 70, 10), bounds) == 90


def test_parts_overlap_where_a_topic_can_be_in_both() -> None:
    first, other, last = parts_between((topic(2), topic(5)))

    assert not first.overlaps(other)
    assert not last.overlaps(other)
    assert all(part.overlaps(WHOLE) and WHOLE.overlaps(part) for part in (first, other, last))
    assert Part(topic(1), topic(3)).overlaps(first)
    assert Part(topic(1), topic(3)).overlaps(other)
    assert not Part(topic(1), topic(3)).overlaps(last)
