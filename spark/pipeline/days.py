"""Days of compacted hours -> hourly and daily, where one of a day's hours was made again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from spark.engine.tasks import run as run_tasks
from spark.errors import TableUnreadable
from spark.figures import formatting
from spark.pipeline.day_task import DayTask, make_day
from spark.pipeline.lineage import Record, Summed, read_record, read_summed, write_summed
from spark.pipeline.plan import Hour
from spark.pipeline.publish import publish_file, publish_folder
from spark.pipeline.runs import Run
from spark.storage.protocol import Files, each_of
from spark.tables import layout
from spark.tables.sample_files import Skipped

BEGUN_TO_GO = "was made from hours whose tables are gone; with another hour it stays as it was"


@dataclass(frozen=True, slots=True)
class Days:
    """What came of summarising them."""

    done: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    unreadable: frozenset[str] = frozenset()
    """Names of the hours whose tables are missing or cannot be read."""


def summarised(run: Run, hours: Iterable[Hour]) -> Days:
    """A day has all its compacted hours, also those that this run was not asked for."""
    days = sorted({layout.day_of(hour.name) for hour in hours})
    return _together([_summarised(run, day) for day in days])


def _together(days: Sequence[Days]) -> Days:
    return Days(
        tuple(day for each in days for day in each.done),
        tuple(skipped for each in days for skipped in each.skipped),
        frozenset().union(*(each.unreadable for each in days)),
    )


def _summarised(run: Run, day: str) -> Days:
    names = _hours_of(run.files, day)
    records = dict(zip(names, each_of(run.files, partial(read_record, run.files), names), strict=True))
    made_from = {name: record for name, record in records.items() if record}
    before = read_summed(run.files, day)
    if all(name in before and before[name].identity == each.identity for name, each in made_from.items()):
        return Days()
    if before.keys() - made_from.keys():
        return Days(skipped=(Skipped(layout.hourly_folder(day), BEGUN_TO_GO),))
    run.check()
    try:
        _summarise(run, day, made_from)
    except TableUnreadable as unreadable:
        reason = f"stays as it was, for {unreadable}"
        hours = frozenset([layout.hour_of(unreadable.path)])
        return Days(skipped=(Skipped(layout.hourly_folder(day), reason),), unreadable=hours)
    return Days(done=(day,))


def _hours_of(files: Files, day: str) -> list[str]:
    """Names of the day's compacted hours."""
    return sorted({layout.hour_of(file.path) for file in files.listed(f"{layout.HOURS}/date={day}", 1)})


def _summarise(run: Run, day: str, made_from: Mapping[str, Record]) -> None:
    run.say(f"summarising {day}: {formatting.plural(len(made_from), 'hour')}")
    task = DayTask(run.files, run.staging.folder, day, tuple(sorted(made_from)))
    (staged,) = run_tasks(run.session(), make_day, [task])
    summed = {hour: Summed(record.identity, tuple(sorted(record.used))) for hour, record in made_from.items()}
    write_summed(run.files, staged.hourly, summed)
    run.refuse_if_lost()
    publish_file(run.staging, staged.daily, layout.daily_table(day))
    publish_folder(run.staging, staged.hourly, layout.hourly_folder(day))
