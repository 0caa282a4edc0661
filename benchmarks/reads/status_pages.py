"""Table: reads while the status page is asked for again and again, and its memory."""

import contextlib
from collections.abc import Callable, Iterator

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.heartbeat import Watched
from benchmarks.measuring.samples import percentile
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.reads.beside import compared, rows_of
from benchmarks.reads.busy_cycles import MEGABYTE
from benchmarks.rig.cluster import Rig
from benchmarks.rig.paced_reads import Read, Reader
from local.adapter import EXTERNAL_METRICS

NAME = "pages"
PAGE = f"{EXTERNAL_METRICS}/namespaces/default/kafka_consumergroup_lag?output=html"
HOW = (
    "The real server with 3 fake brokers of the tables above and default settings. One client asks for the status page "
    "again as soon as it has it, which is made anew every 10 s; another one reads as in the tables above, one read "
    "every 10 ms, first without pages."
)


def measure(rig: Rig, effort: Effort) -> Table:
    pages: list[Read] = []

    @contextlib.contextmanager
    def asking(server: Watched) -> Iterator[Callable[[], None]]:
        # On one connection: a handshake for each page would cost more than the page.
        with Reader(server.adapter, rig.token) as reader:
            yield lambda: pages.append(reader.read(PAGE))

    seen = compared(rig, effort, NAME, {}, asking)
    assert all(page.status == 200 for page in pages), pages[0].body
    size = max(len(page.body) for page in pages) / 1000
    rows = [
        Row(NAME, f"{len(pages)}, of at most {size:.0f} kB"),
        row("a page: p50", 1000 * percentile([page.seconds for page in pages], 50), unit=" ms", form=".0f"),
        *rows_of(seen, NAME),
        Row("more memory", f"{seen.more_memory / MEGABYTE:.0f} MB"),
    ]
    return Table("Reads while status pages are made", HOW, tuple(rows))
