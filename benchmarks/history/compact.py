"""Table: compaction of an hour and of whole days, and their reports, as whole processes; also DuckDB and Polars."""

import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.history.commands import TIMEOUT_SECONDS, compact, report, rows_of
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.process_tree import Spent, spent_by
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import say
from local.histories.plausible_history import write_large_day
from local.processes import wait_until
from local.spark.cluster import WORKERS, SparkCluster, environment, spark_cluster

MOST_BYTES = 5
MOST_SECONDS_OF_AN_HOUR = 7
MOST_SECONDS_EVER = 12
MOST_MEGABYTES_OF_AN_HOUR = 1_000
MOST_TIMES_DUCKDB = 0.5
MOST_TIMES_LOCAL = 1.6
SHUFFLED_AT_MOST = (6, 0.6)
"""Bytes per row, and the wall time as a multiple of DuckDB's."""
MOST_MEGABYTES_OF_A_DAY = 2_000
MOST_GROWTH = 10
REPORTS_AT_MOST = {(10_000, False): (30, None), (10_000, True): (60, 2_000)}
"""Partitions and whether they are shuffled -> seconds and megabytes."""
POLARS_AT_MOST = 1_000
"""Partitions. With more, Polars would need more memory than a small machine has, because it sorts the whole day."""
ROUNDS = 3
AN_HOUR, SIX_HOURS = "10", "0[0-5]"
HOW = (
    "Days of samples every 15 s as the adapter writes them, with a file every five minutes. Each row about a process "
    "covers all of it, from the start of Python to its end: wall time, CPU and peak resident memory, including its "
    "children (Spark's JVM and Python processes). compact makes deltas, totals, partitions, hourly and daily tables. "
    "DuckDB (two threads, 4 GB) and Polars (two threads) make only deltas, by a window over each series, and write "
    "them as Parquet by hour (Polars: one file): no late files, no duplicates, no carried values. Shuffled: one topic "
    "per group, unsorted names within the files, every partition busy, random increments. Part by part: one process "
    "that makes the same calls as the command, with an existing archive of classes. Workers: Spark's standalone "
    "cluster of one or two workers with 1 GB each on this machine, beside the driver; each worker has two cores if the "
    "machine has four, otherwise one."
)


@dataclass(frozen=True, slots=True)
class Day:
    location: Path
    partitions: int
    rows: int
    is_shuffled: bool = False

    @property
    def size(self) -> tuple[int, bool]:
        return self.partitions, self.is_shuffled

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
            rows += _on_workers(home, day)
        if partitions == effort.history_partitions[-1]:
            rows += _six_hours(home, day)
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


def _hour(home: Path, day: Day, *, is_goal: bool) -> list[Row]:
    goals = (MOST_SECONDS_OF_AN_HOUR, MOST_MEGABYTES_OF_AN_HOUR) if is_goal else (None, None)
    who = f"{day.partitions:,} partitions, one hour"
    first = row(f"{who}: the first run ever, wall time", _first(home, day).wall, MOST_SECONDS_EVER, " s", ".1f")
    return [first, *rows_of(f"{who}: compact", _of_copies(home, day), *goals), *_parts(home, day)]


def _first(home: Path, day: Day) -> Spent:
    """Without an archive of classes, which another process writes when the run has ended."""
    say("    an hour, the first run ever")
    location, classes = _copy_of_hours(home, day, AN_HOUR), home / "classes"
    spent = compact(location, home / "hour.log", env={"KAFKA_LAG_REPORT_CDS": str(classes)})
    wait_until(lambda: any(classes.glob("[!.]*.jsa")), "the archive of classes", TIMEOUT_SECONDS)
    shutil.rmtree(location)
    return spent


def _parts(home: Path, day: Day) -> list[Row]:
    location = _copy_of_hours(home, day, AN_HOUR)
    command = [sys.executable, "-m", "benchmarks.history.parts", str(location), str(time.time())]
    found: dict[str, float] = json.loads(spent_by(command, home / "parts.log", TIMEOUT_SECONDS).said)
    shutil.rmtree(location)
    return [
        row(f"{day.partitions:,} partitions, one hour: {part}", seconds, None, " s") for part, seconds in found.items()
    ]


def _on_workers(home: Path, day: Day) -> list[Row]:
    cores = 2 if (os.cpu_count() or 1) >= 2 * WORKERS else 1
    size = f"{cores} {'cores' if cores > 1 else 'core'}"
    found = [_by_workers(home, day, number, cores) for number in (1, WORKERS)]
    rows = [
        row(f"{day.who}: compact on {workers} of {size}, wall time", spent.wall, None, " s", ".1f")
        for workers, spent in zip(("one worker", "two workers"), found, strict=True)
    ]
    alone, together = (spent.wall for spent in found)
    fixed = max(0.0, (WORKERS * together - alone) / (WORKERS - 1))
    return [
        *rows,
        row(f"{day.who}: speed-up by the second worker", alone / together, None, "x"),
        row(f"{day.who}: the part that does not scale (start, session, driver)", fixed, None, " s", ".1f"),
    ]


def _six_hours(home: Path, day: Day) -> list[Row]:
    """By two workers that have a core each, and by this machine's."""
    by_workers = _by_workers(home, day, WORKERS, 1, SIX_HOURS)
    say("    six hours here")
    location = _copy_of_hours(home, day, SIX_HOURS)
    here = compact(location, home / "six.log", [f"--master=local[{WORKERS}]"])
    shutil.rmtree(location)
    who = f"{day.partitions:,} partitions, six hours"
    return [
        row(f"{who}: compact on two cores, wall time", here.wall, None, " s", ".1f"),
        row(f"{who}: on two workers of one core, wall time", by_workers.wall, None, " s", ".1f"),
        row(f"{who}: on workers, as a multiple", by_workers.wall / here.wall, MOST_TIMES_LOCAL, "x", ".2f"),
    ]


def _by_workers(home: Path, day: Day, workers: int, cores: int, hours: str = "*") -> Spent:
    say(f"    compact on {workers} of Spark's workers")
    location = _copy_of_hours(home, day, hours)
    with spark_cluster(home / f"cluster-{workers}-{day.partitions}", workers=workers, cores=cores) as cluster:
        spent = compact(location, home / "cluster.log", ["--master", cluster.master], _environment(cluster))
    shutil.rmtree(location)
    return spent


def _environment(cluster: SparkCluster) -> dict[str, str]:
    return environment() | {"PYSPARK_SUBMIT_ARGS": " ".join([*cluster.arguments()[2:], "pyspark-shell"])}


def _of_copies(home: Path, day: Day) -> Spent:
    """Returns the median without the first run, after which the archive of classes may be written."""
    taken = []
    for number in range(ROUNDS + 1):
        say(f"    an hour, run {number}")
        location = _copy_of_hours(home, day, AN_HOUR)
        taken.append(compact(location, home / "hour.log"))
        shutil.rmtree(location)
    return sorted(taken[1:], key=lambda spent: spent.wall)[ROUNDS // 2]


def _copy_of_hours(home: Path, day: Day, hours: str) -> Path:
    for hour in day.location.glob(f"samples/*/hour={hours}"):
        shutil.copytree(hour, home / "copy" / hour.relative_to(day.location))
    return home / "copy"


def _day(home: Path, day: Day) -> tuple[list[Row], Spent]:
    is_large = day.partitions == 10_000
    say("    compact")
    compacted = compact(day.location, home / "day.log")
    size = sum(path.stat().st_size for path in day.location.glob("hours/*/*/deltas*.parquet"))
    rows = rows_of(f"{day.who}: compact", compacted, None, MOST_MEGABYTES_OF_A_DAY if is_large else None)
    most_bytes, most_times = SHUFFLED_AT_MOST if day.is_shuffled else (MOST_BYTES, MOST_TIMES_DUCKDB)
    rows.append(row(f"{day.who}: bytes per row of deltas", size / day.rows, most_bytes))
    say("    its report")
    rows += rows_of(f"{day.who}: report", report(day.location, home), *REPORTS_AT_MOST.get(day.size, (None, None)))
    others = ["duckdb", *(["polars"] if day.partitions <= POLARS_AT_MOST else [])]
    windows = {engine: _other(home, engine, day) for engine in others}
    for engine, spent in windows.items():
        rows += rows_of(f"{day.who}: window query by {engine}", spent)
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
