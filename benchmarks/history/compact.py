"""Table: compaction of an hour and of whole days as whole processes, beside DuckDB and Polars on the same files."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.process_tree import Spent, spent_by
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import say
from local.histories.plausible_history import write_large_day

MOST_BYTES = 5
MOST_SECONDS_OF_AN_HOUR = 10
MOST_MEGABYTES_OF_AN_HOUR = 1_000
MOST_TIMES_DUCKDB = 0.6
SHUFFLED_AT_MOST = (6, 0.8)
"""Bytes per row, and times DuckDB's."""
MOST_MEGABYTES_OF_A_DAY = 2_000
MOST_GROWTH = 10
POLARS_AT_MOST = 1_000
"""Partitions: more of them would take more memory than a small machine has, for Polars sorts the day within it."""
ROUNDS = 3
TIMEOUT_SECONDS = 900
HOW = (
    "Days of samples every 15 s as the adapter writes them, a file every five minutes. Each line of a process is "
    "the whole of it, from the start of Python to its end: wall time, CPU and the peak of resident memory of it "
    "and its children, Spark's JVM and Python processes among them. compact makes deltas, totals, partitions, "
    "hourly and daily tables. DuckDB (two threads, 4 GB) and Polars (two threads) make deltas alone, by a window "
    "over each series, and write them as Parquet by hour (Polars: one file): no late files, no duplicates, no "
    "carried values. Shuffled: a group for each topic, names in no order within the files, every partition busy, "
    "random increments."
)


@dataclass(frozen=True, slots=True)
class Day:
    location: Path
    partitions: int
    rows: int
    is_shuffled: bool = False

    @property
    def who(self) -> str:
        sort = ", shuffled" if self.is_shuffled else ""
        return f"{self.partitions:,} partitions, {self.rows / 1e6:.2f} million rows{sort}"


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
    say("    a day of the less kind sort")
    location = home / "shuffled"
    written = write_large_day(location, effort.history_partitions[-1], 15, 1, is_shuffled=True)
    shuffled = Day(location, effort.history_partitions[-1], written.rows, is_shuffled=True)
    rows += _day(home, shuffled)[0]
    shutil.rmtree(location)
    return Table("Compacting the history", HOW, (*rows, growth))


def compact(location: Path, log: Path) -> Spent:
    command = [sys.executable, "-m", "spark", "compact", "--history", str(location)]
    return spent_by([*command, "--until", "2027-01-01T00:00Z"], log, TIMEOUT_SECONDS)


def _hour(home: Path, day: Day, *, is_goal: bool) -> list[Row]:
    goals = (MOST_SECONDS_OF_AN_HOUR, MOST_MEGABYTES_OF_AN_HOUR) if is_goal else (None, None)
    return _process_rows(f"{day.partitions:,} partitions, one hour: compact", _of_copies(home, day), *goals)


def _of_copies(home: Path, day: Day) -> Spent:
    """The median; the first run is not counted: it may be the one that writes the archive of classes."""
    taken = []
    (hour,) = day.location.glob("samples/*/hour=10")
    for number in range(ROUNDS + 1):
        say(f"    an hour, run {number}")
        location = home / f"hour-{number}"
        shutil.copytree(hour, location / hour.relative_to(day.location))
        taken.append(compact(location, home / "hour.log"))
        shutil.rmtree(location)
    return sorted(taken[1:], key=lambda spent: spent.wall)[ROUNDS // 2]


def _day(home: Path, day: Day) -> tuple[list[Row], Spent]:
    is_large = day.partitions == 10_000
    say("    compact")
    compacted = compact(day.location, home / "day.log")
    size = sum(path.stat().st_size for path in day.location.glob("hours/*/*/deltas.parquet"))
    rows = _process_rows(f"{day.who}: compact", compacted, None, MOST_MEGABYTES_OF_A_DAY if is_large else None)
    most_bytes, most_times = SHUFFLED_AT_MOST if day.is_shuffled else (MOST_BYTES, MOST_TIMES_DUCKDB)
    rows.append(row(f"{day.who}: bytes per row of deltas", size / day.rows, most_bytes))
    others = ["duckdb", *(["polars"] if day.partitions <= POLARS_AT_MOST else [])]
    windows = {engine: _other(home, engine, day) for engine in others}
    for engine, spent in windows.items():
        rows += _process_rows(f"{day.who}: window query by {engine}", spent)
    ratio = compacted.wall / windows["duckdb"].wall
    goal = most_times if is_large else None
    rows.append(row(f"{day.who}: compact's wall time as a multiple of DuckDB's", ratio, goal, "x", ".2f"))
    return rows, compacted


def _other(home: Path, engine: str, day: Day) -> Spent:
    say(f"    the window query by {engine}")
    output = home / f"{engine}-{day.partitions}"
    command = [sys.executable, "-m", "benchmarks.history.other_engines", engine, str(day.location), str(output)]
    spent = spent_by(command, home / f"{engine}.log", TIMEOUT_SECONDS)
    for made in home.glob(f"{output.name}*"):
        shutil.rmtree(made) if made.is_dir() else made.unlink()
    return spent


def _process_rows(
    who: str, spent: Spent, most_seconds: float | None = None, most_megabytes: float | None = None
) -> list[Row]:
    wall = row(f"{who}, wall time", spent.wall, most_seconds, " s", ".1f")
    memory = row(f"{who}, peak memory of all processes", spent.peak / 1e6, most_megabytes, " MB", ",.0f")
    return [Row(wall.what, f"{wall.figure} ({spent.cpu:.1f} s of CPU)", wall.goal, wall.verdict), memory]
