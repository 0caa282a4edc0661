"""Reads of HPAs, first alone and then beside something else that the same server does again and again."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.heartbeat import Watched, longest_stretch, watched
from benchmarks.measuring.samples import memory, percentile
from benchmarks.measuring.tables import Row, row
from benchmarks.reads.busy_cycles import refuse_bad, wait_until_all_is_read
from benchmarks.rig.cluster import Rig, group_path, say, wait_for_cycles
from benchmarks.rig.measured_server import WRITE_SECONDS
from benchmarks.rig.paced_reads import Reader
from benchmarks.rig.stored_brokers import stored_brokers
from benchmarks.rig.stored_cluster import groups_of

NODES = 3
READ_EVERY_SECONDS = 0.01
FIRST_CYCLES = 12
"""Two minutes, after which there are rates."""
MOST_READ_MILLISECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Compared:
    """Times in milliseconds."""

    alone: list[float]
    beside: list[float]
    stretch: float
    """The longest in which the event loop was blocked meanwhile."""
    memory_before: int
    """Peak of the server's resident set in bytes, before it did anything else."""
    more_memory: int


Other = Callable[[Watched], AbstractContextManager[Callable[[], None]]]
"""Opens what it needs to do something else, and yields what does it once."""


def compared(rig: Rig, effort: Effort, name: str, settings: Mapping[str, Any], other: Other) -> Compared:
    """`name`: what else is done, in the plural."""
    partitions = max(effort.busy_partitions)
    home, groups = rig.home / name, groups_of(partitions)
    with stored_brokers(home / "brokers", groups, NODES) as cluster:
        clusters = [{"name": "main", "bootstrapServers": cluster.bootstrap_servers.split(",")}]
        with watched(rig, home / "adapter", {"clusters": clusters, **settings}) as server:
            wait_until_all_is_read(server, partitions)
            wait_for_cycles(server.adapter, min(FIRST_CYCLES, effort.memory_cycles))
            paths = [group_path(group.name) for group in groups]
            with other(server) as step:
                return _compared(rig, server, paths, effort.busy_seconds / 2, name, step)


def rows_of(seen: Compared, name: str) -> list[Row]:
    return [
        row(f"without {name}: p50 of {len(seen.alone):,} reads", percentile(seen.alone, 50), unit=" ms"),
        row(f"without {name}: p99", percentile(seen.alone, 99), unit=" ms"),
        row(f"p50 of {len(seen.beside):,} reads", percentile(seen.beside, 50), unit=" ms"),
        row("p99", percentile(seen.beside, 99), MOST_READ_MILLISECONDS, " ms"),
        row(f"p99, as a multiple of that without {name}", percentile(seen.beside, 99) / percentile(seen.alone, 99)),
        row("slowest", max(seen.beside), unit=" ms", form=".1f"),
        row("longest blocking of the event loop", seen.stretch, unit=" ms", form=".1f"),
    ]


def _compared(
    rig: Rig, server: Watched, paths: list[str], seconds: float, name: str, step: Callable[[], None]
) -> Compared:
    pid = server.adapter.process.pid
    with Reader(server.adapter, rig.token) as reader:
        refuse_bad([reader.read(path) for path in paths])
        say(f"  {seconds:.0f} s of reads alone")
        alone = reader.paced(paths, READ_EVERY_SECONDS, seconds)
        before = memory(pid)[1]
        say(f"  {seconds:.0f} s of reads and {name}")
        with _repeated(name, step):
            began = time.monotonic()
            reads = reader.paced(paths, READ_EVERY_SECONDS, seconds)
            ended = time.monotonic()
    refuse_bad([*alone, *reads])
    time.sleep(2 * WRITE_SECONDS)  # until the last beats are in the file
    stretch = 1000 * longest_stretch(server.late_beats(), began, ended)
    without, beside = ([1000 * read.seconds for read in each] for each in (alone, reads))
    return Compared(without, beside, stretch, before, memory(pid)[1] - before)


@contextlib.contextmanager
def _repeated(name: str, step: Callable[[], None]) -> Iterator[None]:
    """Calls `step` in a thread until the block ends, at least once."""
    ending = threading.Event()

    def run() -> None:
        step()
        while not ending.is_set():
            step()

    thread = threading.Thread(target=run, name=name)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
