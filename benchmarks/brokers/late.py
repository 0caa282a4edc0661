"""Table: by how much lag is overstated while a broker that the group does not need is late or frozen."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from adapter import clock
from adapter.collector.threads import collectors_of, start_all, stop_all
from adapter.errors import AdapterError
from adapter.metrics.query import Metrics
from adapter.metrics.requirement import Operator, Requirement
from adapter.metrics.store import Store
from adapter.settings.models import Settings
from adapter.telemetry import Telemetry
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Row, Table, row
from benchmarks.rig.cluster import say
from local.kafka.late_broker import PARTITIONS, TOPIC, LateBroker, late_broker
from local.kafka.level_group import LevelGroup, level_group
from local.processes import wait_until

RATE = 5_000
LATE_SECONDS = 2.0
MAX_AGE_SECONDS = 60.0
READ_EVERY_SECONDS = 0.05
MOST_SECONDS = 0.5
TIMEOUT_SECONDS = 60.0
HOW = (
    f"3 real brokers. A producer writes {RATE:,} messages a second to two partitions, which brokers 1 and 2 lead, and "
    "the group commits each batch of 200 as soon as it is written. Broker 1 coordinates the group; broker 3 has only "
    f"data of another group. Its answers to the adapter are delayed by {LATE_SECONDS:g} s, or it is stopped (SIGSTOP). "
    "The rows show the largest lag that was served, and for how long too many messages were counted. The collector, "
    "with an interval of 1 s, runs in the process that produces."
)


def measure(home: Path, effort: Effort) -> Table:
    rows: list[Row] = []
    with (
        late_broker(home / "kafka") as brokers,
        level_group(brokers.cluster.bootstrap_servers, brokers.group, TOPIC, PARTITIONS, RATE) as load,
        _collecting(brokers) as metrics,
    ):
        load.wait_for_steps(100)
        wait_until(lambda: _lag(metrics, brokers.group) is not None, "a first lag", TIMEOUT_SECONDS)
        frozen = brokers.cluster.brokers[-1]
        rows += _rows("all brokers quick", metrics, brokers.group, load, effort.late_seconds)
        brokers.door.delay = LATE_SECONDS
        rows += _rows(f"broker 3 answers {LATE_SECONDS:g} s late", metrics, brokers.group, load, effort.late_seconds)
        brokers.door.delay = 0.0
        frozen.freeze()
        try:
            rows += _rows("broker 3 is frozen", metrics, brokers.group, load, effort.late_seconds)
        finally:
            frozen.thaw()
        rows.append(row("rate of the producer", load.rate, unit=" messages/s", form=",.0f"))
    return Table("Lag overstated under a late broker", HOW, tuple(rows))


@contextlib.contextmanager
def _collecting(brokers: LateBroker) -> Iterator[Metrics]:
    settings = Settings.model_validate(
        {
            "clusters": [{"name": "main", "bootstrapServers": brokers.cluster.outside_servers.split(",")}],
            "collection": {"interval": "1s", "maxAge": f"{MAX_AGE_SECONDS:g}s"},
        }
    )
    store = Store(["main"])
    collectors = collectors_of(settings, store, Telemetry(), clock).values()
    start_all(collectors)
    try:
        yield Metrics(settings, store, clock)
    finally:
        stop_all(collectors, TIMEOUT_SECONDS)


def _lag(metrics: Metrics, group: str) -> int | None:
    try:
        found = metrics.read("kafka_consumergroup_lag", [Requirement("group", Operator.IN, frozenset({group}))])
    except AdapterError:
        return None
    return sum(item.milli // 1000 for item in found.values)


def _rows(what: str, metrics: Metrics, group: str, load: LevelGroup, seconds: float) -> Iterator[Row]:
    say(f"  {what}: {seconds:.0f} s")
    ends, largest, worst = time.monotonic() + seconds, 0, 0.0
    while (now := time.monotonic()) < ends:
        lag = _lag(metrics, group)
        if lag is not None:
            largest, worst = max(largest, lag), max(worst, load.excess(lag, now, since=now - MAX_AGE_SECONDS))
        time.sleep(READ_EVERY_SECONDS)
    yield row(f"{what}: largest lag served", largest, unit=" messages", form=",.0f")
    yield row(f"{what}: overstated by the production of", worst, MOST_SECONDS, " s")
