"""Table: reads while the status page is asked for again and again, and its memory."""

import contextlib
import threading
import time
from collections.abc import Iterator

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.heartbeat import Watched, longest_stretch, watched
from benchmarks.measuring.samples import memory, percentile
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.reads.busy_cycles import MEGABYTE, refuse_bad, wait_until_all_is_read
from benchmarks.reads.series import FIRST_CYCLES, MOST_READ_MILLISECONDS, NODES, READ_EVERY_SECONDS
from benchmarks.rig.cluster import Rig, group_path, say, wait_for_cycles
from benchmarks.rig.measured_server import WRITE_SECONDS
from benchmarks.rig.paced_reads import Reader
from benchmarks.rig.stored_brokers import stored_brokers
from benchmarks.rig.stored_cluster import groups_of
from local.adapter import EXTERNAL_METRICS

PAGE = f"{EXTERNAL_METRICS}/namespaces/default/kafka_consumergroup_lag?output=html"
HOW = (
    "The real server with 3 fake brokers of the tables above and default settings. One client asks for the status page "
    "again as soon as it has it; another one reads as in the tables above, one read every 10 ms, first without pages."
)


def measure(rig: Rig, effort: Effort) -> Table:
    partitions = max(effort.busy_partitions)
    home, groups = rig.home / "status-pages", groups_of(partitions)
    with stored_brokers(home / "brokers", groups, NODES) as cluster:
        clusters = [{"name": "main", "bootstrapServers": cluster.bootstrap_servers.split(",")}]
        with watched(rig, home / "adapter", {"clusters": clusters}) as server:
            wait_until_all_is_read(server, partitions)
            wait_for_cycles(server.adapter, min(FIRST_CYCLES, effort.memory_cycles))
            rows = _rows(effort, rig, server, [group_path(group.name) for group in groups])
    return Table("Reads while status pages are made", HOW, tuple(rows))


def _rows(effort: Effort, rig: Rig, server: Watched, paths: list[str]) -> list[Row]:
    pid, pages = server.adapter.process.pid, list[tuple[float, int]]()
    with Reader(server.adapter, rig.token) as reader:
        refuse_bad([reader.read(path) for path in paths])
        say(f"  {effort.busy_seconds / 2:.0f} s of reads alone")
        alone = reader.paced(paths, READ_EVERY_SECONDS, effort.busy_seconds / 2)
        before = memory(pid)[1]
        say(f"  {effort.busy_seconds / 2:.0f} s of reads and pages")
        with _asking(server, rig.token, pages):
            began = time.monotonic()
            reads = reader.paced(paths, READ_EVERY_SECONDS, effort.busy_seconds / 2)
            ended = time.monotonic()
    refuse_bad([*alone, *reads])
    time.sleep(2 * WRITE_SECONDS)  # until the last beats are in the file
    taken, others = ([1000 * read.seconds for read in each] for each in (reads, alone))
    stretch = longest_stretch(server.late_beats(), began, ended)
    seconds, sizes = zip(*pages, strict=True)
    return [
        Row("pages", f"{len(pages)} of {len(paths):,} groups, {max(sizes) / 1000:.0f} kB"),
        row("a page: p50", 1000 * percentile(seconds, 50), unit=" ms", form=".0f"),
        row(f"without pages: p50 of {len(alone):,} reads", percentile(others, 50), unit=" ms"),
        row("without pages: p99", percentile(others, 99), unit=" ms"),
        row(f"p50 of {len(reads):,} reads", percentile(taken, 50), unit=" ms"),
        row("p99", percentile(taken, 99), MOST_READ_MILLISECONDS, " ms"),
        row("slowest", max(taken), unit=" ms", form=".1f"),
        row("longest blocking of the event loop", 1000 * stretch, unit=" ms", form=".1f"),
        Row("more memory", f"{(memory(pid)[1] - before) / MEGABYTE:.0f} MB"),
    ]


@contextlib.contextmanager
def _asking(server: Watched, token: str, pages: list[tuple[float, int]]) -> Iterator[None]:
    """Asks in a thread, at least once."""
    ending = threading.Event()

    def ask() -> None:
        # On one connection: a handshake for each page would cost more than the page.
        with Reader(server.adapter, token) as reader:
            while not pages or not ending.is_set():
                page = reader.read(PAGE)
                assert page.status == 200, page.body
                pages.append((page.seconds, len(page.body)))

    thread = threading.Thread(target=ask, name="pages")
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
