"""Compaction as tests call it: its tasks run in this process and its DataFrames in the active session, unless a
test brings a session of its own."""

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark.pipeline.batches import DEFAULT_LIMITS, Limits
from spark.pipeline.compact import Outcome, compact
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

    def createDataFrame(self, rows: pa.Table) -> DataFrame:  # noqa: N802 -- Spark's name
        active = SparkSession.getActiveSession()
        assert active is not None, "the test asks for the fixture spark_session"
        return active.createDataFrame(rows)

    def collect(self) -> list[object]:
        return [pickle.loads(result) for result in self.results]  # noqa: S301 -- our own


def in_process(master: str = "none") -> SparkSession:
    return cast("SparkSession", Tasks([], master))


def no_session() -> SparkSession:
    raise AssertionError("there is nothing to do")


def compacted(
    root: Path,
    until: datetime = NOW,
    limits: Limits = DEFAULT_LIMITS,
    session: Callable[[], SparkSession] = in_process,
) -> Outcome:
    return compact(LocalFiles(root), session, until, NOW, lambda _: None, limits=limits)


def hours_of(outcome: Outcome) -> list[int]:
    return [hour.hour for hour in outcome.hours]
