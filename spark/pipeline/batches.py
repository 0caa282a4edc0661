"""Neighbouring hours that are compacted together, and how they are divided among tasks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from spark.pipeline.plan import FoundHour
from spark.rules.writer_choice import Chosen
from spark.storage.protocol import HistoryFiles, each_of
from spark.tables import layout
from spark.tables.sample_files import MISPLACED, Skipped, Sound, examined
from spark.tables.sample_reader import PART_ROWS

Item = TypeVar("Item")
LOST = "is missing or cannot be read, and cannot be made again: differences to the hour before are missing"


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Rows at once."""

    of_batch: int = 64_000_000
    """Of hours whose tasks are planned together. On one machine, for every two cores: each core has one run of hours,
    so that all are published at the end. On a cluster, a quarter of what each task slot gets: hours are published as
    they arrive, and what does not divide evenly matters less."""
    of_task: int = 1_000_000
    """Of the hours that share a task, or on one machine more if there are more than its cores can share; an hour with
    more has a task of its own."""
    of_part: int = PART_ROWS
    """Of an hour, which are computed at once: a row takes up to 400 bytes."""

    def of_batch_on(self, parallelism: int, *, is_cluster: bool) -> int:
        return self.of_batch * (4 * parallelism if is_cluster else max(1, parallelism // 2))


DEFAULT_LIMITS = BatchLimits()


@dataclass(frozen=True, slots=True)
class ExaminedHour:
    """An hour to compact: which of its files can be used, and who counts in it."""

    found: FoundHour
    sound: tuple[Sound, ...]
    skipped: tuple[Skipped, ...] = ()
    chosen: Chosen | None = None
    """None: not decided yet, or there is one writer at most."""

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def start(self) -> datetime:
        return self.found.start

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.sound)

    @property
    def writers(self) -> list[str]:
        return sorted({file.writer for file in self.sound})


@dataclass(frozen=True, slots=True)
class Batch:
    """Hours, and the one that they start from."""

    hours: tuple[ExaminedHour, ...]
    before: FoundHour | None

    @property
    def started_from(self) -> str:
        return self.before.record.ends_with if self.before and self.before.record else ""

    @property
    def carry(self) -> str | None:
        """Path of the table that the first hour starts from, if there is one that can be read."""
        if self.before is None or self.before.record is None or self.before.is_lost:
            return None
        return layout.hour_table(self.before.name, layout.CARRY)


def neighbours(items: Iterable[Item], size: Callable[[Item], int], limit: int) -> list[list[Item]]:
    """Those that follow one another together, as many as the limit allows; one that is larger is alone."""
    groups: list[list[Item]] = []
    for item in items:
        if groups and sum(map(size, groups[-1])) + size(item) <= limit:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def batch_from(
    files: HistoryFiles, hours: Sequence[FoundHour], first: int, limit: int, damaged: Mapping[str, str]
) -> Batch:
    """The hour, and its successors that have changed as well, up to so many rows. `damaged`: paths of files that are
    left out although their footers are sound, and what is wrong with them."""
    batch: list[ExaminedHour] = []
    for hour in hours[first:]:
        if batch and not hour.has_changed:
            break
        examined_hour = _examined(files, hour, damaged)
        if batch and sum(each.rows for each in (*batch, examined_hour)) > limit:
            break
        batch.append(examined_hour)
    before = hours[first - 1] if first else None
    if before and before.is_lost:
        lost = Skipped(layout.hour_table(before.name, layout.CARRY), LOST)
        batch[0] = replace(batch[0], skipped=(*batch[0].skipped, lost))
    return Batch(tuple(batch), before)


def _examined(files: HistoryFiles, hour: FoundHour, damaged: Mapping[str, str]) -> ExaminedHour:
    paths = [file.path for file in hour.files if file.path in damaged]
    readable = [file for file in hour.files if file.path not in damaged]
    results = each_of(files, partial(examined, files, hour=hour.start), readable)
    sound = tuple(result for result in results if isinstance(result, Sound))
    skipped = [
        *(result for result in results if isinstance(result, Skipped)),
        *(Skipped(each.file.path, MISPLACED) for each in sound if not each.is_of_its_hour),
        *(Skipped(path, damaged[path]) for path in paths),
    ]
    return ExaminedHour(hour, sound, tuple(skipped))
