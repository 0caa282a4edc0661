"""Table: the cost of writing the history, alone and within a cycle."""

import statistics
import time
from itertools import islice
from pathlib import Path

from adapter.history.files import Folder
from adapter.history.parquet import encoded
from adapter.history.writer import path_for
from benchmarks.cycles.cost import WARM_UP
from benchmarks.cycles.timed import CyclePlan, run
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import say
from benchmarks.rig.stored_brokers import stored_brokers
from benchmarks.rig.stored_cluster import groups_of
from local.histories.large_day import flushes

MOST_MILLISECONDS = 15
GOAL_PARTITIONS = 1_000
HOW = (
    "Five minutes of samples every 15 s, as columns in memory, become one Parquet file in a local folder (temporary "
    "name, fsync, rename). CPU is that of the process, as medians over the flushes after the first. Within a cycle: "
    "the mean CPU of all cycles of the adapter's own collector on 3 fake brokers, as in the table of cycles, with and "
    "without a history. It includes taking the sample, but not the flush in every 30th cycle, which the other rows "
    "show."
)


def measure(home: Path, effort: Effort) -> Table:
    rows: list[Row] = []
    for partitions in effort.history_partitions:
        say(f"  {partitions:,} partitions: {effort.history_flushes} flushes")
        rows += _flushes(home / f"history-{partitions}", partitions, effort.history_flushes)
    say("  cycles without and with a history")
    return Table("Writing the history", HOW, (*rows, *_cycles(home, effort)))


def _flushes(location: Path, partitions: int, count: int) -> list[Row]:
    location.mkdir()
    folder = Folder(location)
    cpu, wall, size, written = [], [], 0, 0
    for rows in islice(flushes(partitions, 15, 1, 1), count):
        cpu_before, before = time.process_time(), time.perf_counter()
        content = encoded(rows)
        folder.write(path_for("benchmark", rows.first_sample), content)
        cpu.append(1000 * (time.process_time() - cpu_before))
        wall.append(1000 * (time.perf_counter() - before))
        size, written = size + content.size, written + len(rows)
    who = f"{partitions:,} partitions"
    most = MOST_MILLISECONDS if partitions == GOAL_PARTITIONS else None
    return [
        row(f"{who}: CPU of a flush of {len(rows):,} rows", statistics.median(cpu[1:]), most, " ms", ".1f"),
        row(f"{who}: its wall time", statistics.median(wall[1:]), None, " ms", ".1f"),
        row(f"{who}: bytes per row of samples", size / written),
    ]


def _cycles(home: Path, effort: Effort) -> list[Row]:
    partitions = max(effort.history_partitions)
    with stored_brokers(home / "brokers", groups_of(partitions), 3) as cluster:
        servers = cluster.bootstrap_servers
        means = [
            1000
            * statistics.mean(
                each.cpu
                for each in run(
                    CyclePlan(servers, WARM_UP, effort.timed_cycles, partitions, history=history), home / name
                ).cycles
            )
            for name, history in (("without", ""), ("with", str(home / "kept")))
        ]
    who = f"{partitions:,} partitions"
    return [
        row(f"{who}: mean CPU of a cycle without a history", means[0], None, " ms", ".1f"),
        row(f"{who}: with a history", means[1], None, " ms", ".1f"),
        row(f"{who}: what the history adds", means[1] - means[0], None, " ms", ".1f"),
    ]
