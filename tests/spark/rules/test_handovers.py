"""Two writers whose clocks differ: what seems to go down where one follows the other is no event."""

from pathlib import Path

import pytest

from tests.support.history.compacting import compacted
from tests.support.history.written_history import Row, read, sample, write

MINUTE = 60
HOUR = 3600


def changes(root: Path, first: list[Row], second: list[Row]) -> list[dict[str, object]]:
    """Of each sample of both writers, in order of time, what the deltas say of it."""
    write(root, first, "adapter-a")
    write(root, second, "adapter-b")
    compacted(root)
    deltas = sorted(read(root, "deltas"), key=lambda row: str(row["sampled_at"]))
    names = ("produced", "consumed", "is_reset", "is_rewind", "is_skip")
    return [{name: row[name] for name in names} for row in deltas]


NOTHING = {"produced": None, "consumed": None, "is_reset": False, "is_rewind": False, "is_skip": False}


@pytest.mark.parametrize("hour", [0, 1])
def test_what_goes_down_at_a_change_of_writer_is_no_reset_and_no_rewind(tmp_path: Path, hour: int) -> None:
    """The second writer's clock is ahead by some seconds; also where an hour begins with it."""
    at = hour * HOUR + (0 if hour else MINUTE)
    first, second = [sample(at - 10, 100, 200)], [sample(at, 90, 190), sample(at + 10, 100, 200)]

    assert changes(tmp_path, first, second)[1:] == [
        NOTHING,
        {"produced": 10, "consumed": 10, "is_reset": False, "is_rewind": False, "is_skip": False},
    ]


def test_a_jump_past_the_log_end_at_a_change_of_writer_is_no_skip(tmp_path: Path) -> None:
    first, second = [sample(MINUTE - 10, 100, 200)], [sample(MINUTE, 205, 202)]

    assert changes(tmp_path, first, second)[1] == NOTHING | {"produced": 2}


def test_after_more_than_three_intervals_it_is_an_event(tmp_path: Path) -> None:
    first = [sample(MINUTE - 10, 100, 200)]

    assert changes(tmp_path / "3", first, [sample(MINUTE + 20, 90, 190)])[1]["is_reset"] is False
    assert changes(tmp_path / "4", first, [sample(MINUTE + 21, 90, 190)])[1] == NOTHING | {
        "is_reset": True,
        "is_rewind": True,
    }


def test_of_one_writer_it_is_always_an_event(tmp_path: Path) -> None:
    rows = [sample(0, 100, 200), sample(10, 90, 190)]
    write(tmp_path, rows)

    compacted(tmp_path)

    assert [row["rewinds"] for row in read(tmp_path, "daily")] == [1]


def test_a_wait_goes_on_where_the_log_end_seems_to_fall(tmp_path: Path) -> None:
    write(tmp_path, [sample(at, 20, at) for at in range(0, MINUTE, 10)], "adapter-a")
    write(tmp_path, [sample(at + MINUTE, 20, at + 45) for at in range(0, MINUTE, 10)], "adapter-b")

    compacted(tmp_path)

    totals = sorted(read(tmp_path, "totals"), key=lambda row: str(row["sampled_at"]))
    assert [row["wait_seconds"] for row in totals[2:]] == list(range(0, 100, 10))
    assert not any(row["wait_is_bound"] for row in totals)
