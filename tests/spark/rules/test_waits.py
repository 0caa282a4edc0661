"""How long the oldest message has waited, by the log ends of its series, and what hours hand on for it."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.history.compacting import compacted
from tests.support.history.random_histories import LAST_OFFSET
from tests.support.history.written_history import Row, read, sample, write

HOUR = 3600


def waits(root: Path, *rows: Row) -> list[tuple[object, object]]:
    """Of each sample of the topic, in order of time: the wait, and whether it is a lower bound."""
    write(root, rows)
    compacted(root)
    totals = sorted(read(root, "totals"), key=lambda row: str(row["sampled_at"]))
    return [(row["wait_seconds"], row["wait_is_bound"]) for row in totals]


def test_the_oldest_message_came_when_the_log_end_passed_the_commit(tmp_path: Path) -> None:
    rows = [sample(0, 0, 0), sample(10, 0, 100), sample(20, 150, 200)]

    assert waits(tmp_path, *rows) == [(0, False), (10, False), (5, False)]


def test_a_message_after_a_pause_came_when_the_log_end_began_to_move(tmp_path: Path) -> None:
    rows = [sample(0, 7, 7), sample(10, 7, 7), sample(600, 7, 7), sample(610, 7, 8), sample(620, 7, 9)]

    assert waits(tmp_path, *rows)[3:] == [(10, False), (20, False)]


def test_the_wait_of_a_topic_is_that_of_the_partition_with_the_oldest_message(tmp_path: Path) -> None:
    rows = [sample(at, 0, at, partition=0) for at in (0, 10, 20)] + [sample(at, 20, 20, partition=1) for at in (0, 20)]

    assert waits(tmp_path, *rows)[-1] == (20, False)


def test_messages_from_before_the_history_have_waited_at_least_since_its_first_sample(tmp_path: Path) -> None:
    rows = [sample(0, 5, 100), sample(10, 5, 100), sample(20, 100, 110)]

    assert waits(tmp_path, *rows) == [(0, True), (10, True), (10, False)]


def test_one_lower_bound_makes_the_wait_of_the_topic_one(tmp_path: Path) -> None:
    rows = [sample(at, 0, at, partition=0) for at in (0, 10, 20)] + [sample(20, 5, 10, partition=1)]

    assert waits(tmp_path, *rows)[-1] == (20, True)


def test_after_a_reset_only_samples_of_the_new_log_count(tmp_path: Path) -> None:
    rows = [sample(0, 0, 0), sample(10, 20, 100), sample(20, 20, 50), sample(30, 20, 60), sample(40, 55, 60)]

    assert waits(tmp_path, *rows)[2:] == [(0, True), (10, True), (15, False)]


def test_a_topic_that_was_made_again_has_a_log_of_its_own(tmp_path: Path) -> None:
    rows = [sample(0, 0, 0), sample(10, 0, 100), sample(20, 50, 200, topic_id="second")]

    assert waits(tmp_path, *rows)[-1] == (0, True)


def test_deleted_messages_wait_for_nobody(tmp_path: Path) -> None:
    rows = [sample(0, 0, 0), sample(10, 0, 100), sample(20, 0, 200, log_start=150, state="truncated")]

    assert waits(tmp_path, *rows)[-1] == (5, False)


def test_without_a_known_lag_no_wait_is_known(tmp_path: Path) -> None:
    rows = [sample(0, 0, 10), sample(0, None, 10, partition=1, state="unknown")]

    assert waits(tmp_path, *rows) == [(None, False)]


@pytest.mark.parametrize("hours", [1, 2, 30])
def test_a_wait_goes_on_from_hour_to_hour(tmp_path: Path, hours: int) -> None:
    """Also over hours without a sample."""
    rows = [sample(0, 0, 0), sample(20, 10, 40), sample(hours * HOUR + 5, 10, 50)]

    assert waits(tmp_path, *rows)[-1] == (hours * HOUR, False)


def test_a_backlog_that_is_worked_off_hours_later_is_wrong_by_an_eighth_at_most(tmp_path: Path) -> None:
    """Production in steps, so that it matters between which samples a wait is found."""
    ends = {at: at // 600 * 1000 for at in range(0, 6 * HOUR, 30)}
    commits = {at: max(0, (at - 5 * HOUR) * 4) for at in ends}
    rows = [sample(at, commits[at], ends[at]) for at in ends]

    found = dict(zip(ends, waits(tmp_path, *rows), strict=True))

    late = [at for at in ends if commits[at]]
    exact = {at: at - (commits[at] // 1000 * 600 + 570 + commits[at] % 1000 / 1000 * 30) for at in late}
    assert {at: found[at][0] for at in late} == pytest.approx(exact, rel=1 / 8)
    assert {at: found[at][0] for at in late} != pytest.approx(exact, rel=1 / 1000)


@pytest.mark.parametrize(("hours", "most"), [(1, 90), (24, 165)])
def test_few_log_ends_are_carried_however_long_a_partition_lags(tmp_path: Path, hours: int, most: int) -> None:
    write(tmp_path, [sample(at, 0, at) for at in range(0, hours * HOUR, 10)])

    compacted(tmp_path)

    assert 32 <= len(carried(tmp_path)) - 1 <= most


def test_of_a_group_that_keeps_up_only_what_is_on_its_way_is_carried(tmp_path: Path) -> None:
    write(tmp_path, [sample(at, max(0, at - 15), at) for at in range(0, HOUR, 10)])

    compacted(tmp_path)

    assert [row["log_end"] for row in carried(tmp_path)] == [3570, 3580, 3590]


def carried(root: Path) -> list[Row]:
    """What the last hour hands on, in order of time."""
    path = max(root.glob("hours/*/*/carry.parquet"))
    rows: list[Row] = pq.ParquetFile(path).read().to_pylist()
    return rows


def test_offsets_as_large_as_can_be_are_found_among_many_logs(tmp_path: Path) -> None:
    """Their numbers as logs and offsets have more than 64 bits."""
    least = [number % 2 * (LAST_OFFSET - 1000) for number in range(1200)]
    rows = [sample(at, low, low + at, partition=part) for part, low in enumerate(least) for at in (0, 10, 20, 30, 40)]

    assert waits(tmp_path, *rows) == [(at, False) for at in (0, 10, 20, 30, 40)]
