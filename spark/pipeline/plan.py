"""Pure, but for listing: which hours there are, and which of them need to be compacted."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from itertools import groupby

from spark.errors import Unusable
from spark.pipeline.lineage import Record, Summed, read_record, read_summed
from spark.storage.protocol import File, HistoryFiles, each_of
from spark.tables import layout
from spark.tables.sample_files import Skipped

Listing = Callable[[str, int], list[File]]
LATE = "arrived after other files of its hour were deleted; the hour was not recomputed"


@dataclass(frozen=True, slots=True)
class FoundHour:
    """A finished hour: what lies there, and how it was compacted, if it was."""

    start: datetime
    files: tuple[File, ...]
    record: Record | None
    gone: frozenset[str] = frozenset()
    """Names of files that it was made from and that are there no more, though others are: made again, it would lose
    their rows."""
    is_lost: bool = False
    """Whether a table of it is missing or cannot be read, and it cannot be made again either."""

    @property
    def name(self) -> str:
        return layout.hour_name(self.start)

    @property
    def has_changed(self) -> bool:
        """Retention may have taken all its files: then the hour is not compacted again."""
        return self._can_be_made and (self.record is None or not self.record.covers(self.files))

    def needs(self, before: "FoundHour | None") -> bool:
        """Whether it has changed, or what the hour before ends with has; what retention took is no reason."""
        has_other_start = bool(
            before and before.record and self.record and before.record.ends_with != self.record.started_from
        )
        return self.has_changed or (self._can_be_made and has_other_start)

    def unreadable(self) -> "FoundHour":
        """As one to be made again, if that can be."""
        return replace(self, record=None) if self._can_be_made and self.record else replace(self, is_lost=True)

    def checked(self, tables: Sequence[File]) -> "FoundHour":
        """As one to be made again where others than its own tables lie there, if that can be."""
        is_mixed = self._can_be_made and self.record and not self.record.has_its_tables(tables)
        return replace(self, record=None) if is_mixed else self

    @property
    def late(self) -> tuple[File, ...]:
        """Files that came when others were gone, and so too late."""
        compacted = self.record.files if self.record else {}
        return tuple(file for file in self.files if self.gone and compacted.get(file.name) != file.size)

    @property
    def _can_be_made(self) -> bool:
        return bool(self.files) and not self.gone


@dataclass(frozen=True, slots=True)
class FoundHours:
    """All finished hours in order; what lies where no finished hour lies."""

    hours: tuple[FoundHour, ...]
    skipped: tuple[Skipped, ...]


def found_in(files: HistoryFiles, until: datetime, now: datetime, tables_in: Listing | None = None) -> FoundHours:
    """`tables_in`: lists files as `files.listed` does, which knows no versions in a bucket. Raises Unusable where there
    is no history."""
    samples = _by_hour(files.listed(layout.SAMPLES, 2))
    tables = _by_hour((tables_in or files.listed)(layout.HOURS, 2))
    names = samples.keys() | tables.keys()
    if not names:
        raise Unusable(f"{files.shown()} holds no samples: there is no samples/date=…/hour=…/ with a file in it")
    starts = {name: layout.start_of(name) for name in names}
    finished = sorted(
        (start, name) for name, start in starts.items() if start and start < until and start + layout.HOUR <= until
    )
    summed_of = cache(partial(read_summed, files))
    hours = each_of(
        files,
        lambda hour: _hour_of(files, hour[0], samples.get(hour[1], ()), summed_of).checked(tables.get(hour[1], ())),
        finished,
    )
    strange = [
        Skipped(layout.samples_folder(name), "is no folder of an hour")
        for name, start in starts.items()
        if start is None
    ]
    future = [
        Skipped(layout.samples_folder(name), "lies in the future")
        for name, start in starts.items()
        if start and start > now
    ]
    late = [Skipped(file.path, LATE) for hour in hours for file in hour.late]
    return FoundHours(
        tuple(hour for hour in hours if hour.record or (hour.files and not hour.gone)),
        tuple(sorted(strange + future + late, key=lambda each: each.path)),
    )


def _hour_of(
    files: HistoryFiles, start: datetime, stored: Sequence[File], summed_of: Callable[[str], Mapping[str, Summed]]
) -> FoundHour:
    """`summed_of`: of a day, what its tables were made from: they outlive their hours' records."""
    name, file_names = layout.hour_name(start), {file.name for file in stored}
    record = read_record(files, name)
    gone: Collection[str] = ()
    if stored and record and record.files.keys() - file_names:
        gone = record.used - file_names
    elif stored and not record:
        summed = summed_of(layout.day_of(name)).get(name)
        gone = {*summed.files} - file_names if summed else ()
    return FoundHour(start, tuple(stored), record, frozenset(gone))


def _by_hour(files: Sequence[File]) -> Mapping[str, list[File]]:
    """By the hours' names. `files`: in the order of their paths."""
    return {hour: list(of_hour) for hour, of_hour in groupby(files, key=lambda file: layout.hour_of(file.path))}
