"""Table: a report from compacted histories, as a whole process and within a JVM that has made one before."""

import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.history.compact import TIMEOUT_SECONDS, compact
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.process_tree import Spent, spent_by
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import say
from local.histories.plausible_history import write_large_day, write_week

RUNS = 5
MOST_SECONDS_WARM = 2
MOST_SECONDS_OF_TWO_WEEKS = 20
YEAR = 365
HOW = (
    "The report of compacted histories, all its files. Whole process: the median of three with its CPU and the peak of "
    "resident memory, its children included. Warm: the last of five reports in one process, without its start. A year: "
    "the hourly and daily tables of nine topics, whose samples retention took long ago."
)


@dataclass(frozen=True, slots=True)
class Goal:
    """Seconds of a whole process for a day."""

    partitions: int
    most_seconds: float


GOALS = {goal.partitions: goal for goal in (Goal(1_000, 10), Goal(10_000, 30))}


def measure(home: Path, effort: Effort) -> Table:
    rows = [each for partitions in effort.history_partitions for each in _of_day(home, partitions)]
    if len(effort.history_partitions) > 1:
        rows += _of_two_weeks(home)
    return Table("A report", HOW, (*rows, *_of_year(home)))


def _of_day(home: Path, partitions: int) -> list[Row]:
    say(f"  a day of {partitions:,} partitions, compacted")
    location = home / f"day-{partitions}"
    write_large_day(location, partitions, 15, 1)
    compact(location, home / "compact.log")
    goal = GOALS.get(partitions)
    who = f"{partitions:,} partitions, a day"
    rows = [_cold(who, home, location, goal.most_seconds if goal else None)]
    command = [sys.executable, "-m", "benchmarks.history.report", str(location), str(home / "warm")]
    warm = float(spent_by(command, home / "warm.log", TIMEOUT_SECONDS).said.split()[-1])
    shutil.rmtree(location)
    return [*rows, row(f"{who}: warm", warm, MOST_SECONDS_WARM if partitions == 1_000 else None, " s")]


def _of_two_weeks(home: Path) -> list[Row]:
    say("  two weeks of 1,000 partitions, compacted")
    location = home / "two-weeks"
    write_large_day(location, 1_000, 15, 14)
    compact(location, home / "compact.log")
    rows = [_cold("1,000 partitions, 14 days", home, location, MOST_SECONDS_OF_TWO_WEEKS, rounds=1)]
    shutil.rmtree(location)
    return rows


def _of_year(home: Path) -> list[Row]:
    say("  a year of hourly and daily tables")
    week, location = home / "week", home / "year"
    until = write_week(week).until
    compact(week, home / "compact.log")
    for path in sorted((week / "hourly").glob("*/hourly.parquet")):
        day = datetime.strptime(path.parent.name, "date=%Y-%m-%d").replace(tzinfo=UTC)
        for weeks in range(YEAR // 7):
            _write_earlier(week, location, day, timedelta(weeks=weeks))
    since = f"{until - timedelta(weeks=YEAR // 7):%Y-%m-%dT%H:%MZ}"
    rows = [_cold("9 topics, 52 weeks of hourly and daily tables", home, location, rounds=1, options=("--from", since))]
    shutil.rmtree(location)
    return rows


def _write_earlier(week: Path, location: Path, day: datetime, by: timedelta) -> None:
    """A day's two tables, so much earlier."""
    names = {"hour": "hourly/date={}/hourly.parquet", "day": "daily/{}.parquet"}
    for column, name in names.items():
        with pq.ParquetFile(week / name.format(day.date())) as file:
            table = file.read()
        earlier = pc.subtract(table[column], pa.scalar(by, pa.duration("us")))
        target = location / name.format((day - by).date())
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.set_column(table.column_names.index(column), column, earlier), target)


def _cold(
    who: str, home: Path, location: Path, most: float | None = None, rounds: int = 3, options: Sequence[str] = ()
) -> Row:
    """The first run is not counted where there are several: it may be the one that writes the archive of classes."""
    command = [sys.executable, "-m", "spark", "report", "--history", str(location), "--output", str(home / "report")]
    runs: list[Spent] = []
    for number in range(rounds + (rounds > 1)):
        say(f"    report {number}")
        runs.append(spent_by([*command, *options], home / "report.log", TIMEOUT_SECONDS))
    wall = statistics.median_low(run.wall for run in runs[-rounds:])
    spent = next(run for run in runs if run.wall == wall)
    shown = row(f"{who}: whole process", spent.wall, most, " s", ".1f")
    beside = f"{spent.cpu:.1f} s of CPU, peak memory {spent.peak / 1e6:,.0f} MB"
    return Row(shown.what, f"{shown.figure} ({beside})", shown.goal, shown.verdict)


def main(location: str, output: str) -> None:
    """Prints the seconds of each of several reports in one process."""
    from spark.engine.session import SparkSettings, started  # noqa: PLC0415 -- only where it is measured
    from spark.report.build import report, requested  # noqa: PLC0415 -- as above
    from spark.storage.location import files_at  # noqa: PLC0415 -- as above

    with started(SparkSettings()) as session:
        for number in range(RUNS):
            began = time.monotonic()
            request = requested(location, f"{output}-{number}", (None, None), "UTC", datetime.now(UTC))
            report(request, files_at(location), lambda: session, lambda _: None, lambda: None)
            print(time.monotonic() - began)


if __name__ == "__main__":
    main(*sys.argv[1:])
