"""Table: compaction of an hour and of whole days as whole processes, beside DuckDB and Polars on the same files."""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.effort import Effort
from benchmarks.process_tree import Spent, spent_by
from benchmarks.rig import say
from benchmarks.tables import Row, Table, Verdict, row
from local.plausible_history import write_large_day

MOST_BYTES = 5
MOST_SECONDS_OF_AN_HOUR = 5
MOST_TIMES_DUCKDB = 5
MOST_GROWTH = 10
POLARS_AT_MOST = 1_000
"""Partitions: more of them would take more memory than a small machine has, for Polars sorts the day within it."""
ROUNDS = 3
TIMEOUT_SECONDS = 900
HOW = (
    "Days of samples every 15 s as the adapter writes them, a file every five minutes. Each line of a process is "
    "the whole of it, from the start of Python to its end: wall time, CPU and the peak of resident memory of it "
    "and its children. compact makes deltas, totals, partitions, hourly and daily tables, as it does by itself on "
    "a local folder: in its own memory, an hour at a time. By Spark: the same tables with --master 'local[*]' and "
    "a heap of 4 GB, the JVM's start included. DuckDB (two threads, 4 GB) and Polars (two threads) make deltas "
    "alone, by a window over each series, and write them as Parquet by hour (Polars: one file): no late files, no "
    "duplicates, no carried values. Hourly tables from deltas: compact's own and Spark's with all their columns, "
    "the others' with percentiles, sums, covered time and skew; seconds of the query alone."
)
BY_SPARK = ("--master", "local[*]", "--driver-memory", "4g")


@dataclass(frozen=True, slots=True)
class Day:
    location: Path
    partitions: int
    rows: int

    @property
    def who(self) -> str:
        return f"{self.partitions:,} partitions, {self.rows / 1e6:.2f} million rows"


def measure(home: Path, effort: Effort) -> Table:
    rows: list[Row] = []
    spent: list[Spent] = []
    for partitions in effort.history_partitions:
        say(f"  a day of {partitions:,} partitions")
        location = home / f"day-{partitions}"
        day = Day(location, partitions, write_large_day(location, partitions, 15, 1).rows)
        if not spent:
            rows += _hour(home, day, is_goal=partitions == 1_000)
        found, compacted = _day(home, day)
        rows += found
        spent.append(compacted)
        shutil.rmtree(location)
    growth = row(
        "CPU of compact: the larger day as a multiple of the smaller", spent[-1].cpu / spent[0].cpu, MOST_GROWTH, "x"
    )
    return Table("Compacting the history", HOW, (*rows, growth))


def compact(location: Path, log: Path, *options: str) -> Spent:
    command = [sys.executable, "-m", "spark", "compact", "--history", str(location), *options]
    return spent_by([*command, "--until", "2027-01-01T00:00Z"], log, TIMEOUT_SECONDS)


def _hour(home: Path, day: Day, *, is_goal: bool) -> list[Row]:
    who = f"{day.partitions:,} partitions, one hour: compact"
    rows = _process_rows(who, _of_copies(home, day), MOST_SECONDS_OF_AN_HOUR if is_goal else None)
    return rows + _process_rows(f"{who} by Spark", _of_copies(home, day, *BY_SPARK))


def _of_copies(home: Path, day: Day, *options: str) -> Spent:
    """The median; the first run is not counted: Spark's may be the one that writes the archive of classes."""
    taken = []
    (hour,) = day.location.glob("samples/*/hour=10")
    for number in range(ROUNDS + 1):
        say(f"    an hour, run {number}")
        location = home / f"hour-{number}"
        shutil.copytree(hour, location / hour.relative_to(day.location))
        taken.append(compact(location, home / "hour.log", *options))
        shutil.rmtree(location)
    return sorted(taken[1:], key=lambda spent: spent.wall)[ROUNDS // 2]


def _day(home: Path, day: Day) -> tuple[list[Row], Spent]:
    say("    compact")
    compacted = compact(day.location, home / "day.log")
    size = sum(path.stat().st_size for path in day.location.glob("deltas/*/*/*.parquet"))
    rows = _process_rows(f"{day.who}: compact", compacted)
    rows.append(row(f"{day.who}: bytes per row of deltas", size / day.rows, MOST_BYTES))
    others = ["duckdb", *(["polars"] if day.partitions <= POLARS_AT_MOST else [])]
    windows = {engine: _other(home, engine, "window", day) for engine in others}
    for engine, spent in windows.items():
        rows += _process_rows(f"{day.who}: window query by {engine}", spent)
    ratio = row(
        f"{day.who}: compact's wall time as a multiple of DuckDB's", compacted.wall / windows["duckdb"].wall, 1, "x"
    )
    rows.append(ratio if day.partitions == 10_000 else Row(ratio.what, ratio.figure, "", Verdict.NO_GOAL))
    rows += _hourly(home, day)
    return [*rows, *_by_spark(home, day, windows["duckdb"])], compacted


def _by_spark(home: Path, day: Day, duckdb: Spent) -> list[Row]:
    say("    compact by Spark")
    for made in day.location.iterdir():
        if made.name != "samples":
            shutil.rmtree(made)
    spent = compact(day.location, home / "day.log", *BY_SPARK)
    ratio = row(f"{day.who}: Spark's wall time as a multiple of DuckDB's", spent.wall / duckdb.wall, None, "x")
    return [*_process_rows(f"{day.who}: compact by Spark", spent), ratio]


def _hourly(home: Path, day: Day) -> list[Row]:
    seconds = {
        engine: _seconds(_other(home, engine, "hourly", day)) for engine in ("memory", "spark", "duckdb", "polars")
    }
    who = f"{day.who}: hourly tables from deltas"
    return [
        row(f"{who}, compact's own", seconds["memory"][0], None, " s"),
        row(f"{who}, Spark, first time in its JVM", seconds["spark"][0], None, " s"),
        row(f"{who}, Spark, second time", seconds["spark"][1], None, " s"),
        row(f"{who}, DuckDB", seconds["duckdb"][0], None, " s"),
        row(f"{who}, Polars", seconds["polars"][0], None, " s"),
        row(
            f"{who}: compact's own as a multiple of DuckDB's",
            seconds["memory"][0] / seconds["duckdb"][0],
            MOST_TIMES_DUCKDB,
            "x",
        ),
        row(
            f"{who}: Spark's second time as a multiple of DuckDB's",
            seconds["spark"][1] / seconds["duckdb"][0],
            None,
            "x",
        ),
    ]


def _seconds(spent: Spent) -> Sequence[float]:
    return [float(line) for line in spent.said.split()]


def _other(home: Path, engine: str, question: str, day: Day) -> Spent:
    say(f"    {question} by {engine}")
    output = home / f"{engine}-{question}-{day.partitions}"
    command = [sys.executable, "-m", "benchmarks.other_engines", engine, question, str(day.location), str(output)]
    spent = spent_by(command, home / f"{engine}.log", TIMEOUT_SECONDS)
    for made in home.glob(f"{output.name}*"):
        shutil.rmtree(made) if made.is_dir() else made.unlink()
    return spent


def _process_rows(who: str, spent: Spent, most_seconds: float | None = None) -> list[Row]:
    wall = row(f"{who}, wall time", spent.wall, most_seconds, " s", ".1f")
    beside = f"{spent.cpu:.1f} s of CPU, peak memory {spent.peak / 1e6:,.0f} MB"
    return [Row(wall.what, f"{wall.figure} ({beside})", wall.goal, wall.verdict)]
