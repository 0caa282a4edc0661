"""Neighbouring hours that are compacted together, and how they are divided among tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from spark.pipeline.plan import Hour
from spark.storage.protocol import Files, each_of
from spark.tables import layout
from spark.tables.sample_files import MISPLACED, Skipped, Sound, examined
from spark.tables.sample_reader import PART_ROWS

LOST = "is missing or cannot be read, and cannot be made again: differences to the hour before are missing"


@dataclass(frozen=True, slots=True)
class Limits:
    """Rows at once."""

    of_batch: int = 32_000_000
    """Of the hours that are published together; a run that is ended loses what it has of them."""
    of_task: int = 1_000_000
    """Of the hours that share a task; an hour with more has one of its own."""
    of_part: int = PART_ROWS
    """Of an hour, in memory: a row takes up to 400 bytes."""


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Batch:
    """Hours with the files that can be used, and what they start from."""

    hours: tuple[Hour, ...]
    sound: Mapping[datetime, tuple[Sound, ...]]
    skipped: Mapping[datetime, tuple[Skipped, ...]]
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

    @property
    def files(self) -> tuple[Sound, ...]:
        return tuple(each for hour in self.hours for each in self.sound[hour.start])

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.files)

    def rows_of(self, hour: Hour) -> int:
        return sum(each.rows for each in self.sound[hour.start])

    def groups(self, limit: int) -> list[tuple[Hour, ...]]:
        """Neighbours that share a task: as many as have no more rows than the limit."""
        groups: list[list[Hour]] = []
        rows = 0
        for hour in self.hours:
            own = self.rows_of(hour)
            if groups and rows + own <= limit:
                groups[-1].append(hour)
                rows += own
            else:
                groups.append([hour])
                rows = own
        return [tuple(group) for group in groups]

    def without(self, reasons: Mapping[str, str]) -> Batch:
        """These files' paths, and what is wrong with them."""
        return replace(
            self,
            sound={
                start: tuple(each for each in sound if each.file.path not in reasons)
                for start, sound in self.sound.items()
            },
            skipped={
                start: (
                    *(each for each in self.skipped[start] if each.path not in reasons),
                    *(
                        Skipped(each.file.path, reasons[each.file.path])
                        for each in self.sound[start]
                        if each.file.path in reasons
                    ),
                )
                for start in self.skipped
            },
        )


def batch_from(files: Files, hours: Sequence[Hour], first: int, limit: int) -> Batch:
    """The hour, and its successors that have changed as well, up to so many rows."""
    taken: list[Hour] = []
    sound: dict[datetime, tuple[Sound, ...]] = {}
    skipped: dict[datetime, tuple[Skipped, ...]] = {}
    rows = 0
    for hour in hours[first:]:
        if taken and not hour.has_changed:
            break
        results = each_of(files, partial(examined, files, hour=hour.start), hour.files)
        good = tuple(each for each in results if isinstance(each, Sound))
        rows += sum(each.rows for each in good)
        if taken and rows > limit:
            break
        misplaced = [Skipped(each.file.path, MISPLACED) for each in good if not each.is_of_its_hour]
        taken.append(hour)
        sound[hour.start] = good
        skipped[hour.start] = (*(each for each in results if isinstance(each, Skipped)), *misplaced)
    before = hours[first - 1] if first else None
    if before and before.is_lost:
        path = layout.hour_table(before.name, layout.CARRY)
        skipped[taken[0].start] = (*skipped[taken[0].start], Skipped(path, LOST))
    return Batch(tuple(taken), sound, skipped, before)
