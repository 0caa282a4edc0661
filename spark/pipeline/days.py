"""Days of compacted hours -> hourly and daily, where one of a day's hours was made again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from adapter.history.contract import Type
from spark.engine.tasks import outcomes, results_of
from spark.errors import TableUnreadable
from spark.figures import formatting
from spark.pipeline.batches import neighbours
from spark.pipeline.daily import daily_of
from spark.pipeline.day_task import DayTask, StagedDay, make_day
from spark.pipeline.lineage import Record, Summed, read_record, read_summed, write_record
from spark.pipeline.plan import FoundHour
from spark.pipeline.runs import Run
from spark.storage.protocol import HistoryFiles, each_of
from spark.tables import layout
from spark.tables.columns import ARROW_TYPES, rows_of
from spark.tables.contract import DAILY, NAMES
from spark.tables.parquet_tables import write_table
from spark.tables.sample_files import Skipped

TIME = ARROW_TYPES[Type.TIME]
BEGUN_TO_GO = "was not recomputed: tables of its source hours were deleted"
BYTES_AT_ONCE = 16 << 20
"""Of the partitions tables of the days that are summarised together, as files: about a million rows, 200 MB in the
driver. They are as many as fit, for planning a job takes longer than running it."""


@dataclass(frozen=True, slots=True)
class Days:
    """What came of summarising them."""

    done: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    unreadable: frozenset[str] = frozenset()
    """Paths of the hours' tables that are missing or cannot be read."""


@dataclass(frozen=True, slots=True, eq=False)
class Day:
    name: str
    made_from: Mapping[str, Record]
    """The day's compacted hours, by their names."""
    before: Mapping[str, Summed]
    """The hours that its tables were made from; none: it has no tables."""
    size: int
    """Bytes of its hours' partitions tables."""

    @property
    def needs(self) -> bool:
        return any(
            name not in self.before or self.before[name].identity != each.identity
            for name, each in self.made_from.items()
        )

    @property
    def has_begun_to_go(self) -> bool:
        return bool(self.before.keys() - self.made_from.keys())


def summarised(run: Run, hours: Iterable[FoundHour]) -> Days:
    """A day has all its compacted hours, also those that this run was not asked for."""
    names = sorted({layout.day_of(hour.name) for hour in hours})
    days = [day for day in (_day_of(run.files, name) for name in names) if day.needs]
    gone = tuple(Skipped(layout.hourly_folder(day.name), BEGUN_TO_GO) for day in days if day.has_begun_to_go)
    whole = [day for day in days if not day.has_begun_to_go]
    results = [_summarised(run, group) for group in neighbours(whole, lambda day: day.size, BYTES_AT_ONCE)]
    return Days(
        tuple(day for each in results for day in each.done),
        (*gone, *(skipped for each in results for skipped in each.skipped)),
        frozenset().union(*(each.unreadable for each in results)),
    )


def _day_of(files: HistoryFiles, name: str) -> Day:
    stored = files.listed(f"{layout.HOURS}/date={name}", 1)
    hours = sorted({layout.hour_of(file.path) for file in stored})
    records = dict(zip(hours, each_of(files, partial(read_record, files), hours), strict=True))
    size = sum(file.size for file in stored if file.name == f"{layout.PARTITIONS}.parquet")
    return Day(name, {hour: record for hour, record in records.items() if record}, read_summed(files, name), size)


def _summarised(run: Run, days: Sequence[Day]) -> Days:
    run.check()
    for day in days:
        run.say(f"summarising {day.name}: {formatting.plural(len(day.made_from), 'hour')}")
    tasks = [DayTask(run.files, run.staging, day.name, tuple(sorted(day.made_from))) for day in days]
    results = dict(zip(days, outcomes(run.session(), make_day, tasks), strict=True))
    unreadable = {day: result for day, result in results.items() if isinstance(result, TableUnreadable)}
    readable = [day for day in days if day not in unreadable]
    staged = list(zip(readable, results_of(results[day] for day in readable), strict=True))
    if staged:
        daily = _daily(run.session(), [staged_day for _, staged_day in staged])
        run.check()
        for day, staged_day in staged:
            _publish(run, day, staged_day, daily)
    return Days(
        tuple(day.name for day, _ in staged),
        tuple(
            Skipped(layout.hourly_folder(day.name), f"was not recomputed: {error}") for day, error in unreadable.items()
        ),
        frozenset(path for error in unreadable.values() for path in error.paths),
    )


def _daily(session: SparkSession, staged: Sequence[StagedDay]) -> pa.Table:
    def frame(tables: Iterable[pa.Table]) -> DataFrame:
        return session.createDataFrame(pa.concat_tables(tables).unify_dictionaries())

    daily = daily_of(frame(each.hours for each in staged), frame(each.partitions for each in staged))
    return daily.toArrow().sort_by([(name, "ascending") for name in NAMES])


def _publish(run: Run, day: Day, staged: StagedDay, daily: pa.Table) -> None:
    path = f"{staged.folder}.daily.parquet"
    own = daily.filter(pc.equal(daily["day"], pa.scalar(layout.start_of_day(day.name), TIME)))
    write_table(run.files, path, rows_of(own, DAILY), DAILY)
    summed = {hour: Summed(record.identity, tuple(sorted(record.used))) for hour, record in day.made_from.items()}
    write_record(run.files, staged.folder, summed)
    run.refuse_if_lost()
    run.files.replace(path, layout.daily_table(day.name))
    run.files.publish(staged.folder, layout.hourly_folder(day.name))
