"""What is compacted at once, what is known of it afterwards, and the two ways to do it as one protocol."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from spark.pipeline.plan import Hour
from spark.tables.sample_files import Skipped, Sound


@dataclass(frozen=True, slots=True)
class Batch:
    """Neighbouring hours with the files that can be used, and what they start from."""

    hours: tuple[Hour, ...]
    sound: Mapping[datetime, tuple[Sound, ...]]
    skipped: Mapping[datetime, tuple[Skipped, ...]]
    before: Hour | None

    @property
    def start(self) -> str:
        return ends_with(self.before)

    @property
    def starts_from(self) -> str | None:
        """The folder of the hour before, if there is one and its tables can be read."""
        return None if self.before is None or self.before.is_lost else self.before.folder

    @property
    def carries(self) -> bool:
        """Whether the hour before said that it hands over anything."""
        return bool(self.before and self.before.record and self.before.record.carried)

    @property
    def files(self) -> tuple[Sound, ...]:
        return tuple(each for hour in self.hours for each in self.sound[hour.start])

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.files)


@dataclass(frozen=True, slots=True)
class Staged:
    """By the hour's start."""

    carried: Mapping[datetime, str]
    """Digest of what the hour hands to the next; one that hands over nothing is not among them."""
    writers: Mapping[datetime, Mapping[str, str]]
    """Cluster -> who counted in the hour's last minute."""


class Engine(Protocol):
    """Both ways make the same tables."""

    def stage_batch(self, batch: Batch) -> Staged:
        """Stages `deltas`, `totals`, `partitions` and `carried`, each with a folder for each hour that has rows: `at=`
        and the hours since the epoch. Raises Damaged, and Spoilt where the hour before is."""

    def stage_day(self, day: str, folders: Collection[str]) -> None:
        """Stages `hourly/date=…` and `daily/…`, from the tables of these hours; `folders`: `date=…/hour=…`.
        Raises Spoilt."""


def ends_with(hour: Hour | None) -> str:
    return hour.record.ends_with if hour and hour.record else ""


def at_of(start: datetime) -> int:
    """The name of an hour's staged folder."""
    return int(start.timestamp()) // 3600


def minute_of(at: datetime) -> int:
    return int(at.timestamp()) // 60
