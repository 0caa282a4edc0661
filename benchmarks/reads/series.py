"""Table: reads while the series of all partitions are scraped one time after the other, and their memory."""

import contextlib
import gzip
import time
from collections.abc import Callable, Iterator

import urllib3

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.heartbeat import Watched
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.reads.beside import compared, rows_of
from benchmarks.reads.busy_cycles import MEGABYTE
from benchmarks.rig.cluster import Rig

NAME = "scrapes"
MOST_MORE_MEMORY_PERCENT = 30.0
COMPRESSED = {"accept-encoding": "gzip"}
NEWLINE = b"\n"
HOW = (
    "The real server with 3 fake brokers of the table above, default settings and `series: {by: partition}` without a "
    "limit that matters. One client reads `/metrics/groups`, compressed, again and again; another one reads as in the "
    "table above, one read every 10 ms, first without the scrapes. Memory is the peak of the server's resident set, in "
    "per cent of what it was before the first scrape."
)


class _Scrapes:
    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.newest = b""
        """The compressed text."""


def measure(rig: Rig, effort: Effort) -> Table:
    scrapes = _Scrapes()

    @contextlib.contextmanager
    def scraping(server: Watched) -> Iterator[Callable[[], None]]:
        with urllib3.HTTPConnectionPool("127.0.0.1", server.adapter.metrics_port) as pool:
            yield lambda: _scrape(pool, scrapes)

    settings = {"series": {"by": "partition", "limit": 100 * max(effort.busy_partitions)}}
    seen = compared(rig, effort, NAME, settings, scraping)
    text = gzip.decompress(scrapes.newest)
    sizes = f"{len(text) / MEGABYTE:.0f} MB, {len(scrapes.newest) / MEGABYTE:.1f} MB compressed"
    more = 100 * seen.more_memory / seen.memory_before
    rows = [
        Row(NAME, f"{len(scrapes.seconds)}, the slowest {max(scrapes.seconds):.1f} s"),
        Row("a scrape", f"{text.count(NEWLINE):,} lines, {sizes}"),
        *rows_of(seen, NAME),
        Row("resident memory before", f"{seen.memory_before / MEGABYTE:.0f} MB"),
        row("more memory", more, MOST_MORE_MEMORY_PERCENT, " %", ".1f"),
    ]
    return Table("Reads while all series are scraped", HOW, tuple(rows))


def _scrape(pool: urllib3.HTTPConnectionPool, scrapes: _Scrapes) -> None:
    began = time.monotonic()
    answer = pool.request("GET", "/metrics/groups", headers=COMPRESSED, timeout=60.0, preload_content=False)
    # What decompresses it here would take its time from the reader.
    scrapes.newest = b"".join(answer.stream(65536, decode_content=False))
    scrapes.seconds.append(time.monotonic() - began)
