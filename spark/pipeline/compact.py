"""Finished hours of samples -> deltas, totals and partitions of each hour; days of these -> hourly and daily.

An hour is done again when its files have changed, or what it starts from: the values that the hour before carries.
A day's tables are made again when one of its hours was. Every table says what it was made from, so a run that was
ended anywhere leaves nothing that the next one would not make good.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import SparkSession

from spark.errors import SampleFilesDamaged, TableUnreadable
from spark.figures import formatting
from spark.pipeline.batches import DEFAULT_LIMITS, Batch, Limits, batch_from
from spark.pipeline.days import summarised
from spark.pipeline.hour_task import MadeHour
from spark.pipeline.lineage import Record, write_record
from spark.pipeline.plan import Found, Hour, found_in
from spark.pipeline.runs import Run, Say, staging_of
from spark.pipeline.stage import stage_batch
from spark.storage.protocol import Files
from spark.tables import layout
from spark.tables.sample_files import Skipped


@dataclass(frozen=True, slots=True)
class Outcome:
    hours: tuple[datetime, ...]
    days: tuple[str, ...]
    skipped: tuple[Skipped, ...]


def compact(
    files: Files,
    session: Callable[[], SparkSession],
    until: datetime,
    now: datetime,
    say: Say,
    check: Callable[[], None] = lambda: None,
    limits: Limits = DEFAULT_LIMITS,
    stop: Callable[[], None] = lambda: None,
) -> Outcome:
    """Raises Unusable where there is no history to compact, OSError where a file cannot be read or written, or another
    run is at work. `session` is called where there is anything to do, and not before; `stop` after an error, so that no
    task stages anything where all that was staged is being deleted."""
    with files.reserved() as refuse_if_lost, staging_of(files, now) as staging:
        try:
            run = Run(files, staging, session, say, check, refuse_if_lost, limits)
            return _compacted(run, lambda: found_in(files, min(until, now), now))
        except BaseException:
            stop()
            raise


def _compacted(run: Run, find: Callable[[], Found]) -> Outcome:
    found = find()
    hours, skipped = _compact_hours(run, found.hours)
    days = summarised(run, found.hours)
    tried: set[str] = set()
    while again := days.unreadable - tried:
        tried |= again
        there = [hour.unreadable() if hour.name in again else hour for hour in find().hours]
        more_hours, more_skipped = _compact_hours(run, there)
        hours, skipped = hours + more_hours, skipped + more_skipped
        more_days = summarised(run, found.hours)  # what was skipped before may not be any more
        days = replace(more_days, done=(*days.done, *more_days.done))
    return Outcome(tuple(hours), days.done, (*found.skipped, *skipped, *days.skipped))


def _compact_hours(run: Run, there: Sequence[Hour]) -> tuple[list[datetime], list[Skipped]]:
    hours, done, skipped = list(there), [], []
    tried: set[str] = set()
    at = 0
    while at < len(hours):
        before = hours[at - 1] if at else None
        if not hours[at].needs(before):
            at += 1
            continue
        run.check()
        batch = batch_from(run.files, hours, at, run.limits.of_batch)
        _announce(run, batch)
        try:
            records = _compact_readable(run, batch)
        except TableUnreadable as unreadable:
            at -= 1
            hours[at] = replace(hours[at], is_lost=True) if unreadable.path in tried else hours[at].unreadable()
            tried.add(unreadable.path)
            continue
        for place, record in enumerate(records, at):
            hours[place] = replace(hours[place], record=record)
        done += [hour.start for hour in batch.hours]
        skipped += [each for record in records for each in record.skipped]
        at += len(records)
    return done, skipped


def _announce(run: Run, batch: Batch) -> None:
    first, last = batch.hours[0].start, batch.hours[-1].start
    until = f" to {last:%Y-%m-%d %H:00}" if last > first else ""
    files = formatting.plural(sum(len(hour.sound) for hour in batch.hours), "file")
    rows = formatting.plural(sum(hour.rows for hour in batch.hours), "row")
    run.say(f"compacting {first:%Y-%m-%d %H:00}{until}: {rows} of {files}")


def _compact_readable(run: Run, batch: Batch) -> list[Record]:
    """Without the files whose rows turn out to be unusable, though their footers are sound. Raises TableUnreadable."""
    while True:
        try:
            staged = stage_batch(run, batch)
        except SampleFilesDamaged as damaged:
            batch = batch.without(damaged.reasons)
        else:
            run.check()
            return _publish(run, batch, staged)


def _publish(run: Run, batch: Batch, staged: Sequence[tuple[MadeHour, Mapping[str, str]]]) -> list[Record]:
    records: list[Record] = []
    for of, (made, writers) in zip(batch.hours, staged, strict=True):
        sizes = {file.name: file.size for file in of.hour.files}
        started_from = records[-1].ends_with if records else batch.started_from
        record = Record(sizes, started_from, made.carried, writers, of.skipped)
        write_record(run.files, made.folder, record)
        run.refuse_if_lost()
        run.files.publish(made.folder, layout.hour_folder(of.hour.name))
        records.append(record)
    return records
