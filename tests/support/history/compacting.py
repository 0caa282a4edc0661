"""Compaction, reports and the command as tests call them: tasks of compaction run in this process, unless a test
brings a session."""

import contextlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pyarrow as pa
from pyspark import cloudpickle
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


@dataclass
class Count:
    value: int = 0

    def add(self, number: int) -> None:
        self.value += number


@dataclass(frozen=True)
class Numbers:
    """As much of a DataFrame as the pipeline uses: the numbers of its tasks, a partition each."""

    numbers: range
    results: pa.Table | None = None

    def mapInArrow(self, function: Callable[[Iterator[Any]], Iterator[Any]], _: str) -> "Numbers":  # noqa: N802 -- Spark's name
        applied = pickle.loads(cloudpickle.dumps(function))  # type: ignore[no-untyped-call]  # noqa: S301 -- our own
        batches = (pa.RecordBatch.from_pydict({"id": [number]}) for number in self.numbers)
        return Numbers(
            self.numbers, pa.Table.from_batches([row for batch in batches for row in applied(iter([batch]))])
        )

    def toArrow(self) -> pa.Table | None:  # noqa: N802 -- Spark's name
        return self.results


@dataclass(frozen=True)
class Tasks:
    """As much of a session and its RDDs as the pipeline uses. What crosses processes in Spark is pickled here, too."""

    master: str
    cores: int = 1
    results: list[bytes] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """Descriptions of jobs."""

    @property
    def sparkContext(self) -> "Tasks":  # noqa: N802 -- Spark's name
        return self

    @property
    def conf(self) -> dict[str, str]:
        return {"spark.master": self.master, "spark.ui.enabled": str(not self.master.startswith("local")).lower()}

    @property
    def defaultParallelism(self) -> int:  # noqa: N802 -- Spark's name
        return self.cores

    def setJobGroup(self, _group: str, said: str) -> None:  # noqa: N802 -- Spark's name
        self.said.append(said)

    def accumulator(self, value: int) -> Count:
        return Count(value)

    def parallelize(self, tasks: Iterable[object], _slices: int) -> "Tasks":
        return replace(self, results=[pickle.dumps(task) for task in tasks])

    def map(self, kernel: Callable[[Any], object]) -> "Tasks":
        applied = pickle.loads(pickle.dumps(kernel))  # noqa: S301 -- our own
        return replace(self, results=[pickle.dumps(applied(pickle.loads(task))) for task in self.results])  # noqa: S301

    def range(self, _start: int, end: int, _step: int, _partitions: int) -> Numbers:
        return Numbers(range(end))

    def collect(self) -> list[object]:
        return [pickle.loads(result) for result in self.results]  # noqa: S301 -- our own


def in_process(master: str = "none", cores: int = 1, said: list[str] | None = None) -> SparkSession:
    """As of a cluster, unless the master is `local[…]`."""
    return cast("SparkSession", Tasks(master, cores, said=[] if said is None else said))


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


class Frozen(datetime):
    """The range by default depends on the time, and histories of tests have fixed dates."""

    @classmethod
    def now(cls, _: tzinfo | None = None) -> "Frozen":
        return cls.fromtimestamp(NOW.timestamp(), UTC)


def asked(*command: str, session: Callable[[], SparkSession] = in_process) -> tuple[int, list[str]]:
    """Status of the command at NOW, and the lines that it shows."""
    with (
        mock.patch.object(cli, "datetime", Frozen),
        mock.patch.object(cli, "started", side_effect=lambda _: contextlib.nullcontext(session())),
        mock.patch.object(Ending, "watch_signals"),  # they belong to pytest
    ):
        result = CliRunner().invoke(cli.app, command)
    return result.exit_code, result.stderr.splitlines()


def hours_of(result: CompactionResult) -> list[int]:
    return [hour.hour for hour in result.hours]
