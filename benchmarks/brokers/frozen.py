"""Table: reads while one of three real brokers is frozen. Every read is answered, and no value is too old."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from kafka.admin import NewTopic

from benchmarks.measuring.effort import Effort
from benchmarks.measuring.samples import percentile
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import BROKERS, Rig, group_path, own_metric, say
from benchmarks.rig.paced_reads import Read, Reader
from local.adapter import Adapter, own_kubeconfig, process
from local.kafka.admin import admin
from local.kafka.broker import Broker, Kafka, kafka
from local.kafka.tools import commit
from local.processes import wait_until

PARTITIONS = 4
GROUPS_PER_TOPIC = 5
READ_EVERY_SECONDS = 0.02
CALM_SECONDS = 5.0
MOST_MILLISECONDS = 50
TIMEOUT_SECONDS = 90.0
RECOVERY_SECONDS = 15.0
LEAST_MAX_AGE_SECONDS = 12.0
"""Another broker takes over the frozen one's groups after 6 s; their last good values must last until then."""
HOW = (
    f"{BROKERS} real brokers, each with one topic of {PARTITIONS} partitions, {GROUPS_PER_TOPIC} groups for each; the "
    "groups' commits have three replicas. One broker is stopped (SIGSTOP) while one caller reads the groups in turn, "
    "50 times a second, as in the tables above; a read that waits counts from when it was due. maxAge is half of the "
    "freeze, so values from the frozen broker must be refused in its second half. Ages follow from the items' "
    "timestamps, which are rounded down to whole seconds, so they may seem 1 s too high."
)


@dataclass(frozen=True, slots=True)
class _Freeze:
    """The beginning and end on the monotonic clock, and what the freeze affects."""

    begin: float
    end: float
    held: frozenset[str]
    """The paths of the groups whose topic is on the frozen broker."""


def measure(rig: Rig, effort: Effort) -> Table:
    home = rig.home / "frozen-broker"
    max_age = max(effort.freeze_seconds / 2, LEAST_MAX_AGE_SECONDS)
    with _brokers(home / "kafka") as cluster:
        settings = {
            "clusters": [{"name": "main", "bootstrapServers": cluster.bootstrap_servers.split(",")}],
            "collection": {"interval": f"{max_age / 6:g}s", "maxAge": f"{max_age:g}s"},
        }
        with process(home / "adapter", settings, own_kubeconfig(rig.plane)) as running:
            rows = BROKERS * GROUPS_PER_TOPIC * PARTITIONS
            wait_until(
                lambda: running.is_ready() and own_metric(running, "kafka_lag_adapter_partitions", state="ok") == rows,
                f"{rows} good rows",
                TIMEOUT_SECONDS,
                alive=[running.process],
            )
            say(f"  {effort.freeze_seconds:.0f} s without broker {cluster.brokers[-1].node_id}")
            reads, freeze = _reads_during_freeze(running, rig.token, cluster.brokers[-1], effort.freeze_seconds)
    return Table(
        f"Reads while one of {BROKERS} brokers is frozen for {effort.freeze_seconds:.0f} s", HOW,
        tuple(_rows(reads, freeze, max_age)),
    )  # fmt: skip


@contextlib.contextmanager
def _brokers(home: Path) -> Iterator[Kafka]:
    with kafka(home, brokers=BROKERS, heap_megabytes=384) as cluster:
        nodes = [broker.node_id for broker in cluster.brokers]
        with admin(cluster.bootstrap_servers, request_timeout_ms=60_000) as client:
            client.create_topics([_topic_on(node) for node in nodes])
        for node, number in product(nodes, range(GROUPS_PER_TOPIC)):
            commit(cluster, _group(node, number), {(f"on-{node}", index): 0 for index in range(PARTITIONS)})
        yield cluster


def _topic_on(node: int) -> NewTopic:
    return NewTopic(f"on-{node}", replica_assignments={index: [node] for index in range(PARTITIONS)})


def _group(node: int, number: int) -> str:
    return f"reads-on-{node}-{number}"


def _reads_during_freeze(running: Adapter, token: str, broker: Broker, seconds: float) -> tuple[list[Read], _Freeze]:
    nodes = range(1, BROKERS + 1)
    paths = [group_path(_group(node, number)) for number, node in product(range(GROUPS_PER_TOPIC), nodes)]
    held = frozenset(group_path(_group(broker.node_id, number)) for number in range(GROUPS_PER_TOPIC))
    with Reader(running, token) as reader, contextlib.ExitStack() as stack:
        reads = reader.paced(paths, READ_EVERY_SECONDS, CALM_SECONDS)
        broker.freeze()
        stack.callback(broker.thaw)
        begin = time.monotonic()
        reads += reader.paced(paths, READ_EVERY_SECONDS, seconds)
        broker.thaw()
        end = time.monotonic()
        reads += reader.paced(paths, READ_EVERY_SECONDS, RECOVERY_SECONDS)
    return reads, _Freeze(begin, end, held)


def _rows(reads: Sequence[Read], freeze: _Freeze, max_age: float) -> Iterator[Row]:
    meanwhile = [read for read in reads if freeze.begin <= read.due < freeze.end]
    odd = [read for read in reads if read.status not in {200, 503}]
    refused = [read for read in reads if read.status == 503]
    taken = [1000 * read.seconds for read in meanwhile]
    yield row(
        f"{len(meanwhile):,} reads during the freeze: neither served nor refused as too old", len(odd), 0, form=".0f"
    )
    yield row("p50", percentile(taken, 50), unit=" ms")
    yield row("p99", percentile(taken, 99), MOST_MILLISECONDS, " ms")
    yield row("slowest", max(taken), unit=" ms", form=".1f")
    oldest = max(read.age for read in reads if read.status == 200)
    yield row(f"oldest value served (maxAge {max_age:g} s)", oldest, max_age + 1, " s", ".1f")
    strays = [read for read in refused if read.path not in freeze.held]
    yield row("refused reads of groups without data on the frozen broker", len(strays), 0, form=".0f")
    yield from _of_the_held(refused, freeze)


def _of_the_held(refused: Sequence[Read], freeze: _Freeze) -> Iterator[Row]:
    of_held = [read.due for read in refused if read.path in freeze.held]
    if not of_held:
        yield Row("refused reads of groups with a topic on it", "none")
        return
    first, last = min(of_held) - freeze.begin, max(of_held) - freeze.end
    yield Row("refused reads of groups with a topic on it", f"{len(of_held):,}, the first {first:.1f} s after it began")
    yield Row("all groups are served again", f"{max(last, 0.0):.1f} s after it ended")
