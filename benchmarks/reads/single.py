"""Table: reads of a small, a large and a huge group, and of all groups, and how long each blocks the event loop."""

import statistics
import time
from dataclasses import dataclass, field

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.heartbeat import Watched, longest_stretch, watched
from benchmarks.measuring.samples import percentile
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.reads.busy_cycles import refuse_bad, wait_until_all_is_read
from benchmarks.rig.cluster import Rig, cycles, group_path, path_with, say, wait_for_cycles
from benchmarks.rig.measured_server import WRITE_SECONDS
from benchmarks.rig.paced_reads import Read, Reader
from benchmarks.rig.stored_brokers import stored_brokers
from benchmarks.rig.stored_cluster import PARTITIONS_PER_TOPIC, StoredGroup, groups_of
from local.processes import RigError

NODES = 3
GROUPS = 1000
MOST_BLOCKED_MILLISECONDS = 20
PAUSE_SECONDS = 0.02
SETTLE_SECONDS = 1.0
OWN = (
    StoredGroup("one", 1, 1),
    StoredGroup("hundred", 5, PARTITIONS_PER_TOPIC),
    StoredGroup("ten-thousand", 500, PARTITIONS_PER_TOPIC),
)
HOW = (
    f"The real server over fake brokers with {GROUPS:,} groups, nearly all of 100 partitions in 5 topics. Between two "
    "cycles (interval 20 s), one caller sends one read at a time, each a query that is new since the latest cycle, so "
    "its reply is not cached. A task in the event loop that should wake up every millisecond shows how long the loop "
    "was blocked: its longest delay while a read was answered, and during all reads of that kind."
)


@dataclass(frozen=True, slots=True)
class _Span:
    """A stretch of monotonic time, and the reads in it."""

    begin: float
    end: float
    reads: list[Read] = field(default_factory=list)


def measure(rig: Rig, effort: Effort) -> Table:
    home = rig.home / "single-reads"
    groups = (*OWN, *groups_of((GROUPS - len(OWN)) * 100))
    with stored_brokers(home / "brokers", groups, NODES) as cluster:
        servers = cluster.bootstrap_servers.split(",")
        collection = {"interval": "20s"}
        settings = {"clusters": [{"name": "main", "bootstrapServers": servers}], "collection": collection}
        with watched(rig, home / "adapter", settings) as server:
            wait_until_all_is_read(server, cluster.partitions)
            rows = _rows(rig, effort, server)
    return Table("One read, by size", HOW, rows)


def _rows(rig: Rig, effort: Effort, server: Watched) -> tuple[Row, ...]:
    kinds = {
        "1 partition": group_path("one"),
        "100 partitions in 5 topics": group_path("hundred"),
        "10,000 partitions in 500 topics": group_path("ten-thousand"),
        f"no selector, {GROUPS:,} groups": path_with({}),
    }
    wait_for_cycles(server.adapter, 1)
    # What a cycle leaves to be done, in the collector's thread or the library's, is not the reads'.
    time.sleep(SETTLE_SECONDS)
    before = cycles(server.adapter)
    idle = _Span(time.monotonic(), time.monotonic() + SETTLE_SECONDS)
    time.sleep(SETTLE_SECONDS)
    with Reader(server.adapter, rig.token) as reader:
        reader.read(path_with({"group": "nobody"}))  # TokenReview and SubjectAccessReview are kept from then on
        spans = {kind: _reads(reader, path, effort.single_reads) for kind, path in kinds.items()}
    if cycles(server.adapter) != before:
        raise RigError(f"a cycle came between the reads: see {server.adapter.process.log}")
    time.sleep(2 * WRITE_SECONDS)  # until the last beats are in the file
    beats = server.late_beats()
    rows = [each for kind, span in spans.items() for each in _rows_of(kind, span, beats)]
    quiet = 1000 * longest_stretch(beats, idle.begin, idle.end)
    return (*rows, row("no reads: longest blocking of the loop", quiet, unit=" ms", form=".1f"))


def _reads(reader: Reader, path: str, count: int) -> _Span:
    """Returns new replies: a parameter without meaning makes each query different."""
    say(f"  {path[path.rindex('/') + 1 :]}")
    begin, reads = time.monotonic(), []
    for number in range(count):
        reads.append(reader.read(f"{path}{'&' if '?' in path else '?'}number={number}"))
        time.sleep(PAUSE_SECONDS)
    refuse_bad(reads)
    return _Span(begin, time.monotonic(), reads)


def _rows_of(kind: str, span: _Span, beats: list[tuple[float, float]]) -> list[Row]:
    taken = [1000 * read.seconds for read in span.reads]
    each = [1000 * longest_stretch(beats, read.due, read.due + read.seconds) for read in span.reads]
    blocked = 1000 * longest_stretch(beats, span.begin, span.end)
    figures = f"p50 {percentile(taken, 50):.2f} ms, p99 {percentile(taken, 99):.2f} ms"
    return [
        Row(f"{kind}: {len(taken)} reads of {len(span.reads[0].body):,} bytes", figures),
        row(f"{kind}: blocking of the loop by one read, median", statistics.median(each), unit=" ms", form=".1f"),
        row(f"{kind}: longest blocking of the loop", blocked, MOST_BLOCKED_MILLISECONDS, " ms", ".1f"),
    ]
