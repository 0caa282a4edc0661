"""Neighbouring hours that are compacted together, and how they are divided among tasks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from spark.pipeline.plan import Hour
from spark.storage.protocol import Files, each_of
from spark.tables import layout
from spark.tables.sample_files import MISPLACED, Skipped, Sound, examined
from spark.tables.sample_reader import PART_ROWS

Item = TypeVar("Item")
LOST = "is missing or cannot be read, and cannot be made again: differences to the hour before are missing"


@dataclass(frozen=True, slots=True)
class Limits:
    """Rows at once."""

    of_batch: int = 64_000_000
    """Of the hours that are published together; a run that is ended loses what it has of them."""
    of_task: int = 1_000_000
    """Of the hours that share a task, or on one machine more if there are more than its cores can share; an hour with
    more has a task of its own."""
    of_part: int = PART_ROWS
    """Of an hour, which are computed at once: a row takes up to 400 bytes."""


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Examined:
    """An hour, and which of its files can be used."""

    hour: Hour
    sound: tuple[Sound, ...]
    skipped: tuple[Skipped, ...]

    @property
    def start(self) -> datetime:
        return self.hour.start

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.sound)

    @property
    def writers(self) -> list[str]:
        return sorted({each.writer for each in self.sound})

    def without(self, reasons: Mapping[str, str]) -> "Examined":
        """These files' paths, and what is wrong with them."""
        own = [each.file.path for each in self.sound if each.file.path in reasons]
        sound = tuple(each for each in self.sound if each.file.path not in own)
        skipped = (each for each in self.skipped if each.path not in own)
        return replace(self, sound=sound, skipped=(*skipped, *(Skipped(path, reasons[path]) for path in own)))


@dataclass(frozen=True, slots=True)
class Batch:
    """Hours, and the one that they start from."""

    hours: tuple[Examined, ...]
    before: Hour | None

    @property
    def started_from(self) -> str:
        return self.before.record.ends_with if self.before and self.before.record else ""

    @property
    def carry(self) -> str | None:
        """Path of the table that the first hour starts from, if there is one that can be read."""
        if self.before is None or self.before.record is None or self.before.is_lost:
            return None
        return layout.hour_table(self.before.name, layout.CARRY)

    def without(self, reasons: Mapping[str, str]) -> "Batch":
        """As of an hour."""
        return replace(self, hours=tuple(hour.without(reasons) for hour in self.hours))


def neighbours(items: Iterable[Item], size: Callable[[Item], int], limit: int) -> list[list[Item]]:
    """Those that follow one another together, as many as the limit allows; one that is larger is alone."""
    groups: list[list[Item]] = []
    for item in items:
        if groups and sum(map(size, groups[-1])) + size(item) <= limit:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def batch_from(files: Files, hours: Sequence[Hour], first: int, limit: int) -> Batch:
    """The hour, and its successors that have changed as well, up to so many rows."""
    taken: list[Examined] = []
    for hour in hours[first:]:
        if taken and not hour.has_changed:
            break
        found = _examined(files, hour)
        if taken and sum(each.rows for each in (*taken, found)) > limit:
            break
        taken.append(found)
    before = hours[first - 1] if first else None
    if before and before.is_lost:
        lost = Skipped(layout.hour_table(before.name, layout.CARRY), LOST)
        taken[0] = replace(taken[0], skipped=(*taken[0].skipped, lost))
    return Batch(tuple(taken), before)


def _examined(files: Files, hour: Hour) -> Examined:
    results = each_of(files, partial(examined, files, hour=hour.start), hour.files)
    sound = tuple(each for each in results if isinstance(each, Sound))
    misplaced = (Skipped(each.file.path, MISPLACED) for each in sound if not each.is_of_its_hour)
    return Examined(hour, sound, (*(each for each in results if isinstance(each, Skipped)), *misplaced))
