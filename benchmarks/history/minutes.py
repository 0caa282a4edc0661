"""Table: how large the minutes of many groups become in a year, and what minutes and waits add to a day's run."""

import shutil
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

from adapter.history.files import Folder
from adapter.history.parquet import encoded
from adapter.history.rows import Rows
from adapter.history.writer import path_for
from benchmarks.history.commands import TIMEOUT_SECONDS, compact
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.process_tree import Spent, spent_by
from benchmarks.measuring.samples import in_turn, median_ratio
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import say
from local.histories.large_day import PARTITIONS_OF_A_TOPIC, flushes, shuffled_flushes
from local.histories.plausible_history import write_large_day

DAYS, INTERVAL = 2, 30
"""Of the groups whose minutes are weighed."""
YEAR, MINUTES_OF_A_DAY = 365, 1440
MOST_GIGABYTES = 3
WITH, WITHOUT = "all", "less"
ROUNDS = 3
MOST_TIMES = 1.15
HOW = (
    "A year: two days of 1,000 groups, each with a topic of ten partitions that is sampled every 30 s, compacted by "
    "the command; the size of the files of minutes, times 182.5. Plausible: three of ten partitions are idle, the "
    "others' rates are spread widely around a median of 4.5 messages a second and follow a daily curve, and readers "
    "pause. Busy: every partition gets a random number of messages in each sample (half of them more than 20 a "
    "second), and random ones are read. A day's run: the day of 10,000 partitions of the table above is compacted by "
    "whole processes, in turn with and without the waits (of samples, hours and days, and the log ends that hours "
    "carry on for them) and the minutes; without, these columns and tables are there and empty. Ratios are computed "
    "for each round."
)


def measure(home: Path, effort: Effort) -> Table:
    partitions = effort.history_partitions[-1]
    kinds = {
        "plausible": flushes(partitions, INTERVAL, DAYS, 1, topics_of_a_group=1),
        "busy": shuffled_flushes(partitions, INTERVAL, DAYS, 1),
    }
    sizes = [line for kind, written in kinds.items() for line in _year(home, kind, partitions, written)]
    return Table("Minutes and waits", HOW, (*sizes, *_of_a_day(home, partitions)))


def _year(home: Path, kind: str, partitions: int, written: Iterable[Rows]) -> list[Row]:
    groups, location = partitions // PARTITIONS_OF_A_TOPIC, home / kind
    say(f"  {DAYS} days of {groups:,} groups, {kind}")
    for rows in written:
        Folder(location).write(path_for("adapter-0", rows.first_sample), encoded(rows))
    compact(location, home / "minutes.log")
    files = sorted(location.glob("minutes/*.parquet"))
    size = sum(path.stat().st_size for path in files)
    number = sum(pq.read_metadata(path).num_rows for path in files)
    shutil.rmtree(location)
    assert (len(files), number) == (DAYS, DAYS * MINUTES_OF_A_DAY * groups), "a row for each minute of each group"
    who = f"{groups:,} groups, {kind}"
    most = MOST_GIGABYTES if groups == 1_000 else None
    return [
        row(f"{who}: minutes of a year", size * YEAR / DAYS / 1e9, most, " GB"),
        row(f"{who}: bytes per row of minutes", size / number),
    ]


def _of_a_day(home: Path, partitions: int) -> list[Row]:
    say(f"  a day of {partitions:,} partitions, with and without minutes and waits")
    day = home / "day"
    rows = write_large_day(day, partitions, 15, 1).rows
    spent: dict[str, list[Spent]] = {WITH: [], WITHOUT: []}
    for number in range(ROUNDS):
        for what in in_turn(spent, number):
            say(f"    {what}, round {number}")
            spent[what].append(_compacted(home, day, what))
    shutil.rmtree(day)
    wall = {what: [each.wall for each in runs] for what, runs in spent.items()}
    cpu = {what: [each.cpu for each in runs] for what, runs in spent.items()}
    who = f"{partitions:,} partitions, {rows / 1e6:.2f} million rows"
    return [
        *(
            row(f"{who}: compact {words}, wall time", statistics.median(wall[what]), None, " s", ".1f")
            for what, words in ((WITH, "with all columns"), (WITHOUT, "without minutes and waits"))
        ),
        row(
            f"{who}: with them, as a multiple of the wall time",
            median_ratio(wall[WITH], wall[WITHOUT]),
            MOST_TIMES,
            "x",
        ),
        row(f"{who}: with them, as a multiple of the CPU", median_ratio(cpu[WITH], cpu[WITHOUT]), MOST_TIMES, "x"),
    ]


def _compacted(home: Path, day: Path, what: str) -> Spent:
    location = home / "copy"
    location.mkdir()
    (location / "samples").symlink_to(day / "samples")
    command = [sys.executable, "-m", "benchmarks.history.without_waits", str(location), what]
    spent = spent_by(command, home / "copy.log", TIMEOUT_SECONDS)
    shutil.rmtree(location)
    return spent
