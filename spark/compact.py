"""Finished hours of samples -> deltas, totals and partitions of each hour; days of these -> hourly and daily.

An hour is done again when its files have changed, or what it starts from: the values that the hour before carries.
A day's tables are made again when one of its hours was. Every table says what it was made from, so a run that was
ended anywhere leaves nothing that the next one would not make good.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from spark.deltas import CARRIED, carried_of, deltas_of, digests_of, partitions_of, series_hours_of, totals_of
from spark.files import Files
from spark.hourly import daily_of, hourly_of
from spark.labels import labels_in, labels_of
from spark.plan import Found, Hour, found_in
from spark.problems import is_about
from spark.publish import Staging, stage, staging_of, swap, swap_file
from spark.read_history import (
    HOUR,
    Skipped,
    Sound,
    empty,
    examined,
    samples_of,
    schema_of,
)
from spark.records import ANY, Record, read_record, write_record
from spark.tables_contract import DELTAS, PARTITIONS, TOTALS
from spark.writers import chosen_of, clusters_at, counts_of, of_chosen

BATCH_ROWS = 8_000_000
"""Of neighbouring hours that are compacted together: what two cores sort within a heap of a gigabyte."""

AT = T.StructField("at", T.IntegerType())
"""Of a staged table's folders: hours since the epoch. A number costs less per row than the date and hour in words."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Run:
    """What one call works with; the session is started when it is first asked for."""

    files: Files
    session: Callable[[], SparkSession]
    staging: Staging
    say: Say
    check: Callable[[], None]
    """Raises Interrupted when the run is to end."""
    batch_rows: int


@dataclass(frozen=True, slots=True)
class Outcome:
    hours: tuple[datetime, ...]
    days: tuple[str, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Neighbouring hours with the files that can be used, and what they start from."""

    hours: tuple[Hour, ...]
    sound: Mapping[datetime, tuple[Sound, ...]]
    skipped: Mapping[datetime, tuple[Skipped, ...]]
    before: Hour | None

    @property
    def start(self) -> str:
        return _ends_with(self.before)


def compact(
    files: Files,
    session: Callable[[], SparkSession],
    until: datetime,
    now: datetime,
    say: Say,
    check: Callable[[], None] = lambda: None,
    batch_rows: int = BATCH_ROWS,
    expect: Callable[[int], None] = lambda _: None,
) -> Outcome:
    """Raises Unusable where there is no history to compact. `expect` is told the bytes to be read at least, before the
    session is asked for."""
    found = found_in(files, min(until, now), now)
    expect(sum(file.size for hour in found.hours if hour.has_changed for file in hour.files))
    run = Run(files, session, staging_of(files, now), say, check, batch_rows)
    try:
        hours, skipped = _compact_hours(run, found)
        days = _summarise_days(run, found)
        _forget(files, found)
    finally:
        files.delete(run.staging.folder)
    return Outcome(tuple(hours), tuple(days), (*found.skipped, *skipped))


def _compact_hours(run: Run, found: Found) -> tuple[list[datetime], list[Skipped]]:
    hours, done, skipped = list(found.hours), [], []
    at = 0
    while at < len(hours):
        before = hours[at - 1] if at else None
        if not hours[at].needs(before):
            at += 1
            continue
        run.check()
        batch = _batch_from(run, hours, at)
        run.say(_announced(batch))
        batch, records = _compact_readable(run, batch)
        for place, record in enumerate(records, at):
            hours[place] = replace(hours[place], record=record)
        done += [hour.start for hour in batch.hours]
        skipped += [each for hour in batch.hours for each in batch.skipped[hour.start]]
        at += len(records)
    return done, skipped


def _ends_with(hour: Hour | None) -> str:
    return hour.record.ends_with if hour and hour.record else ""


def _batch_from(run: Run, hours: Sequence[Hour], first: int) -> Batch:
    """The hour, and its successors that have changed as well, up to `batch_rows`."""
    taken: list[Hour] = []
    sound: dict[datetime, tuple[Sound, ...]] = {}
    skipped: dict[datetime, tuple[Skipped, ...]] = {}
    rows = 0
    for hour in hours[first:]:
        if taken and not hour.has_changed:
            break
        results = [examined(run.files, file, hour.start) for file in hour.files]
        good = tuple(each for each in results if isinstance(each, Sound))
        rows += sum(each.rows for each in good)
        if taken and rows > run.batch_rows:
            break
        taken.append(hour)
        sound[hour.start] = good
        skipped[hour.start] = (*(each for each in results if isinstance(each, Skipped)), *_misplaced(good))
    return Batch(tuple(taken), sound, skipped, hours[first - 1] if first else None)


def _misplaced(sound: Iterable[Sound]) -> list[Skipped]:
    return [
        Skipped(each.file.path, "holds rows of another hour than its folder's; they are left out")
        for each in sound
        if not each.is_of_its_hour
    ]


def _announced(batch: Batch) -> str:
    files = sum(len(sound) for sound in batch.sound.values())
    rows = sum(each.rows for sound in batch.sound.values() for each in sound)
    first, last = batch.hours[0].start, batch.hours[-1].start
    hours = f"{first:%Y-%m-%d %H:00}" + (f" to {last:%Y-%m-%d %H:00}" if last > first else "")
    return f"compacting {hours}: {rows:,} rows of {files} files"


def _compact_readable(run: Run, batch: Batch) -> tuple[Batch, list[Record]]:
    """Without the files whose pages turn out to be unreadable, though their footers are sound."""
    while True:
        try:
            return batch, _compact_batch(run, batch)
        except (PySparkException, Py4JError) as error:
            run.check()
            unreadable = [each for sound in batch.sound.values() for each in sound if is_about(error, each.file.path)]
            if not unreadable:
                raise
            batch = _without(batch, unreadable)


def _without(batch: Batch, unreadable: Sequence[Sound]) -> Batch:
    gone = [Skipped(each.file.path, "is damaged: its footer can be read, its rows cannot") for each in unreadable]
    return replace(
        batch,
        sound={start: tuple(each for each in sound if each not in unreadable) for start, sound in batch.sound.items()},
        skipped={
            hour.start: (*batch.skipped[hour.start], *(each for each in gone if f"/{hour.folder}/" in each.path))
            for hour in batch.hours
        },
    )


def _compact_batch(run: Run, batch: Batch) -> list[Record]:
    staging, session = run.staging, run.session()
    carried = _read(session, run.files, CARRIED, [f"_carry/{batch.before.folder}"] if batch.before else [])
    samples, writers = _counting(run, batch)
    stage(deltas_of(samples, carried, _labels(run, batch, samples)), staging, "deltas", by=("at",))
    run.check()
    deltas = _staged(session, staging, "deltas", schema_of(DELTAS))
    with _beside(lambda: stage(totals_of(deltas), staging, "totals", by=("at",))):
        stage(series_hours_of(deltas), staging, "series", by=("at",))
        run.check()
        series = session.read.parquet(staging.uri("series")) if _has(staging, "series") else None
        if series is not None:
            stage(partitions_of(series), staging, "partitions", by=("at",))
        _stage_carried(session, staging, batch, series, carried)
    records = _records(batch, _digests(session, staging), writers)
    run.check()
    _publish(staging, batch, records)
    return records


@contextlib.contextmanager
def _beside(work: Callable[[], None]) -> Iterator[None]:
    """The work is done in a thread of its own, and has ended without an error where the block is left without one:
    while one job is planned, another one computes."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(work)
        yield
        other.result()


def _labels(run: Run, batch: Batch, samples: DataFrame) -> DataFrame:
    """Pages that cannot be read are left to Spark's own job, which fails on them as on all others."""
    paths = [run.files.local_path(each.file) for hour in batch.hours for each in batch.sound[hour.start]]
    local = [path for path in paths if path is not None]
    if len(local) == len(paths):
        with contextlib.suppress(OSError, pa.ArrowException):
            return labels_in(run.session(), local)
    return labels_of(samples)


def _counting(run: Run, batch: Batch) -> tuple[DataFrame, dict[datetime, dict[str, str]]]:
    """The rows of the writers that count, and who counted in each hour's last minute."""
    session = run.session()
    sound = [each for hour in batch.hours for each in batch.sound[hour.start]]
    samples = samples_of(session, run.files, sound)
    if len({each.writer for each in sound}) <= 1:
        return samples, {start: {ANY: each[0].writer} if each else {} for start, each in batch.sound.items()}
    chosen = chosen_of(counts_of(samples), _chosen_before(run, batch))
    last = {hour.start: _minute(hour.start + HOUR) - 1 for hour in batch.hours}
    at_end = {
        start: {cluster: writer for (cluster, minute), writer in chosen.items() if minute == end}
        for start, end in last.items()
    }
    return of_chosen(session, samples, chosen), at_end


def _chosen_before(run: Run, batch: Batch) -> dict[tuple[str, int], str]:
    first, before = batch.hours[0].start, batch.before
    if before is None or before.record is None or before.start + HOUR != first:
        return {}
    minute, writers = _minute(first) - 1, before.record.writers
    if ANY not in writers:
        return {(cluster, minute): writer for cluster, writer in writers.items()}
    totals = _read(run.session(), run.files, schema_of(TOTALS), [f"totals/{before.folder}"])
    return {(cluster, minute): writers[ANY] for cluster in clusters_at(totals, minute)}


def _at(hour: Hour) -> int:
    return int(hour.start.timestamp()) // 3600


def _minute(at: datetime) -> int:
    return int(at.timestamp()) // 60


def _stage_carried(
    session: SparkSession, staging: Staging, batch: Batch, series: DataFrame | None, carried: DataFrame
) -> None:
    hours = session.createDataFrame(
        pa.table(
            {
                "at": pa.array([_at(hour) for hour in batch.hours], pa.int32()),
                "place": pa.array(range(len(batch.hours)), pa.int32()),
                "ends_at": pa.array([hour.start + HOUR for hour in batch.hours], pa.timestamp("us", tz="UTC")),
            }
        )
    )
    of_hours = empty(session, T.StructType([*CARRIED, AT])) if series is None else series
    stage(carried_of(of_hours, carried, hours), staging, "carried", by=("at",))


def _digests(session: SparkSession, staging: Staging) -> dict[int, str]:
    """Of each hour's (`at`) carried values; an hour that carries none is not among them."""
    if not _has(staging, "carried"):
        return {}
    rows = digests_of(_staged(session, staging, "carried", CARRIED)).collect()
    return {row["at"]: f"{row['series']}-{row['digest']}" for row in rows}


def _records(batch: Batch, digests: Mapping[int, str], writers: Mapping[datetime, Mapping[str, str]]) -> list[Record]:
    records: list[Record] = []
    for hour in batch.hours:
        start = records[-1].ends_with if records else batch.start
        sizes = {file.name: file.size for file in hour.files}
        records.append(Record(sizes, start, digests.get(_at(hour), ""), writers[hour.start]))
    return records


def _publish(staging: Staging, batch: Batch, records: Sequence[Record]) -> None:
    """An hour's deltas come last: with them lies the record that says that all is there."""
    for hour, record in zip(batch.hours, records, strict=True):
        folder = f"{AT.name}={_at(hour)}"
        write_record(staging.files, staging.path(f"deltas/{folder}"), record, batch.skipped[hour.start])
        for staged, table in (("carried", "_carry"), *((each, each) for each in ("partitions", "totals", "deltas"))):
            swap(staging, f"{staged}/{folder}", f"{table}/{hour.folder}")


def _summarise_days(run: Run, found: Found) -> list[str]:
    """A day has all its compacted hours, also those that this run was not asked for."""
    done = []
    days: dict[str, set[str]] = {}
    for hour in found.hours:
        days.setdefault(f"{hour.start:%Y-%m-%d}", set()).add(hour.folder)
    for day, asked in days.items():
        there = {file.folder.removeprefix("deltas/") for file in run.files.listed(f"deltas/date={day}", 1)}
        records = {folder: read_record(run.files, folder) for folder in sorted(asked | there)}
        made_from = {folder: record.identity for folder, record in records.items() if record}
        was_made_from = _made_from(run.files, day)
        if any(was_made_from.get(folder) != identity for folder, identity in made_from.items()):
            run.check()
            run.say(f"summarising {day}: {len(made_from)} hours")
            _summarise(run, day, made_from)
            done.append(day)
    return done


def _forget(files: Files, found: Found) -> None:
    """What an hour carries is of no use once retention has taken its deltas."""
    oldest = f"_carry/{found.hours[0].folder}" if found.hours else ""
    for folder in {file.folder for file in files.listed("_carry", 2) if file.folder < oldest}:
        files.delete(folder)


def _made_from(files: Files, day: str) -> Mapping[str, str]:
    """Hour -> identity of its deltas; hours that retention took since are no reason to forget them."""
    try:
        return dict(json.loads(files.read(f"hourly/date={day}/_inputs.json") or "{}"))
    except (ValueError, TypeError):
        return {}


def _summarise(run: Run, day: str, made_from: Mapping[str, str]) -> None:
    session, staging = run.session(), run.staging
    totals = _read(session, run.files, schema_of(TOTALS), [f"totals/{folder}" for folder in made_from])
    partitions = _read(session, run.files, schema_of(PARTITIONS), [f"partitions/{folder}" for folder in made_from])
    folder = f"hourly/date={day}"
    hourly, daily = hourly_of(totals, partitions), daily_of(totals, partitions)
    with _beside(lambda: stage(_in_one_file(hourly, "hour"), staging, folder)):
        stage(_in_one_file(daily, "day"), staging, f"daily/{day}")
    run.files.write(f"{staging.path(folder)}/_inputs.json", json.dumps(made_from, indent=1))
    swap_file(staging, f"daily/{day}", f"daily/{day}.parquet")
    swap(staging, folder, folder)


def _in_one_file(rows: DataFrame, time: str) -> DataFrame:
    return rows.repartition(1).sortWithinPartitions("cluster", "group", "topic", time)


def _read(session: SparkSession, files: Files, schema: T.StructType, folders: Iterable[str]) -> DataFrame:
    """The rows of those folders that exist."""
    there = [files.uri(folder) for folder in folders if files.exists(folder)]
    return session.read.schema(schema).parquet(*there) if there else empty(session, schema)


def _staged(session: SparkSession, staging: Staging, table: str, schema: T.StructType) -> DataFrame:
    """With the folders' `at`."""
    whole = T.StructType([*schema, AT])
    return session.read.schema(whole).parquet(staging.uri(table)) if _has(staging, table) else empty(session, whole)


def _has(staging: Staging, table: str) -> bool:
    return bool(staging.files.listed(staging.path(table), 1))
