"""Which files of samples a process reads after a restart: few, and of each age one."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from adapter.history.reading.choice import SampleFile, chosen, contradicted, sample_file_at
from adapter.history.writer import path_for

NOW = 1_795_003_000.0
DEPTH = 40_000.0


def file(age: float, writer: str = "pod-1", run: int = 1) -> SampleFile:
    """As the adapter names it: its first sample is so many seconds old."""
    made = sample_file_at(path_for(writer, round((NOW - age) * 1e6), run))
    assert made is not None
    return made


def ages(files: Sequence[SampleFile]) -> list[float]:
    return [round(NOW - each.first) for each in files]


def test_a_name_says_who_wrote_the_file_and_when_its_samples_begin() -> None:
    named = sample_file_at("samples/date=2026-11-18/hour=11/pod-1-ab-clock2-20261118T115640.500000Z.parquet")
    assert named is not None

    assert named[1:4] == ("pod-1-ab-clock2", "pod-1-ab", 2)
    assert datetime.fromtimestamp(named.first, UTC) == datetime(2026, 11, 18, 11, 56, 40, 500_000, UTC)
    assert sample_file_at("samples/date=2026-11-18/hour=11/export.parquet") is None


def test_of_eleven_hours_a_few_files_are_read_and_of_each_age_one() -> None:
    read = ages(chosen([file(300 * number + 10) for number in range(130)], NOW, DEPTH))

    assert len(read) <= 26
    assert all(older <= 1.25 * newer + 600 for older, newer in pairwise(read))
    assert (read[0], read[-1]) == (38_710, 10)


def test_all_files_of_the_last_five_minutes_are_read() -> None:
    read = ages(chosen([file(40 * number) for number in range(100)], NOW, DEPTH))

    assert read[-8:] == [280, 240, 200, 160, 120, 80, 40, 0]


def test_files_that_are_too_old_or_begun_after_the_start_are_not_read() -> None:
    assert ages(chosen([file(DEPTH + 1), file(500), file(-5)], NOW, DEPTH)) == [500]


def test_the_files_of_all_writers_of_a_time_are_read() -> None:
    two = [file(600 * number + 100 * (writer == "b"), writer) for number in range(4) for writer in ("a", "b")]

    assert {each.writer for each in chosen(two, NOW, DEPTH) if NOW - each.first < 1000} == {"a", "b"}


def test_of_many_processes_that_ended_soon_the_newest_eight_and_one_of_each_age_are_read() -> None:
    crashing = [file(600 + 10 * number, f"pod-{number}") for number in range(200)]

    assert len(chosen(crashing, NOW, DEPTH)) <= 8 + 10


@given(st.lists(st.floats(0, DEPTH - 1), min_size=1, max_size=60, unique=True))
def test_the_first_and_the_last_file_are_always_read(begun: list[float]) -> None:
    files = [file(age) for age in begun]
    read = chosen(files, NOW, DEPTH)

    assert (read[0].first, read[-1].first) == (min(each.first for each in files), max(each.first for each in files))


def test_a_clock_that_was_set_or_is_ahead_is_contradicted() -> None:
    files = [file(900), file(600, run=2), file(300, "pod-2"), file(-60, "pod-3")]

    assert contradicted(files, NOW) == {"pod-1", "pod-3"}
