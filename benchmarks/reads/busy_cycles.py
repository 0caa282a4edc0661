"""Table: reads while cycles run one after another, and the memory of a hundred cycles."""

import time

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.heartbeat import Watched, longest_stretch, watched
from benchmarks.measuring.samples import memory, percentile
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import Rig, cycles, group_path, own_metric, say, wait_for_cycles
from benchmarks.rig.measured_server import WRITE_SECONDS
from benchmarks.rig.paced_reads import Read, Reader
from benchmarks.rig.stored_brokers import stored_brokers
from benchmarks.rig.stored_cluster import groups_of
from local.processes import RigError, wait_until

NODES = 3
MEGABYTE = 1_000_000
READ_EVERY_SECONDS = 0.005
MOST_READ_MILLISECONDS = {10_000: 5.0, 100_000: 15.0}
MOST_MEGABYTES, MOST_GROWTH_MEGABYTES = 260, 20
"""What is remembered of the movement of offsets takes up to 60 MB of it; it grows with each doubling of the cycles."""
FIRST_CYCLES = 20
"""Cycles after which memory should no longer grow."""
START_TIMEOUT_SECONDS = 120.0
HOW = (
    "The real server with 3 fake brokers of the table above, and a collector without a pause between its cycles. A "
    "read is the lag of one group by selector over TLS on a kept connection with a ServiceAccount's token, one every "
    "5 ms, each of another group, so that nearly no reply comes from the cache; a read that waits for the previous "
    "one counts from when it was due. A task in the event loop that should wake up every millisecond shows how long "
    "the loop was blocked. Memory is the server's resident set; its growth is the difference between 100 and 20 "
    "cycles."
)


def measure(rig: Rig, effort: Effort) -> Table:
    rows: list[Row] = []
    for partitions in effort.busy_partitions:
        home = rig.home / f"busy-cycles-{partitions}"
        groups = groups_of(partitions)
        with stored_brokers(home / "brokers", groups, NODES) as cluster:
            settings = {"clusters": [{"name": "main", "bootstrapServers": cluster.bootstrap_servers.split(",")}]}
            with watched(rig, home / "adapter", settings, without_pause=True) as server:
                wait_until_all_is_read(server, partitions)
                paths = [group_path(group.name) for group in groups]
                if partitions == max(effort.busy_partitions):
                    rows += _memory_rows(effort, server, partitions)
                with Reader(server.adapter, rig.token) as reader:
                    refuse_bad([reader.read(path) for path in paths])  # so that nothing is measured that is done once
                    rows += _read_rows(effort, server, reader, partitions, paths)
    return Table("Reads while cycles run back to back", HOW, tuple(rows))


def wait_until_all_is_read(server: Watched, partitions: int) -> None:
    wait_until(
        lambda: own_metric(server.adapter, "kafka_lag_adapter_partitions", state="ok") == partitions,
        f"{partitions} good rows",
        START_TIMEOUT_SECONDS,
        alive=[server.adapter.process],
    )


def _read_rows(effort: Effort, server: Watched, reader: Reader, partitions: int, paths: list[str]) -> list[Row]:
    say(f"  {partitions:,} partitions: {effort.busy_seconds:.0f} s of reads")
    first, began = cycles(server.adapter), time.monotonic()
    reads = reader.paced(paths, READ_EVERY_SECONDS, effort.busy_seconds)
    ended, count = time.monotonic(), cycles(server.adapter) - first
    refuse_bad(reads)
    taken = [1000 * read.seconds for read in reads]
    time.sleep(2 * WRITE_SECONDS)  # until the last beats are in the file
    stretch = longest_stretch(server.late_beats(), began, ended)
    who = f"{partitions:,} partitions"
    return [
        Row(f"{who}: cycles during the reads", f"{count}, one every {(ended - began) / max(count, 1):.2f} s"),
        row(f"{who}: p50 of {len(reads):,} reads", percentile(taken, 50), unit=" ms"),
        row(f"{who}: p99", percentile(taken, 99), MOST_READ_MILLISECONDS.get(partitions), " ms"),
        row(f"{who}: slowest", max(taken), unit=" ms", form=".1f"),
        row(f"{who}: longest blocking of the event loop", 1000 * stretch, unit=" ms", form=".1f"),
    ]


def refuse_bad(reads: list[Read]) -> None:
    """Raises RigError if a read did not return 200."""
    for read in reads:
        if read.status != 200:
            raise RigError(f"{read.path} was answered with {read.status}: {read.body[:500]!r}")


def _memory_rows(effort: Effort, server: Watched, partitions: int) -> list[Row]:
    say(f"  memory over {effort.memory_cycles} cycles")
    pid = server.adapter.process.pid
    _wait_for_cycle(server, FIRST_CYCLES)
    begin, first = cycles(server.adapter), memory(pid)[0]
    _wait_for_cycle(server, effort.memory_cycles)
    end, (last, peak) = cycles(server.adapter), memory(pid)
    after = row(
        f"{partitions:,} partitions: resident memory after {end} cycles", last / MEGABYTE, MOST_MEGABYTES, " MB", ".0f"
    )
    grown = f"{partitions:,} partitions: growth since {begin} cycles"
    return [
        Row(after.what, f"{after.figure} (peak {peak / MEGABYTE:.0f} MB)", after.goal, after.verdict),
        row(grown, (last - first) / MEGABYTE, MOST_GROWTH_MEGABYTES, " MB", ".1f"),
    ]


def _wait_for_cycle(server: Watched, number: int) -> None:
    wait_for_cycles(server.adapter, max(0, number - cycles(server.adapter)))
