"""Compaction, reports and the command as tests call them: tasks of compaction run in this process, unless a test
brings a session."""

import contextlib
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from unittest import mock

from pyspark.sql import SparkSession
from typer.testing import CliRunner

from spark import cli
from spark.advice.assessment import Report
from spark.pipeline.batches import DEFAULT_LIMITS, BatchLimits
from spark.pipeline.compact import CompactionResult, compact
from spark.report.build import report
from spark.report.group_file import Agreements
from spark.report.request import requested
from spark.shutdown import Ending
from spark.storage.local import LocalFiles

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@dataclass(frozen=True)
class Tasks:
    """As much of an RDD as the pipeline uses. What crosses processes in Spark is pickled here, too."""

    results: list[bytes]
    master: str = "none"

    @property
    def sparkContext(self) -> "Tasks":  # noqa: N802 -- Spark's name
        return self

    @property
    def defaultParallelism(self) -> int:  # noqa: N802 -- Spark's name
        return int(self.master.removeprefix("local[").removesuffix("]"))

    def parallelize(self, tasks: Iterable[object], _slices: int) -> "Tasks":
        return Tasks([pickle.dumps(task) for task in tasks])

    def map(self, kernel: Callable[[Any], object]) -> "Tasks":
        return Tasks([pickle.dumps(pickle.loads(pickle.dumps(kernel))(pickle.loads(task))) for task in self.results])  # noqa: S301 -- our own

    def collect(self) -> list[object]:
        return [pickle.loads(result) for result in self.results]  # noqa: S301 -- our own


def in_process(master: str = "none") -> SparkSession:
    return cast("SparkSession", Tasks([], master))


def no_session() -> SparkSession:
    raise AssertionError("there is nothing to do")


def compacted(
    root: Path,
    until: datetime = NOW,
    limits: BatchLimits = DEFAULT_LIMITS,
    session: Callable[[], SparkSession] = in_process,
) -> CompactionResult:
    return compact(LocalFiles(root), session, until, NOW, lambda _: None, limits=limits)


def reported(
    root: Path,
    output: Path,
    session: SparkSession,
    now: datetime,
    times: tuple[str | None, str | None] = (None, None),
    timezone: str = "UTC",
    agreements: Agreements | None = None,
) -> Report:
    request = requested(str(root), str(output), times, timezone, now, agreements)
    return report(request, LocalFiles(root), lambda: session, lambda _: None, lambda: None)


def asked(*command: str, session: Callable[[], SparkSession] = in_process) -> tuple[int, list[str]]:
    """Status of the command and the lines that it shows."""
    with (
        mock.patch.object(cli, "started", side_effect=lambda _: contextlib.nullcontext(session())),
        mock.patch.object(Ending, "watch_signals"),  # they belong to pytest
    ):
        result = CliRunner().invoke(cli.app, command)
    return result.exit_code, result.stderr.splitlines()


def hours_of(result: CompactionResult) -> list[int]:
    return [hour.hour for hour in result.hours]
