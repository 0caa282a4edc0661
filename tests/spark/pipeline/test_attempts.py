"""Attempts that end after others have done their work, as speculative ones and those of lost workers do."""

import contextlib
import errno
import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from adapter import clock
from local.processes import wait_until
from spark.engine import tasks as engine
from spark.engine.progress import Counts, Progress
from spark.errors import TableUnreadable
from spark.pipeline import day_task, days, fold_task, hour_task, stage
from spark.pipeline.batches import BatchLimits, ExaminedHour
from spark.pipeline.compact import compact
from spark.pipeline.plan import FoundHour
from spark.pipeline.wording import announced, progress_of
from spark.storage.local import LocalFiles
from spark.storage.protocol import File
from spark.tables import layout
from spark.tables.sample_files import Sound
from tests.support.history.compacting import NOW, compacted, in_process, no_session
from tests.support.history.written_history import START, sample, write

Kernel = Callable[[Any], Any]


def contents(root: Path) -> dict[str, bytes]:
    """Of every file that readers see."""
    paths = (path for path in root.rglob("*") if path.is_file())
    found = {str(path.relative_to(root)): path.read_bytes() for path in paths}
    return {name: content for name, content in found.items() if not name.startswith(".")}


def test_second_attempts_at_any_task_change_nothing_whenever_they_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = itertools.count()
    given: list[tuple[Kernel, Sequence[Any]]] = []

    def twice(session: SparkSession, kernel: Kernel, tasks: Sequence[Any], *words: Any) -> Iterator[Any]:  # noqa: ANN401
        given.append((kernel, tasks))
        results = list(engine.arriving(session, kernel, tasks, *words))
        list(engine.arriving(session, kernel, tasks, *words))
        return iter(results)

    for module in (hour_task, fold_task, day_task):
        monkeypatch.setattr(module, "attempt", lambda: f"attempt-{next(numbers)}")
    monkeypatch.setattr(stage, "arriving", twice)
    monkeypatch.setattr(stage, "run_tasks", lambda *given: list(twice(*given)))
    monkeypatch.setattr(days, "outcomes", lambda *given: list(twice(*given)))
    write(tmp_path, [sample(at, at, 2 * at, topic=topic) for at in (0, 10, 3600, 7200) for topic in ("a", "b")])
    compacted(tmp_path, limits=BatchLimits(of_task=1))
    published = contents(tmp_path)

    for kernel, tasks in given:
        for task in tasks:
            with contextlib.suppress(TableUnreadable):  # what it starts from was the run's, which is gone
                kernel(task)

    assert {kernel.__name__ for kernel, _ in given} == {"stage_tails", "fold_tails", "make_hours", "make_day"}
    assert len(list(tmp_path.glob(".compacting-*/attempt-*"))) >= len(given)
    assert contents(tmp_path) == published
    again = compact(LocalFiles(tmp_path), no_session, NOW, NOW, lambda _: None)
    assert (again.hours, again.days) == ((), ())
    assert contents(tmp_path) == published


def test_each_core_of_one_machine_gets_one_run_of_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, list[int]]] = []

    def seen(session: SparkSession, kernel: Kernel, tasks: Sequence[Any], *words: Any) -> list[Any]:  # noqa: ANN401
        given.append((kernel.__name__, [len(task.hours) for task in tasks]))
        return engine.outcomes(session, kernel, tasks, *words)

    monkeypatch.setattr(stage, "arriving", seen)
    write(tmp_path, [sample(hour * 3600 + at, hour, 2 * hour) for hour in range(5) for at in (0, 10)])

    compacted(tmp_path, limits=BatchLimits(of_task=1), session=lambda: in_process("local[2]", 2))

    assert given == [("stage_tails", [3]), ("make_hours", [3, 2])]


def test_hours_are_published_while_later_ones_are_still_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If there are more tasks than run at once."""
    write(tmp_path, [sample(hour * 3600 + at, hour, 2 * hour) for hour in range(3) for at in (0, 10)])
    names = [path.parent.name for path in sorted(tmp_path.glob("samples/*/*/*"))]
    make = hour_task._make

    def made(task: Any, hour: Any, before: Any) -> Any:  # noqa: ANN401 -- as it is called
        if hour.name.endswith(names[-1]):
            wait_until(lambda: bool(list(tmp_path.glob(f"hours/*/{names[0]}/_record.json"))), "the first hour", 180)
        return make(task, hour, before)

    monkeypatch.setattr(hour_task, "_make", made)

    assert len(compacted(tmp_path, limits=BatchLimits(of_task=1)).hours) == 3


def test_what_arrived_before_an_error_is_published_and_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [sample(hour * 3600 + at, hour, 2 * hour) for hour in range(3) for at in (0, 10)])
    names = [str(path.parent.relative_to(tmp_path / "samples")) for path in sorted(tmp_path.glob("samples/*/*/*"))]
    make = hour_task._make

    def made(task: Any, hour: Any, before: Any) -> Any:  # noqa: ANN401 -- as it is called
        if hour.name == names[-1]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return make(task, hour, before)

    with monkeypatch.context() as patched:
        patched.setattr(hour_task, "_make", made)
        with pytest.raises(OSError, match="No space left"):
            compacted(tmp_path, limits=BatchLimits(of_task=1))

    assert sorted(str(path.relative_to(tmp_path / "hours")) for path in tmp_path.glob("hours/*/*")) == names[:2]
    again = compacted(tmp_path, limits=BatchLimits(of_task=1))
    assert [layout.hour_name(hour) for hour in again.hours] == names[2:]


def test_a_batch_grows_with_the_tasks_that_run_at_once() -> None:
    limits = BatchLimits()

    here, there = (
        [limits.on(cores, is_cluster=is_cluster).of_batch // 10**6 for cores in (1, 2, 8, 512)]
        for is_cluster in (False, True)
    )

    assert here == [64, 64, 256, 16384]
    assert there == [256, 512, 2048, 131072]


def test_jobs_are_described_by_what_they_make(tmp_path: Path) -> None:
    said: list[str] = []
    write(tmp_path, [sample(hour * 3600 + at, hour, 2 * hour) for hour in range(2) for at in (0, 10)])

    compacted(tmp_path, limits=BatchLimits(of_task=1), session=lambda: in_process(cores=2, said=said))

    assert said == [
        "last values of 2026-11-20 06:00\u201307:00, 2 rows",
        "starts of 2026-11-20 06:00\u201307:00, 2 rows",
        "deltas 2026-11-20 06:00\u201308:00, 4 rows",
        "hourly, daily and minutes 2026-11-20",
    ]


def test_the_line_on_a_terminal_shows_rows_hours_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([100.0, 110.0, 130.0, 400.0, 460.0])
    monkeypatch.setattr(clock, "monotonic", lambda: next(seconds))
    hours = [hour_of_rows(number, 18_000_000) for number in range(4)]
    words = progress_of(announced(hours), hours)

    shown = [words(Progress(done, 4, Counts(rows=18_000_000 * done))) for done in (0, 1, 3, 4)]

    assert shown == [
        "2026-11-20 06:00\u201310:00, 72 million rows: 0 rows, 0 of 4 hours",
        "2026-11-20 06:00\u201310:00, 72 million rows: 18,000,000 rows, 1 of 4 hours, 2 min left",
        "2026-11-20 06:00\u201310:00, 72 million rows: 54,000,000 rows, 3 of 4 hours, 2 min left",
        "2026-11-20 06:00\u201310:00, 72 million rows: 72,000,000 rows, 4 of 4 hours",
    ]


def hour_of_rows(number: int, rows: int) -> ExaminedHour:
    found = FoundHour(START + timedelta(hours=number), (), None)
    return ExaminedHour(found, (Sound(File("samples/a", 1), "a", rows, is_of_its_hour=True),))


def test_an_attempt_that_still_writes_when_the_run_ends_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finds_a_new_file(path: Path) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty", str(path))

    write(tmp_path, [sample(0, 1, 10)])
    monkeypatch.setattr(shutil, "rmtree", finds_a_new_file)

    assert len(compacted(tmp_path).hours) == 1
