"""What a Spark task does with a day: reads its hours' totals and partitions, and stages its hourly and daily table."""

from __future__ import annotations

from dataclasses import dataclass

from spark.engine.tasks import attempt
from spark.rules.hourly import summaries_of
from spark.storage.protocol import Files
from spark.tables import layout
from spark.tables.contract import DAILY, HOURLY, PARTITIONS, TOTALS
from spark.tables.parquet_tables import read_table, write_table


@dataclass(frozen=True, slots=True)
class DayTask:
    files: Files
    staging: str
    """The run's folder."""
    day: str
    hours: tuple[str, ...]
    """Their names."""


@dataclass(frozen=True, slots=True)
class StagedDay:
    hourly: str
    """A folder with the table."""
    daily: str
    """A file."""


def make_day(task: DayTask) -> StagedDay:
    """Raises TableUnreadable."""
    hours = (
        (
            read_table(task.files, layout.hour_table(hour, layout.TOTALS), TOTALS),
            read_table(task.files, layout.hour_table(hour, layout.PARTITIONS), PARTITIONS),
        )
        for hour in task.hours
    )
    hourly, daily = summaries_of(hours)
    root = f"{task.staging}/{attempt()}"
    write_table(task.files, f"{root}/{layout.hourly_table(task.day)}", hourly, HOURLY)
    write_table(task.files, f"{root}/{layout.daily_table(task.day)}", daily, DAILY)
    return StagedDay(f"{root}/{layout.hourly_folder(task.day)}", f"{root}/{layout.daily_table(task.day)}")
