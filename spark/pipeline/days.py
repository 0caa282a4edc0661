"""Days of compacted hours -> hourly, daily and minutes, where one of a day's hours was made again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from spark.engine.tasks import outcomes, results_of
from spark.errors import TableUnreadable
from spark.figures import formatting
from spark.pipeline.day_task import READ, DayTask, StagedDay, make_day
from spark.pipeline.lineage import Record, Summed, manifest_of_day, read_record, read_summed
from spark.pipeline.plan import FoundHour
from spark.pipeline.publishing import publishing
from spark.pipeline.runs import Run
from spark.pipeline.wording import tasks_of
from spark.storage.protocol import HistoryFiles, each_of
from spark.tables import layout
from spark.tables.sample_files import Skipped

BEGUN_TO_GO = "was not recomputed: tables of its source hours were deleted"


@dataclass(frozen=True, slots=True)
class Days:
    """What came of summarising them."""

    done: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    unreadable: frozenset[str]
    """Paths of the hours' tables that are missing or cannot be read."""


@dataclass(frozen=True, slots=True, eq=False)
class Day:
    name: str
    made_from: Mapping[str, Record]
    """The day's compacted hours, by their names."""
    before: Mapping[str, Summed]
    """The hours that its tables were made from; none: it has no tables."""

    @property
    def needs(self) -> bool:
        return any(
            name not in self.before or self.before[name].identity != each.identity
            for name, each in self.made_from.items()
        )

    def paths(self, table: str) -> tuple[tuple[str, ...], ...]:
        """Of the table's files in each hour that has it."""
        hours = sorted(self.made_from.items())
        has_it = ((name, each) for name, each in hours if each.has_minutes or table != layout.PER_MINUTE)
        return tuple(tuple(each.paths(name, table)) for name, each in has_it)

    @property
    def has_begun_to_go(self) -> bool:
        return bool(self.before.keys() - self.made_from.keys())


def summarised(run: Run, hours: Iterable[FoundHour]) -> Days:
    """A day has all its compacted hours, also those that this run was not asked for."""
    names = sorted({layout.day_of(hour.name) for hour in hours})
    days = [day for day in (_day_of(run.files, name) for name in names) if day.needs]
    gone = (Skipped(layout.hourly_folder(day.name), BEGUN_TO_GO) for day in days if day.has_begun_to_go)
    results = _staged(run, [day for day in days if not day.has_begun_to_go])
    unreadable = {day: result for day, result in results.items() if isinstance(result, TableUnreadable)}
    readable = [day for day in results if day not in unreadable]
    with publishing(run) as publish:
        for day, staged in zip(readable, results_of(results[day] for day in readable), strict=True):
            publish(partial(_publish, run, day, staged))
    skipped = (
        Skipped(layout.hourly_folder(day.name), f"was not recomputed: {error}") for day, error in unreadable.items()
    )
    return Days(
        tuple(day.name for day in readable),
        (*gone, *skipped),
        frozenset(path for error in unreadable.values() for path in error.paths),
    )


def _day_of(files: HistoryFiles, name: str) -> Day:
    stored = files.listed(f"{layout.HOURS}/date={name}", 1)
    hours = sorted({layout.hour_of(file.path) for file in stored})
    records = zip(hours, each_of(files, partial(read_record, files), hours), strict=True)
    return Day(name, {hour: record for hour, record in records if record}, read_summed(files, name))


def _staged(run: Run, days: list[Day]) -> dict[Day, StagedDay | Exception]:
    """What a task made of each day, or its error."""
    if not days:
        return {}
    run.check()
    for day in days:
        run.say(f"summarising {day.name}: {formatting.plural(len(day.made_from), 'hour')}")
    tasks = [DayTask(run.files, run.staging, day.name, {table: day.paths(table) for table in READ}) for day in days]
    said = f"hourly, daily and minutes {days[0].name}" + (f" to {days[-1].name}" if len(days) > 1 else "")
    results = outcomes(run.session(), make_day, tasks, said, run.shown(tasks_of(said)))
    run.check()
    return dict(zip(days, results, strict=True))


def _publish(run: Run, day: Day, staged: StagedDay) -> None:
    summed = {hour: Summed(record.identity, tuple(sorted(record.used))) for hour, record in day.made_from.items()}
    run.files.replace(staged.daily, layout.daily_table(day.name))
    run.files.replace(staged.minutes, layout.minutes_table(day.name))
    run.files.publish([staged.hourly], layout.hourly_folder(day.name), manifest_of_day(summed))
