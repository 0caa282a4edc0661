"""What a Spark task does between two rounds of tasks that make hours: adds up what neighbouring hours carry on, of some
topics, hour after hour."""

from collections.abc import Iterable
from dataclasses import dataclass

from spark.engine.tasks import attempt
from spark.rules.carry import carried_on
from spark.storage.protocol import HistoryFiles, each_of
from spark.tables.columns import TableRows, joined, none_of
from spark.tables.contract import CARRIED
from spark.tables.parquet_tables import read_part, write_table
from spark.tables.topic_parts import Part


@dataclass(frozen=True, slots=True)
class TailOfHour:
    start: int
    """Of the hour, in microseconds since the epoch."""
    paths: tuple[str, ...]
    """What its samples alone carry on."""
    is_followed: bool
    """Whether a task starts with the hour after it."""


@dataclass(frozen=True, slots=True)
class FoldTask:
    files: HistoryFiles
    staging: str
    """The run's folder."""
    topics: Part
    number: int
    """Of these topics among others."""
    carry: tuple[str, ...]
    """Files of the table that the first hour starts from."""
    tails: tuple[TailOfHour, ...]


def fold_tails(task: FoldTask) -> list[str]:
    """Stages what the hours after those that are followed start from; returns the paths. Raises TableUnreadable."""
    carried, staged = _rows_of(task, task.carry), []
    for first in range(0, len(task.tails), task.files.at_once):
        tails = task.tails[first : first + task.files.at_once]
        for tail, rows in zip(tails, each_of(task.files, lambda tail: _rows_of(task, tail.paths), tails), strict=True):
            carried = carried_on(carried, rows, tail.start)
            if tail.is_followed:
                staged.append(f"{task.staging}/{attempt()}/starts/{tail.start}-{task.number}.parquet")
                write_table(task.files, staged[-1], carried, CARRIED)
    return staged


def _rows_of(task: FoldTask, paths: Iterable[str]) -> TableRows:
    tables = [read_part(task.files, path, CARRIED, task.topics) for path in paths]
    return joined(tables) if tables else none_of(CARRIED)
