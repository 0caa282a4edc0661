"""What a Spark task does with a day: stages its hourly table, which is its hours' summaries, its daily table and
its minutes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adapter.history.contract import Column
from spark.engine.tasks import attempt
from spark.rules.daily import daily_of
from spark.rules.hourly import percentile_columns
from spark.rules.minutes import minutes_of
from spark.storage.protocol import HistoryFiles
from spark.tables import contract, layout
from spark.tables.columns import TableRows, Values, begins_of, joined, numbered, rows_of
from spark.tables.parquet_tables import CLOSELY, read_table, read_topics, unreadable, write_table, written_table
from spark.tables.topic_parts import Part, parts_of, topics_in

LAGS_AT_ONCE = 1_500_000
"""Of whole topics; a lag and its wait take up to 90 bytes while their percentiles are found."""
READ = (layout.SUMMARY, layout.PARTITIONS, layout.TOTALS, layout.PER_MINUTE)
"""Tables of an hour."""
LAGS = tuple(column for column in contract.TOTALS if column.name in {*contract.NAMES, "lag", "wait_seconds"})
CHANGES = tuple(
    column for column in contract.PARTITIONS if column.name in {*contract.PLACE, "seconds", "produced", "consumed"}
)


@dataclass(frozen=True, slots=True)
class DayTask:
    files: HistoryFiles
    staging: str
    """The run's folder."""
    day: str
    hours: Mapping[str, tuple[tuple[str, ...], ...]]
    """Of each of READ the paths of its files in each hour, in order of time; hours without a table are left out."""
    lags_at_once: int = LAGS_AT_ONCE


@dataclass(frozen=True, slots=True)
class StagedDay:
    hourly: str
    """The hourly table."""
    daily: str
    """The daily table."""
    minutes: str
    """The table of minutes."""


def make_day(task: DayTask) -> StagedDay:
    """Raises TableUnreadable."""
    hours = _in_order(joined(list(_hours(task, layout.SUMMARY, contract.SUMMARY))))
    partitions = joined(list(_hours(task, layout.PARTITIONS, CHANGES)))
    daily = daily_of(hours, partitions, _percentiles(task, hours))
    root = f"{task.staging}/{attempt()}"
    write_table(task.files, f"{root}/{layout.hourly_table(task.day)}", hours, contract.HOURLY)
    write_table(task.files, f"{root}/{layout.daily_table(task.day)}", daily, contract.DAILY)
    _write_minutes(task, f"{root}/{layout.minutes_table(task.day)}")
    return StagedDay(
        hourly=f"{root}/{layout.hourly_table(task.day)}",
        daily=f"{root}/{layout.daily_table(task.day)}",
        minutes=f"{root}/{layout.minutes_table(task.day)}",
    )


def _write_minutes(task: DayTask, path: str) -> None:
    """Hour after hour: of a day with many groups, memory may not hold all minutes."""
    with written_table(task.files, path, contract.MINUTES, CLOSELY) as write:
        for hour in _hours(task, layout.PER_MINUTE, contract.PER_MINUTE):
            write(minutes_of(hour))


def _hours(task: DayTask, table: str, columns: Sequence[Column]) -> Iterator[TableRows]:
    for paths in task.hours[table]:
        yield joined([read_table(task.files, path, columns) for path in paths])


def _in_order(hours: TableRows) -> TableRows:
    return hours.taken(np.lexsort([hours[name] for name in ("hour", *reversed(contract.NAMES))]))


def _percentiles(task: DayTask, hours: TableRows) -> dict[str, Values]:
    """The day's, of each topic; in parts that fit into memory, however many samples the day has."""
    topics, place = topics_in(hours)
    cycles = np.bincount(place, hours["cycles"], len(topics)).astype(np.int64)
    percentiles = []
    for part in parts_of(dict(zip(topics, cycles.tolist(), strict=True)), task.lags_at_once):
        lags = joined([_lags(task, path, part) for paths in task.hours[layout.TOTALS] for path in paths])
        topic = numbered(*(lags[name] for name in contract.NAMES))
        order = np.argsort(topic, kind="stable")
        begins = begins_of(topic[order])
        of_lags = percentile_columns("lag", lags["lag"][order], begins)
        percentiles.append(of_lags | percentile_columns("wait", lags["wait_seconds"][order], begins))
    return {name: np.concatenate([columns[name] for columns in percentiles]) for name in percentiles[0]}


def _lags(task: DayTask, path: str, part: Part) -> TableRows:
    """Of the totals."""
    with unreadable(path):
        return part.of(rows_of(read_topics(task.files, path, LAGS, part.may_be_in), LAGS))
