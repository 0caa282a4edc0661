"""`python -m benchmarks.history.without_waits LOCATION all|less`: compacts a history with all that it computes, or
without the minutes and the waits, whose columns are then empty."""

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar
from unittest import mock

import numpy as np

from spark.engine import tasks
from spark.engine.progress import Tally
from spark.engine.session import SparkSettings, started
from spark.engine.tasks import Attempted
from spark.pipeline import day_task, hour_task
from spark.pipeline.compact import compact
from spark.pipeline.day_task import DayTask
from spark.rules import carry, hourly
from spark.storage.location import files_at
from spark.tables.columns import Flags, Ints, TableRows, Values, none_of
from spark.tables.contract import MINUTES, PER_MINUTE
from spark.tables.parquet_tables import CLOSELY, write_table

Task = TypeVar("Task")
Made = TypeVar("Made")


def no_waits(_: object, deltas: TableRows) -> Mapping[str, Values]:
    return {"wait_seconds": np.full(len(deltas), np.nan), "wait_is_bound": np.zeros(len(deltas), np.bool_)}


def no_waits_of_topics(_: object, begins: Ints) -> Mapping[str, Values]:
    names = ("wait_p50", "wait_p95", "wait_p99", "wait_max", "wait_bounds")
    return dict.fromkeys(names, np.full(len(begins), np.nan))


def no_minutes_of_hour(_deltas: TableRows, _totals: TableRows) -> TableRows:
    return none_of(PER_MINUTE)


def no_minutes_of_day(task: DayTask, path: str) -> None:
    write_table(task.files, path, none_of(MINUTES), MINUTES, CLOSELY)


def percentiles_of_lags(prefix: str, values: Values, begins: Ints) -> Mapping[str, Values]:
    if prefix == "lag":
        return hourly.percentile_columns(prefix, values, begins)
    return {f"{prefix}_{name}": np.full(len(begins), np.nan) for name in ("p50", "p95", "p99")}


def no_log_ends(ends: TableRows, *_: object) -> Flags:
    return np.zeros(len(ends), np.bool_)


def no_rows(*_: object) -> Ints:
    return np.empty(0, np.int64)


LESS: Sequence[tuple[object, str, Callable[..., Any]]] = (
    (hour_task, "waits_of", no_waits),
    (hour_task, "per_minute_of", no_minutes_of_hour),
    (hourly, "_of_waits", no_waits_of_topics),
    (carry, "own_trail", no_log_ends),
    (carry, "trail_of", no_log_ends),
    (carry, "_may_be_kept", no_rows),
    (day_task, "_write_minutes", no_minutes_of_day),
    (day_task, "percentile_columns", percentiles_of_lags),
)
"""Where a function is used, its name there, and what takes its place."""


def with_less(kernel: Callable[[Task], Made], task: Task) -> Made:
    """In the process of the task."""
    with contextlib.ExitStack() as stack:
        for module, name, instead in LESS:
            stack.enter_context(mock.patch.object(module, name, instead))
        return kernel(task)


def attempted_with_less(kernel: Callable[[Task], Made], failures: int, tally: Tally | None) -> Attempted[Task, Made]:
    return Attempted(partial(with_less, kernel), failures, tally)


def main(location: str, what: str) -> None:
    now = datetime(2027, 1, 1, tzinfo=UTC)
    with contextlib.ExitStack() as stack:
        spark = stack.enter_context(started(SparkSettings()))
        if what == "less":
            stack.enter_context(mock.patch.object(tasks, "Attempted", attempted_with_less))
        compact(files_at(location), lambda: spark, now, now, lambda _: None)


if __name__ == "__main__":
    main(*sys.argv[1:])
