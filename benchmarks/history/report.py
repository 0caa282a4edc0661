"""Table: reports of a day, two weeks and a year as whole processes, and in a JVM that has already made one."""

import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.history.commands import TIMEOUT_SECONDS, compact, report
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.process_tree import Spent, spent_by
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import say
from local.histories.plausible_history import write_large_day, write_week

PARTITIONS = 1_000
ROUNDS, WARM_ROUNDS = 3, 5
MOST_SECONDS = 7
MOST_SECONDS_WARM = 2
MOST_SECONDS_OF_TWO_WEEKS = 20
YEAR = 365
HOW = (
    "The report of compacted histories, with all its files. Whole process: the median of three runs with its CPU and "
    "the peak of resident memory, including its children. Warm: the last of five reports in one process, without its "
    "start. 14 days: a day's tables, 14 times. A year: the tables of nine topics whose samples have expired."
)
TABLES_OF_AN_HOUR = ("totals", "partitions")


def measure(home: Path, effort: Effort) -> Table:
    return Table("A report", HOW, (*_of_days(home, min(effort.history_partitions)), *_of_year(home)))


def _of_days(home: Path, partitions: int) -> list[Row]:
    say(f"  a day of {partitions:,} partitions, compacted")
    location = home / "days"
    write_large_day(location, partitions, 15, 1)
    compact(location, home / "compact.log")
    is_goal = partitions == PARTITIONS
    who = f"{partitions:,} partitions, a day"
    rows = [_cold(who, home, location, MOST_SECONDS if is_goal else None)]
    command = [sys.executable, "-m", "benchmarks.history.report", str(location), str(home / "warm")]
    warm = float(spent_by(command, home / "warm.log", TIMEOUT_SECONDS).said.split()[-1])
    rows.append(row(f"{who}: warm", warm, MOST_SECONDS_WARM if is_goal else None, " s"))
    (day,) = (datetime.fromisoformat(path.stem).replace(tzinfo=UTC) for path in location.glob("daily/*.parquet"))
    shutil.rmtree(location / "samples")
    for days in range(1, 14):
        _write_earlier(location, location, day, timedelta(days=days))
    most = MOST_SECONDS_OF_TWO_WEEKS if is_goal else None
    rows.append(_cold(f"{partitions:,} partitions, 14 days", home, location, most, rounds=1))
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


def _write_earlier(source: Path, location: Path, day: datetime, by: timedelta) -> None:
    """Writes a day's tables with earlier dates."""
    names = ["hourly/date={}/hourly.parquet", "daily/{}.parquet"]
    if source == location:
        names += [
            f"hours/date={{}}/hour={hour:02}/{table}.parquet" for hour in range(24) for table in TABLES_OF_AN_HOUR
        ]
    for name in names:
        with pq.ParquetFile(source / name.format(day.date())) as file:
            table = file.read()
        for place, column in enumerate(table.schema):
            if pa.types.is_timestamp(column.type):
                earlier = pc.subtract(table[column.name], pa.scalar(by, pa.duration("us")))
                table = table.set_column(place, column.name, earlier)
        target = location / name.format((day - by).date())
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, target)


def _cold(
    who: str, home: Path, location: Path, most: float | None = None, rounds: int = ROUNDS, options: Sequence[str] = ()
) -> Row:
    """Of several runs, the first is not counted, because it may write the archive of classes."""
    runs: list[Spent] = []
    for number in range(rounds + (rounds > 1)):
        say(f"    report {number}")
        runs.append(report(location, home, options))
    wall = statistics.median_low(run.wall for run in runs[-rounds:])
    spent = next(run for run in runs if run.wall == wall)
    shown = row(f"{who}: whole process", spent.wall, most, " s", ".1f")
    beside = f"{spent.cpu:.1f} s of CPU, peak memory {spent.peak / 1e6:,.0f} MB"
    return Row(shown.what, f"{shown.figure} ({beside})", shown.goal, shown.verdict)


def main(location: str, output: str) -> None:
    """Prints the seconds of each of several reports in one process."""
    from spark.engine.session import SparkSettings, started  # noqa: PLC0415 -- only where it is measured
    from spark.report import build, request  # noqa: PLC0415 -- as above
    from spark.storage.location import files_at  # noqa: PLC0415 -- as above

    with started(SparkSettings()) as session:
        for number in range(WARM_ROUNDS):
            began = time.monotonic()
            asked = request.requested(location, f"{output}-{number}", (None, None), "UTC", datetime.now(UTC))
            build.report(asked, files_at(location), lambda: session, lambda _: None, lambda: None)
            print(time.monotonic() - began)


if __name__ == "__main__":
    main(*sys.argv[1:])
