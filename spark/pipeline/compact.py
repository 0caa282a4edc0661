"""Finished hours of samples -> deltas, totals and partitions of each hour; days of these -> hourly, daily and minutes.

An hour is done again when its files have changed, or what it starts from: the values that the hour before carries.
A day's tables are made again when one of its hours was. An hour is found (`plan`), examined (`batches`), staged by a
task (`hour_task`), and published here with its record. Every table says what it was made from, so a run that was
ended anywhere leaves nothing that the next one would not make good.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import takewhile

from spark.engine.jobs import Spark, is_on_one_machine, parallelism
from spark.errors import SampleFilesDamaged, TableUnreadable
from spark.figures import formatting
from spark.pipeline.batches import DEFAULT_LIMITS, Batch, BatchLimits, ExaminedHour, batch_from
from spark.pipeline.days import summarised
from spark.pipeline.examining import examining
from spark.pipeline.hour_task import StagedRange
from spark.pipeline.lineage import Record, digest_of_all, manifest_of_hour
from spark.pipeline.plan import FoundHour, FoundHours, found_in
from spark.pipeline.publishing import publishing
from spark.pipeline.runs import Run, Say, staging_of
from spark.pipeline.stage import staged_hours
from spark.storage.protocol import File, HistoryFiles
from spark.tables import layout
from spark.tables.sample_files import Skipped, minute_of


@dataclass(frozen=True, slots=True)
class CompactionResult:
    hours: tuple[datetime, ...]
    days: tuple[str, ...]
    skipped: tuple[Skipped, ...]


def compact(  # noqa: PLR0913, PLR0917 - the command and tests bring these
    files: HistoryFiles,
    session: Callable[[], Spark],
    until: datetime,
    now: datetime,
    say: Say,
    check: Callable[[], None] = lambda: None,
    limits: BatchLimits = DEFAULT_LIMITS,
    stop: Callable[[], None] = lambda: None,
    show: Say | None = None,
) -> CompactionResult:
    """Raises Unusable where there is no history to compact, OSError where a file cannot be read or written, or another
    run is at work. `session` is called where there is anything to do, and not before; `stop` after an error, so that no
    task stages anything where all that was staged is being deleted. `show`: a line that replaces the one before."""
    with files.reserved() as refuse_if_lost, staging_of(files, now) as staging:
        try:
            run = Run(files, staging, session, say, check, refuse_if_lost, limits, show)
            return _compacted(run, lambda: found_in(files, min(until, now), now, files.versioned))
        except BaseException:
            stop()
            raise


@dataclass(slots=True)
class Attempts:
    """What the attempts of a run have done, and what they could not read."""

    records: dict[str, Record] = field(default_factory=dict)
    """Of the hours that were made, by their names."""
    days: list[str] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)
    """Path of a file of samples -> what is wrong with its rows."""
    unreadable: set[str] = field(default_factory=set)
    """Names of the hours with a table that could not be read."""
    lost: set[str] = field(default_factory=set)
    """Those that could not be read again after they had been made again."""

    def note(self, error: SampleFilesDamaged | TableUnreadable) -> None:
        """Raises the error where it says nothing new, for then another attempt would end as this one did."""
        before = len(self.damaged) + len(self.unreadable) + len(self.lost)
        if isinstance(error, SampleFilesDamaged):
            self.damaged |= error.reasons
        else:
            hours = {layout.hour_of(path) for path in error.paths}
            again = hours - self.unreadable
            self.lost |= hours - again
            self.unreadable |= again
            self.records = {name: record for name, record in self.records.items() if name not in again}
        if before == len(self.damaged) + len(self.unreadable) + len(self.lost):
            raise error

    def marked(self, hour: FoundHour) -> FoundHour:
        """With what earlier attempts have found out about it."""
        if hour.name in self.lost:
            return replace(hour, is_lost=True)
        return hour.unreadable() if hour.name in self.unreadable - self.records.keys() else hour


def _compacted(run: Run, find: Callable[[], FoundHours]) -> CompactionResult:
    """Each attempt leaves out or makes again what the ones before could not read, and does what they have left."""
    attempts = Attempts()
    while True:
        try:
            return _attempt(run, find(), attempts)
        except (SampleFilesDamaged, TableUnreadable) as error:
            attempts.note(error)


def _attempt(run: Run, found_hours: FoundHours, attempts: Attempts) -> CompactionResult:
    _compact_hours(run, [attempts.marked(hour) for hour in found_hours.hours], attempts)
    days = summarised(run, found_hours.hours)
    attempts.days += days.done
    again = {path for path in days.unreadable if layout.hour_of(path) not in attempts.unreadable}
    if again:
        raise TableUnreadable(*sorted(again))
    made = [hour for hour in found_hours.hours if hour.name in attempts.records]
    skipped = [file for hour in made for file in attempts.records[hour.name].skipped]
    hours = tuple(hour.start for hour in made)
    return CompactionResult(hours, tuple(attempts.days), (*found_hours.skipped, *skipped, *days.skipped))


def _compact_hours(run: Run, hours: list[FoundHour], attempts: Attempts) -> None:
    """In order of time: whether an hour needs it depends on how the one before was compacted."""
    at = 0
    while at < len(hours):
        if not hours[at].needs(hours[at - 1] if at else None):
            at += 1
            continue
        run.check()
        session = run.session()
        at_once = parallelism(session)
        limits = run.limits.on(at_once, is_cluster=not is_on_one_machine(session))
        changed = [hours[at], *takewhile(lambda hour: hour.has_changed, hours[at + 1 :])]
        examined = examining(run, changed, limits, attempts.damaged, at_once)
        batch = batch_from(examined, hours[at - 1] if at else None, limits.of_batch)
        _announce(run, batch)
        with publishing(run) as publish, closing(staged_hours(run, batch)) as staged:
            for record, files in _recorded(batch, staged):
                publish(partial(_publish, run, hours[at], record, files, attempts))
                hours[at] = replace(hours[at], record=record)
                at += 1


def _publish(run: Run, hour: FoundHour, record: Record, files: Sequence[File], attempts: Attempts) -> None:
    run.files.publish([file.path for file in files], layout.hour_folder(hour.name), manifest_of_hour(record))
    attempts.records[hour.name] = record


def _announce(run: Run, batch: Batch) -> None:
    first, last = batch.hours[0].start, batch.hours[-1].start
    until = f" to {last:%Y-%m-%d %H:00}" if last > first else ""
    files = formatting.plural(sum(len(hour.sound) for hour in batch.hours), "file")
    rows = formatting.plural(sum(hour.rows for hour in batch.hours), "row")
    run.say(f"compacting {first:%Y-%m-%d %H:00}{until}: {rows} of {files}")


def _recorded(batch: Batch, staged: Iterable[Sequence[StagedRange]]) -> Iterator[tuple[Record, list[File]]]:
    """Each hour's record and the files of its tables, as they arrive."""
    started_from = batch.started_from
    for hour, ranges in zip(batch.hours, staged, strict=True):
        files = [file for each in ranges for file in each.files]
        tables = {file.name: file.size for file in files}
        record = replace(_record_of(hour, ranges), started_from=started_from, tables=tables)
        started_from = record.ends_with
        yield record, files


def _record_of(hour: ExaminedHour, ranges: Sequence[StagedRange]) -> Record:
    """Without what the hour before and the staged files decide."""
    return Record(
        files={file.name: file.size for file in hour.found.files},
        started_from="",
        carried=str(digest_of_all(each.carried for each in ranges)),
        writers=_writers_at_end(hour, {cluster for each in ranges for cluster in each.clusters}),
        skipped=hour.skipped,
        bounds=hour.bounds,
    )


def _writers_at_end(hour: ExaminedHour, clusters: Iterable[str]) -> dict[str, str]:
    """By cluster who counted in the last minute. `clusters`: those with a sample in it."""
    if hour.chosen is None:
        return {cluster: writer for cluster in sorted(clusters) for writer in hour.writers}
    last = minute_of(hour.start + layout.HOUR) - 1
    return {cluster: writer for (cluster, minute), writer in hour.chosen.items() if minute == last}
