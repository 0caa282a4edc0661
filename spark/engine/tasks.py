"""Kernels as Spark tasks: `run(session, kernel, tasks)` returns what the kernel makes of each task, in their order.

A kernel is a function of a module; tasks and results are small plain values, for Spark pickles all of them. Rows stay
with the kernel, which reads and writes Parquet by pyarrow.

What a kernel raises of our own errors, and of the system's, is raised again in the driver: another attempt would meet
the same. Everything else, a killed process for one, is left to Spark, which runs the task again.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from spark.errors import ReportError

Task = TypeVar("Task")
Result = TypeVar("Result")


def run(session: SparkSession, kernel: Callable[[Task], Result], tasks: Iterable[Task]) -> list[Result]:
    """Raises what the kernel raised for the first task that has an error, after all tasks have ended."""
    return results_of(outcomes(session, kernel, tasks))


def outcomes(
    session: SparkSession, kernel: Callable[[Task], Result], tasks: Iterable[Task]
) -> list[Result | Exception]:
    """Of each task what the kernel returned or raised."""
    given = list(tasks)
    if not given:
        return []
    # RDDs, not mapInArrow: that imports pandas in every process. docs/why.md has the figures.
    return session.sparkContext.parallelize(given, len(given)).map(partial(_outcome, kernel)).collect()


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


def _outcome(kernel: Callable[[Task], Result], task: Task) -> Result | Exception:
    try:
        return kernel(task)
    except (ReportError, OSError, pa.ArrowException) as error:
        return error
