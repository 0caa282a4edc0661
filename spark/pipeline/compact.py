"""Finished hours of samples -> deltas, totals and partitions of each hour; days of these -> hourly and daily.

An hour is done again when its files have changed, or what it starts from: the values that the hour before carries.
A day's tables are made again when one of its hours was. Every table says what it was made from, so a run that was
ended anywhere leaves nothing that the next one would not make good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING

from spark.errors import Damaged, Spoilt
from spark.figures import formatting
from spark.pipeline.batches import Batch, Engine, Staged, at_of
from spark.pipeline.compact_in_memory import InMemory
from spark.pipeline.days import summarised
from spark.pipeline.lineage import Record, write_record
from spark.pipeline.plan import Found, Hour, found_in, refuse_missing
from spark.pipeline.publish import Staging, staging_of, swap
from spark.pipeline.runs import DEFAULT_LIMITS, Limits, Run, Say
from spark.storage.protocol import Files, each_of
from spark.tables.sample_files import MISPLACED, Skipped, Sound, examined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DEFAULT_LIMITS", "LOST", "Limits", "Outcome", "compact"]

ROWS_OF_A_SECOND = 1_000_000
"""What is compacted in memory in about a second."""

LOST = "is missing or cannot be read, and cannot be made again: differences to the hour before are missing"


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
    expect: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Raises Unusable where there is no history to compact, OSError where a file cannot be read or written, or another
    run is at work. `session` is asked for only where Spark is needed; `expect`
    is told before the bytes to be read at least."""
    refuse_missing(files)
    with files.reserved():
        found = found_in(files, min(until, now), now)
        expect(sum(file.size for hour in found.hours if hour.has_changed for file in hour.files))
        with staging_of(files, now) as staging:

            def by_spark() -> Engine:
                from spark.pipeline.compact_by_spark import BySpark  # noqa: PLC0415 -- half a second, where Spark is needed alone

                return BySpark(files, staging, session, check)

            in_memory = InMemory(files, staging) if limits.in_memory else None
            run = Run(files, staging, say, check, limits, by_spark, in_memory)
            return _compacted(run, found, lambda: found_in(files, min(until, now), now))


def _compacted(run: Run, found: Found, find_again: Callable[[], Found]) -> Outcome:
    hours, skipped = _compact_hours(run, found.hours)
    days = summarised(run, found.hours)
    tried: set[str] = set()
    while again := days.spoilt - tried:
        tried |= again
        there = [hour.spoilt() if hour.folder in again else hour for hour in find_again().hours]
        more_hours, more_skipped = _compact_hours(run, there)
        hours, skipped = hours + more_hours, skipped + more_skipped
        more_days = summarised(run, found.hours)  # what was skipped before may not be any more
        days = replace(more_days, done=(*days.done, *more_days.done))
    _forget(run.files, found)
    return Outcome(tuple(hours), days.done, (*found.skipped, *skipped, *days.skipped))


def _compact_hours(run: Run, there: Sequence[Hour]) -> tuple[list[datetime], list[Skipped]]:
    hours, done, skipped = list(there), [], []
    told: set[date] = set()
    tried: set[str] = set()
    at = 0
    while at < len(hours):
        before = hours[at - 1] if at else None
        if not hours[at].needs(before):
            at += 1
            continue
        run.check()
        batch = _batch_from(run, hours, at)
        _announce(run, batch, hours[at:], told)
        try:
            batch, records = _compact_readable(run, batch)
        except Spoilt as spoilt:
            at -= 1
            hours[at] = replace(hours[at], is_lost=True) if spoilt.folder in tried else hours[at].spoilt()
            tried.add(spoilt.folder)
            continue
        for place, record in enumerate(records, at):
            hours[place] = replace(hours[place], record=record)
        done += [hour.start for hour in batch.hours]
        skipped += [each for hour in batch.hours for each in batch.skipped[hour.start]]
        at += len(records)
    return done, skipped


def _batch_from(run: Run, hours: Sequence[Hour], first: int) -> Batch:
    """The hour, and where Spark is to do it, its successors that have changed as well."""
    taken: list[Hour] = []
    sound: dict[datetime, tuple[Sound, ...]] = {}
    skipped: dict[datetime, tuple[Skipped, ...]] = {}
    rows = 0
    for hour in hours[first:]:
        if taken and not hour.has_changed:
            break
        results = each_of(run.files, partial(examined, run.files, hour=hour.start), hour.files)
        good = tuple(each for each in results if isinstance(each, Sound))
        rows += sum(each.rows for each in good)
        if taken and rows > run.limits.of_spark:
            break
        taken.append(hour)
        sound[hour.start] = good
        skipped[hour.start] = (*(each for each in results if isinstance(each, Skipped)), *_misplaced(good))
        if run.fits(rows):
            break
    before = hours[first - 1] if first else None
    if before and before.is_lost:
        skipped[taken[0].start] = (*skipped[taken[0].start], Skipped(f"_carry/{before.folder}", LOST))
    return Batch(tuple(taken), sound, skipped, before)


def _misplaced(sound: Iterable[Sound]) -> list[Skipped]:
    return [Skipped(each.file.path, MISPLACED) for each in sound if not each.is_of_its_hour]


def _announce(run: Run, batch: Batch, hours: Sequence[Hour], told: set[date]) -> None:
    """A line for each batch that takes a while; of quicker hours one for each day, kept in `told`."""
    first, last = batch.hours[0].start, batch.hours[-1].start
    if batch.rows >= ROWS_OF_A_SECOND or not run.fits(batch.rows):
        until = f" to {last:%Y-%m-%d %H:00}" if last > first else ""
        run.say(f"compacting {first:%Y-%m-%d %H:00}{until}: {batch.rows:,} rows of {len(batch.files)} files")
    elif first.date() not in told:
        told.add(first.date())
        sizes = [sum(file.size for file in hour.files) for hour in hours if hour.start.date() == first.date()]
        run.say(f"compacting {first:%Y-%m-%d}: {formatting.plural(len(sizes), 'hour')}, {sum(sizes) / 1e6:,.1f} MB")


def _compact_readable(run: Run, batch: Batch) -> tuple[Batch, list[Record]]:
    """Without the files whose rows turn out to be unusable, though their footers are sound. Raises Spoilt."""
    if batch.starts_from and batch.carries and not run.files.listed(f"_carry/{batch.starts_from}", 0):
        raise Spoilt("_carry", batch.starts_from)
    while True:
        try:
            staged = run.engine(batch.rows).stage_batch(batch)
        except Damaged as damaged:
            batch = _without(batch, damaged.reasons)
        else:
            records = _records(batch, staged)
            run.check()
            _publish(run.staging, batch, records)
            return batch, records


def _without(batch: Batch, reasons: Mapping[str, str]) -> Batch:
    gone = [Skipped(path, reason) for path, reason in reasons.items()]
    return replace(
        batch,
        sound={
            start: tuple(each for each in sound if each.file.path not in reasons)
            for start, sound in batch.sound.items()
        },
        skipped={
            hour.start: (*batch.skipped[hour.start], *(each for each in gone if f"/{hour.folder}/" in each.path))
            for hour in batch.hours
        },
    )


def _records(batch: Batch, staged: Staged) -> list[Record]:
    records: list[Record] = []
    for hour in batch.hours:
        start = records[-1].ends_with if records else batch.start
        sizes = {file.name: file.size for file in hour.files}
        records.append(Record(sizes, start, staged.carried.get(hour.start, ""), staged.writers[hour.start]))
    return records


def _publish(staging: Staging, batch: Batch, records: Sequence[Record]) -> None:
    """An hour's deltas come last: with them lies the record that says that all is there."""
    for hour, record in zip(batch.hours, records, strict=True):
        folder = f"at={at_of(hour.start)}"
        write_record(staging.files, staging.path(f"deltas/{folder}"), record, batch.skipped[hour.start])
        for staged, table in (("carried", "_carry"), *((each, each) for each in ("partitions", "totals", "deltas"))):
            swap(staging, f"{staged}/{folder}", f"{table}/{hour.folder}")


def _forget(files: Files, found: Found) -> None:
    """What an hour carries is of no use once retention has taken its deltas."""
    oldest = f"_carry/{found.hours[0].folder}" if found.hours else ""
    for folder in {file.folder for file in files.listed("_carry", 2) if file.folder < oldest}:
        files.delete(folder)
