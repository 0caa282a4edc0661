"""The totals and partitions of a range as Spark tasks: each reads the groups of one slice from every hour, and none of
their rows leaves it."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from adapter.history.contract import Column
from spark.folds import partition_progress, topic_samples
from spark.folds.lag_statistics import STATISTICS, statistics_of
from spark.folds.partition_progress import PROGRESS, progress_of
from spark.folds.topic_samples import UTC, Topics
from spark.storage.protocol import HistoryFiles
from spark.tables import layout
from spark.tables.columns import TableRows, joined, rows_of
from spark.tables.parquet_tables import or_refused, read_topics
from spark.tables.topic_parts import Names

SLICE_ROWS = 4_000_000
"""Samples of a slice, of whole groups. A task holds 30 bytes of each, and one hour with all its columns."""
WORTHWHILE_ROWS = 250_000
"""Fewer are not split, not even to keep all cores busy: every slice opens every file."""


@dataclass(frozen=True, slots=True)
class SampleFold:
    """What is made of one table of every hour."""

    table: str
    columns: tuple[Column, ...]
    schema: pa.Schema
    figures_of: Callable[[Iterable[TableRows], Topics], pa.Table]


LAGS = SampleFold(layout.TOTALS, topic_samples.COLUMNS, STATISTICS, statistics_of)
PARTITIONS = SampleFold(layout.PARTITIONS, partition_progress.COLUMNS, PROGRESS, progress_of)


@dataclass(frozen=True, slots=True)
class Slice:
    """A task."""

    files: HistoryFiles
    fold: SampleFold
    hours: tuple[tuple[str, ...], ...]
    """The files of the fold's table in each hour, in order of time."""
    keys: tuple[Names, ...]
    """Topics of whole groups, in order."""
    thresholds: tuple[int, ...]
    zone: ZoneInfo = UTC


@dataclass(frozen=True, slots=True)
class ExpectedSamples:
    """A topic, and how many samples of it a range promises."""

    key: Names
    threshold: int
    samples: int


def folded(task: Slice) -> pa.Table:
    """The kernel. Raises Unusable for a file that cannot be read."""
    topics = Topics(task.keys, np.array(task.thresholds, np.int64), task.zone)
    return task.fold.figures_of((_hour(task, paths) for paths in task.hours), topics)


def slices_of(
    files: HistoryFiles,
    fold: SampleFold,
    hours: Sequence[tuple[str, ...]],
    topics: Iterable[ExpectedSamples],
    at_once: int,
    zone: ZoneInfo = UTC,
) -> list[Slice]:
    """`hours`: as a slice has them; `topics`: in order of their keys. `at_once`: how many tasks run side by side.
    `zone`: of the hours of the day."""
    groups = [list(of_group) for _, of_group in itertools.groupby(topics, key=lambda topic: topic.key[:2])]
    rows = np.cumsum([sum(topic.samples for topic in group) for group in groups])
    total = int(rows[-1]) if len(rows) else 0
    number = max(math.ceil(total / SLICE_ROWS), min(at_once, math.ceil(total / WORTHWHILE_ROWS)), 1)
    place = np.minimum((rows - 1) * number // max(total, 1), number - 1)
    slices = []
    for _, together in itertools.groupby(zip(place, groups, strict=True), key=lambda each: each[0]):
        own = [topic for _, group in together for topic in group]
        keys, thresholds = tuple(topic.key for topic in own), tuple(topic.threshold for topic in own)
        slices.append(Slice(files, fold, tuple(hours), keys, thresholds, zone))
    return slices


def _hour(task: Slice, paths: Iterable[str]) -> TableRows:
    """The row groups that may have one of the topics."""
    return joined([_rows_in(task, path) for path in paths])


def _rows_in(task: Slice, path: str) -> TableRows:
    first, last = task.keys[0], task.keys[-1]
    with or_refused(task.files, path):
        table = read_topics(
            task.files, path, task.fold.columns, lambda least, greatest: least <= last and first <= greatest
        )
    return rows_of(table, task.fold.columns)
