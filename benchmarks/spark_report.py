"""Table: a report from compacted days, as a whole process and within a JVM that has made one before."""

import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.effort import Effort
from benchmarks.process_tree import Spent, spent_by
from benchmarks.rig import say
from benchmarks.spark_compact import TIMEOUT_SECONDS, compact
from benchmarks.tables import Row, Table, row
from local.plausible_history import write_large_day

MOST_SECONDS_COLD = 9
MOST_SECONDS_WARM = 2
RUNS = 5
HOW = (
    "The report of one compacted day, all its files. Cold: the whole process, the median of three, with the CPU "
    "and the peak of resident memory of it and its children. Warm: the last of five reports in one process, "
    "without its start."
)


def measure(home: Path, effort: Effort) -> Table:
    rows = [row for partitions in effort.history_partitions for row in _of_day(home, partitions)]
    return Table("A report", HOW, tuple(rows))


def _of_day(home: Path, partitions: int) -> list[Row]:
    say(f"  a day of {partitions:,} partitions, compacted")
    location = home / f"day-{partitions}"
    write_large_day(location, partitions, 15, 1)
    compact(location, home / "compact.log")
    cold = [_cold(home, location, number) for number in range(4)][1:]
    median = sorted(cold, key=lambda spent: spent.wall)[1]
    command = [sys.executable, "-m", "benchmarks.spark_report", str(location), str(home / "warm")]
    warm = float(spent_by(command, home / "warm.log", TIMEOUT_SECONDS).said.split()[-1])
    shutil.rmtree(location)
    who, is_goal = f"{partitions:,} partitions", partitions == 1_000
    shown = row(f"{who}: whole process", median.wall, MOST_SECONDS_COLD if is_goal else None, " s", ".1f")
    beside = f"{median.cpu:.1f} s of CPU, peak memory {median.peak / 1e6:,.0f} MB"
    return [
        Row(shown.what, f"{shown.figure} ({beside})", shown.goal, shown.verdict),
        row(f"{who}: warm", warm, MOST_SECONDS_WARM if is_goal else None, " s"),
    ]


def _cold(home: Path, location: Path, number: int) -> Spent:
    say(f"    report {number}")
    command = [sys.executable, "-m", "spark", "report", "--history", str(location), "--output", str(home / f"{number}")]
    return spent_by(command, home / "report.log", TIMEOUT_SECONDS)


def main(location: str, output: str) -> None:
    """Prints the seconds of each of several reports in one process."""
    from spark.engine.session import SparkSettings, started  # noqa: PLC0415 -- as above
    from spark.report.build import report, requested  # noqa: PLC0415 -- as above
    from spark.storage.location import files_at  # noqa: PLC0415 -- only where it is measured

    with started(SparkSettings()) as session:
        for number in range(RUNS):
            began = time.monotonic()
            request = requested(location, f"{output}-{number}", (None, None), "UTC", None, datetime.now(UTC))
            report(request, files_at(location), lambda: session, lambda _: None, lambda: None)
            print(time.monotonic() - began)


if __name__ == "__main__":
    main(*sys.argv[1:])
