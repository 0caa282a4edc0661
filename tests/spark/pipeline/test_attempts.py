"""Attempts that end after others have done their work, as speculative ones and those of lost workers do."""

import contextlib
import errno
import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.engine import tasks as engine
from spark.errors import TableUnreadable
from spark.pipeline import day_task, days, hour_task, stage
from spark.pipeline.batches import BatchLimits
from spark.pipeline.compact import compact
from spark.storage.local import LocalFiles
from tests.support.history.compacting import NOW, compacted, in_process, no_session
from tests.support.history.written_history import sample, write

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

    def twice(session: SparkSession, kernel: Kernel, tasks: Sequence[Any]) -> list[Any]:
        given.append((kernel, tasks))
        results = engine.outcomes(session, kernel, tasks)
        engine.outcomes(session, kernel, tasks)
        return results

    for module in (hour_task, day_task):
        monkeypatch.setattr(module, "attempt", lambda: f"attempt-{next(numbers)}")
    for module in (stage, days):
        monkeypatch.setattr(module, "outcomes", twice)
    write(tmp_path, [sample(at, at, 2 * at, topic=topic) for at in (0, 10, 3600, 7200) for topic in ("a", "b")])
    compacted(tmp_path, limits=BatchLimits(of_task=1))
    published = contents(tmp_path)

    for kernel, tasks in given:
        for task in tasks:
            with contextlib.suppress(TableUnreadable):  # what it starts from was the run's, which is gone
                kernel(task)

    assert {kernel.__name__ for kernel, _ in given} == {"stage_tails", "make_hours", "make_day"}
    assert len(list(tmp_path.glob(".compacting-*/attempt-*"))) >= len(given)
    assert contents(tmp_path) == published
    again = compact(LocalFiles(tmp_path), no_session, NOW, NOW, lambda _: None)
    assert (again.hours, again.days) == ((), ())
    assert contents(tmp_path) == published


def test_each_core_of_one_machine_gets_one_run_of_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, list[int]]] = []

    def seen(session: SparkSession, kernel: Kernel, tasks: Sequence[Any]) -> list[Any]:
        given.append((kernel.__name__, [len(task.hours) for task in tasks]))
        return engine.outcomes(session, kernel, tasks)

    monkeypatch.setattr(stage, "outcomes", seen)
    write(tmp_path, [sample(hour * 3600 + at, hour, 2 * hour) for hour in range(5) for at in (0, 10)])

    compacted(tmp_path, limits=BatchLimits(of_task=1), session=lambda: in_process("local[2]"))

    assert given == [("stage_tails", [3]), ("make_hours", [3, 2])]


def test_an_attempt_that_still_writes_when_the_run_ends_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def finds_a_new_file(path: Path) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty", str(path))

    write(tmp_path, [sample(0, 1, 10)])
    monkeypatch.setattr(shutil, "rmtree", finds_a_new_file)

    assert len(compacted(tmp_path).hours) == 1
