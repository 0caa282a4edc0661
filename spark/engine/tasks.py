"""Kernels as Spark tasks: `run` returns what the kernel makes of each task, in their order.

A kernel is a function of a module; tasks and results are small plain values, for Spark pickles all of them. Rows stay
with the kernel, which reads and writes Parquet by pyarrow.

One door, two ways behind it. Where somebody can look, and by Spark Connect, tasks are rows of a DataFrame, which
Spark's SQL tab shows, and `mapInArrow` applies the kernel. Without a UI, as in the command's own process, they are an
RDD: a session and its first DataFrame cost more than anything else in a short run. docs/why.md has the figures.

What a kernel raises of our own errors is raised again in the driver: another attempt would meet the same. Everything
else is raised in the task, for Spark to try again and to exclude a bad executor: a killed process, a disk or a store
that fails for a while. What the system or a store said in the last attempt is raised in the driver as it was.
"""

import pickle
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeGuard, TypeVar

import numpy as np
import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from adapter.history.arrow import array_of
from spark.engine.division import jobs_of, plans_of
from spark.engine.jobs import Spark, context_of, describe, master_of, parallelism, setting
from spark.engine.progress import Tally, Watch, tally_of, watched
from spark.errors import ReportError, Unavailable

Task = TypeVar("Task")
Result = TypeVar("Result")
FAILURES = 4
"""Of one task, after which Spark ends a job unless its settings say otherwise."""
COLUMNS = "number bigint, result binary"
THREADS = 64
"""That wait for as many jobs at once."""


def run(
    spark: Spark,
    kernel: Callable[[Task], Result],
    tasks: Iterable[Task],
    said: str,
    watch: Watch | None = None,
) -> list[Result]:
    """Raises what the kernel raised for the first task that has an error, after all tasks have ended."""
    return results_of(outcomes(spark, kernel, tasks, said, watch))


def outcomes(
    spark: Spark,
    kernel: Callable[[Task], Result],
    tasks: Iterable[Task],
    said: str,
    watch: Watch | None = None,
) -> list[Result | Exception]:
    """Of each task what the kernel returned or raised. `said`: how Spark's UI describes the jobs."""
    return list(arriving(spark, kernel, tasks, said, watch))


def arriving(
    spark: Spark,
    kernel: Callable[[Task], Result],
    tasks: Iterable[Task],
    said: str,
    watch: Watch | None = None,
) -> Iterator[Result | Exception]:
    """As `outcomes`, the first ones while others are still being made if there are more tasks than run at once. At the
    end of the iteration, also before the last result, all tasks have ended."""
    given = list(tasks)
    if not given:
        return
    tally = tally_of(spark)
    attempted = Attempted(kernel, failures_allowed(spark), tally)
    jobs = _jobs(spark, attempted, said, given)
    with watched(spark, watch, tally, len(given)):
        if len(jobs) == 1:
            yield from jobs[0]()
            return
        # Spark's tasks go to the first job first, and those of the next fill what is left.
        with ThreadPoolExecutor(min(len(jobs), THREADS), "job") as pool:
            for job in [pool.submit(job) for job in jobs]:
                yield from job.result()


def results_of(outcomes: Iterable[Result | Exception]) -> list[Result]:
    """Raises the first error."""
    results = []
    for each in outcomes:
        if isinstance(each, Exception):
            raise each
        results.append(each)
    return results


def attempt() -> str:
    """A name that no other attempt at any task of this session has, for what an attempt stages: Spark may run a task
    twice, also at the same time, and only one of them returns its result."""
    context = TaskContext.get()
    return "attempt-0" if context is None else f"attempt-{context.taskAttemptId() + 1}"


def is_shown(spark: Spark) -> TypeGuard[SparkSession]:
    """Whether jobs are to be found in a UI."""
    return not isinstance(spark, SparkContext) and (is_remote() or setting(spark, "spark.ui.enabled") != "false")


def failures_allowed(spark: Spark) -> int:
    """Attempts at a task, the last of which ends the job if it fails."""
    here = re.fullmatch(r"local(?:\[[^,]*(?:,\s*(\d+))?\])?", master_of(spark))
    return int(here[1] or 1) if here else int(setting(spark, "spark.task.maxFailures", str(FAILURES)))


@dataclass(frozen=True, slots=True)
class Attempted(Generic[Task, Result]):
    """The kernel as a task applies it."""

    kernel: Callable[[Task], Result]
    failures: int
    tally: Tally | None

    def __call__(self, task: Task) -> Result | Exception:
        try:
            result = self.kernel(task)
        except ReportError as error:
            if isinstance(error, Unavailable) and not self._is_last():
                raise
            return error
        except (OSError, pa.ArrowException) as error:
            if not self._is_last():
                raise
            return error
        if self.tally is not None:
            self.tally.add(task)
        return result

    def _is_last(self) -> bool:
        context = TaskContext.get()
        return context is None or context.attemptNumber() + 1 >= self.failures


def _jobs(
    spark: Spark, attempted: Attempted[Task, Result], said: str, given: Sequence[Task]
) -> list[Callable[[], list[Result | Exception]]]:
    if is_shown(spark):
        packed = [zlib.compress(pickle.dumps(task)) for task in given]
        return [partial(_by_dataframe, spark, attempted, said, plan) for plan in plans_of(packed, parallelism(spark))]
    return [partial(_by_rdd, spark, attempted, said, job) for job in jobs_of(given, parallelism(spark))]


def _by_rdd(
    spark: Spark, attempted: Attempted[Task, Result], said: str, given: Sequence[Task]
) -> list[Result | Exception]:
    describe(spark, said)
    return context_of(spark).parallelize(given, len(given)).map(attempted).collect()


def _by_dataframe(
    session: SparkSession, attempted: Attempted[Task, Result], said: str, packed: Sequence[bytes]
) -> list[Result | Exception]:
    """Every process gets all tasks, and opens its own."""
    describe(session, said)

    def applied(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                result = attempted(pickle.loads(zlib.decompress(packed[number])))  # noqa: S301 -- our own
                yield _row(number, pickle.dumps(result))

    rows = session.range(0, len(packed), 1, len(packed)).mapInArrow(applied, COLUMNS).toArrow()
    results = dict(zip(rows["number"].to_pylist(), rows["result"].to_pylist(), strict=True))
    return [pickle.loads(results[number]) for number in range(len(packed))]  # noqa: S301 -- our own


def _row(number: int, result: bytes) -> pa.RecordBatch:
    offsets = pa.py_buffer(np.array([0, len(result)], np.int32))
    binary = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(result)])
    numbers = array_of(pa.int64(), np.array([number], np.int64), is_nullable=False)
    return pa.RecordBatch.from_arrays([numbers, binary], names=["number", "result"])
