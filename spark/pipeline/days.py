"""Days of compacted hours -> hourly and daily, where one of a day's hours was made again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from spark.errors import Spoilt
from spark.figures import formatting
from spark.pipeline.lineage import Record, Summed, read_record, read_summed, used_in, write_summed
from spark.pipeline.plan import Hour
from spark.pipeline.publish import swap, swap_file
from spark.pipeline.runs import Run
from spark.storage.protocol import Files, each_of
from spark.tables.parquet_reader import rows_in
from spark.tables.sample_files import Skipped

LAGS_OF_A_ROW = 8
"""Lags of a day's totals that take as much memory as a row of an hour."""

BEGUN_TO_GO = "was made from hours whose tables are gone; with another hour it stays as it was"


@dataclass(frozen=True, slots=True)
class Days:
    """What came of summarising them."""

    done: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    spoilt: frozenset[str] = frozenset()
    """Folders of the hours whose tables are missing or cannot be read."""


def summarised(run: Run, hours: Iterable[Hour]) -> Days:
    """A day has all its compacted hours, also those that this run was not asked for."""
    days: dict[str, set[str]] = {}
    for hour in hours:
        days.setdefault(f"{hour.start:%Y-%m-%d}", set()).add(hour.folder)
    return _together([_summarised(run, day, asked) for day, asked in days.items()])


def _together(days: Sequence[Days]) -> Days:
    return Days(
        tuple(day for each in days for day in each.done),
        tuple(skipped for each in days for skipped in each.skipped),
        frozenset().union(*(each.spoilt for each in days)),
    )


def _summarised(run: Run, day: str, asked: Collection[str]) -> Days:
    with_rows = _hours_in(run.files, "deltas", day)
    folders = sorted({*asked} | with_rows)
    records = dict(zip(folders, each_of(run.files, partial(read_record, run.files), folders), strict=True))
    made_from = {folder: record for folder, record in records.items() if record}
    before = read_summed(run.files, day)
    if all(folder in before and before[folder].identity == each.identity for folder, each in made_from.items()):
        return Days()
    if before.keys() - made_from.keys():
        return Days(skipped=(Skipped(f"hourly/date={day}", BEGUN_TO_GO),))
    run.check()
    try:
        _summarise(run, day, made_from, with_rows)
    except Spoilt as spoilt:
        reason = f"stays as it was, for {spoilt}"
        return Days(skipped=(Skipped(f"hourly/date={day}", reason),), spoilt=frozenset([spoilt.folder]))
    return Days(done=(day,))


def _hours_in(files: Files, table: str, day: str) -> set[str]:
    """Folders of the hours of which a table has rows."""
    return {file.folder.removeprefix(f"{table}/") for file in files.listed(f"{table}/date={day}", 1)}


def _summarise(run: Run, day: str, made_from: Mapping[str, Record], with_rows: Collection[str]) -> None:
    for table in ("totals", "partitions"):
        if lacking := {*with_rows} & made_from.keys() - _hours_in(run.files, table, day):
            raise Spoilt(table, min(lacking))
    run.say(f"summarising {day}: {formatting.plural(len(made_from), 'hour')}")
    run.engine(_rows_of_day(run, made_from)).stage_day(day, sorted(made_from))
    folder, staging = f"hourly/date={day}", run.staging
    summed = {
        hour: Summed(record.identity, tuple(sorted(used_in(run.files, hour, record))))
        for hour, record in made_from.items()
    }
    write_summed(run.files, staging.path(folder), summed)
    swap_file(staging, f"daily/{day}", f"daily/{day}.parquet")
    swap(staging, folder, folder)


def _rows_of_day(run: Run, folders: Collection[str]) -> int:
    """That are in memory at once: an hour's totals, and of all others the lags."""
    hours = each_of(run.files, partial(rows_in, run.files), [f"totals/{folder}" for folder in folders])
    return max(*hours, sum(hours) // LAGS_OF_A_ROW, 0)
