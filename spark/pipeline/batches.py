"""Neighbouring hours that are compacted together, and how they are divided among tasks."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import starmap

from adapter.verdicts.writers import Chosen
from spark.pipeline.plan import FoundHour
from spark.tables import layout
from spark.tables.sample_files import Skipped, Sound
from spark.tables.sample_reader import PART_ROWS
from spark.tables.topic_parts import Bounds, Part, parts_between

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
    more, or its range, has a task of its own."""
    of_part: int = PART_ROWS
    """Of an hour, which are computed at once: a row takes up to 400 bytes."""
    of_range: int = 2_500_000
    """Of an hour that has tasks and files of its own, as one of several ranges of topics."""

    def on(self, parallelism: int, *, is_cluster: bool) -> "BatchLimits":
        """For so many tasks at once."""
        return replace(self, of_batch=self.of_batch * (4 * parallelism if is_cluster else max(1, parallelism // 2)))


DEFAULT_LIMITS = BatchLimits()


@dataclass(frozen=True, slots=True)
class ExaminedHour:
    """An hour to compact: which of its files can be used, and who counts in it."""

    found: FoundHour
    sound: tuple[Sound, ...]
    skipped: tuple[Skipped, ...] = ()
    chosen: Chosen | None = None
    """None: not decided yet, or there is one writer at most."""
    bounds: Bounds = ()
    """Of the ranges that it is divided into."""
    lanes: Bounds = ()
    """Those of ranges with less rows, for work on few columns."""

    @property
    def ranges(self) -> list[Part]:
        return parts_between(self.bounds)

    @property
    def rows_of_range(self) -> int:
        return self.rows // (len(self.bounds) + 1)

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
    def carry(self) -> tuple["TopicsFile", ...]:
        """Files of the table that the first hour starts from, if there is one that can be read."""
        if self.before is None or self.before.record is None or self.before.is_lost:
            return ()
        record = self.before.record
        paths = record.paths(self.before.name, layout.CARRY)
        return tuple(starmap(TopicsFile, zip(parts_between(record.bounds), paths, strict=True)))

    @property
    def lanes(self) -> list[Part]:
        return parts_between(max(self.hours, key=lambda hour: hour.rows).lanes)


@dataclass(frozen=True, slots=True)
class TopicsFile:
    """A file with rows of these topics, of no others."""

    topics: Part
    path: str


def batch_from(hours: Iterable[ExaminedHour], before: FoundHour | None, limit: int) -> Batch:
    """The first hours, up to so many rows, and at least one."""
    batch: list[ExaminedHour] = []
    for hour in hours:
        if batch and sum(each.rows for each in (*batch, hour)) > limit:
            break
        batch.append(hour)
    if before and before.is_lost:
        lost = Skipped(f"{layout.hour_folder(before.name)}/{layout.CARRY}.parquet", LOST)
        batch[0] = replace(batch[0], skipped=(*batch[0].skipped, lost))
    return Batch(tuple(batch), before)
