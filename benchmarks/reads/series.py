"""Table: reads while the series of all partitions are scraped one time after the other, and their memory."""

import contextlib
import gzip
import threading
import time
from collections.abc import Iterator

import urllib3

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.heartbeat import Watched, longest_stretch, watched
from benchmarks.measuring.samples import memory, percentile
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.reads.busy_cycles import MEGABYTE, refuse_bad, wait_until_all_is_read
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
MOST_MORE_MEMORY_PERCENT = 30.0
COMPRESSED = {"accept-encoding": "gzip"}
NEWLINE = b"\n"
HOW = (
    "The real server with 3 fake brokers of the table above, default settings and `series: {by: partition}` without a "
    "limit that matters. One client reads `/metrics/groups`, compressed, again and again; another one reads as in the "
    "table above, one read every 10 ms, first without the scrapes. Memory is the peak of the server's resident set, in "
    "per cent of what it was before the first scrape."
)


def measure(rig: Rig, effort: Effort) -> Table:
    partitions = max(effort.busy_partitions)
    home, groups = rig.home / "series", groups_of(partitions)
    with stored_brokers(home / "brokers", groups, NODES) as cluster:
        clusters = [{"name": "main", "bootstrapServers": cluster.bootstrap_servers.split(",")}]
        settings = {"clusters": clusters, "series": {"by": "partition", "limit": 100 * partitions}}
        with watched(rig, home / "adapter", settings) as server:
            wait_until_all_is_read(server, partitions)
            wait_for_cycles(server.adapter, min(FIRST_CYCLES, effort.memory_cycles))
            rows = _rows(effort, rig, server, [group_path(group.name) for group in groups])
    return Table("Reads while all series are scraped", HOW, tuple(rows))


class _Scrapes:
    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.newest = b""
        """The compressed text."""


def _rows(effort: Effort, rig: Rig, server: Watched, paths: list[str]) -> list[Row]:
    pid, scrapes = server.adapter.process.pid, _Scrapes()
    with Reader(server.adapter, rig.token) as reader:
        refuse_bad([reader.read(path) for path in paths])
        say(f"  {effort.busy_seconds / 2:.0f} s of reads alone")
        alone = reader.paced(paths, READ_EVERY_SECONDS, effort.busy_seconds / 2)
        before = memory(pid)[1]
        say(f"  {effort.busy_seconds / 2:.0f} s of reads and scrapes")
        with _scraping(server, scrapes):
            began = time.monotonic()
            reads = reader.paced(paths, READ_EVERY_SECONDS, effort.busy_seconds / 2)
            ended = time.monotonic()
    refuse_bad([*alone, *reads])
    time.sleep(2 * WRITE_SECONDS)  # until the last beats are in the file
    taken, others = ([1000 * read.seconds for read in each] for each in (reads, alone))
    text = gzip.decompress(scrapes.newest)
    sizes = f"{len(text) / MEGABYTE:.0f} MB, {len(scrapes.newest) / MEGABYTE:.1f} MB compressed"
    stretch = longest_stretch(server.late_beats(), began, ended)
    more = 100 * (memory(pid)[1] / before - 1)
    return [
        Row("scrapes", f"{len(scrapes.seconds)}, the slowest {max(scrapes.seconds):.1f} s"),
        Row("a scrape", f"{text.count(NEWLINE):,} lines, {sizes}"),
        row(f"without scrapes: p50 of {len(alone):,} reads", percentile(others, 50), unit=" ms"),
        row("without scrapes: p99", percentile(others, 99), unit=" ms"),
        row(f"p50 of {len(reads):,} reads", percentile(taken, 50), unit=" ms"),
        row("p99", percentile(taken, 99), MOST_READ_MILLISECONDS, " ms"),
        row("p99, as a multiple of that without scrapes", percentile(taken, 99) / percentile(others, 99)),
        row("slowest", max(taken), unit=" ms", form=".1f"),
        row("longest blocking of the event loop", 1000 * stretch, unit=" ms", form=".1f"),
        Row("resident memory before", f"{before / MEGABYTE:.0f} MB"),
        row("more memory", more, MOST_MORE_MEMORY_PERCENT, " %", ".1f"),
    ]


@contextlib.contextmanager
def _scraping(server: Watched, scrapes: _Scrapes) -> Iterator[None]:
    """Scrapes in a thread, at least once."""
    ending = threading.Event()

    def scrape() -> None:
        with urllib3.HTTPConnectionPool("127.0.0.1", server.adapter.metrics_port) as pool:
            while not scrapes.seconds or not ending.is_set():
                began = time.monotonic()
                answer = pool.request("GET", "/metrics/groups", headers=COMPRESSED, timeout=60.0, preload_content=False)
                # What decompresses it here would take its time from the reader.
                scrapes.newest = b"".join(answer.stream(65536, decode_content=False))
                scrapes.seconds.append(time.monotonic() - began)

    thread = threading.Thread(target=scrape, name="scrapes")
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
