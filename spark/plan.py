"""Pure, but for listing: which hours there are, and which of them need to be compacted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from spark.files import File, Files
from spark.problems import Unusable
from spark.read_history import HOUR, Skipped, folder_of, hour_of
from spark.records import Record, read_record


@dataclass(frozen=True, slots=True)
class Hour:
    """One finished hour: what lies there, and how it was compacted, if it was."""

    start: datetime
    files: tuple[File, ...]
    record: Record | None

    @property
    def folder(self) -> str:
        return folder_of(self.start)

    @property
    def has_changed(self) -> bool:
        """Retention may have taken all its files: then it stays as it was compacted."""
        return bool(self.files) and (self.record is None or not self.record.covers(self.files))

    def needs(self, before: Hour | None) -> bool:
        """Whether it has changed, or what the hour before ends with has; what retention took is no reason."""
        has_other_start = bool(
            before and before.record and self.record and before.record.ends_with != self.record.started_from
        )
        return self.has_changed or (bool(self.files) and has_other_start)


@dataclass(frozen=True, slots=True)
class Found:
    """All finished hours in order; what lies where no finished hour lies."""

    hours: tuple[Hour, ...]
    skipped: tuple[Skipped, ...]


def found_in(files: Files, until: datetime, now: datetime) -> Found:
    """Raises Unusable where there is no history."""
    if not files.exists():
        raise Unusable(f"{files.uri()} does not exist")
    by_folder = _by_folder(files.listed("samples", 2))
    known = set(by_folder) | {f"samples/{file.folder.removeprefix('deltas/')}" for file in files.listed("deltas", 2)}
    if not known:
        raise Unusable(f"{files.uri()} holds no samples: there is no samples/date=…/hour=…/ with a file in it")
    starts = {folder: hour_of(folder) for folder in known}
    finished = sorted(
        (start, folder) for folder, start in starts.items() if start and start < until and start + HOUR <= until
    )
    hours = (
        Hour(start, tuple(by_folder.get(folder, ())), read_record(files, folder_of(start)))
        for start, folder in finished
    )
    strange = [Skipped(folder, "is no folder of an hour") for folder, start in starts.items() if start is None]
    future = [Skipped(folder, "lies in the future") for folder, start in starts.items() if start and start > now]
    return Found(
        tuple(hour for hour in hours if hour.files or hour.record),
        tuple(sorted(strange + future, key=lambda each: each.path)),
    )


def _by_folder(files: Sequence[File]) -> Mapping[str, list[File]]:
    found: dict[str, list[File]] = {}
    for file in files:
        found.setdefault(file.folder, []).append(file)
    return found
