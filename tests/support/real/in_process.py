"""The collector's parts in this process, on a real broker: a test runs every cycle itself and asks as clients do.

Nothing runs between two cycles, so what a test sees is what the last cycle read. What is due every 30 or 60 seconds
(Metadata, ListGroups, log starts, members) is due in the next cycle after `InProcess.put_forward`.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from adapter import clock
from adapter.collector.cycle import Cycle, Outcome
from adapter.conditions import Conditions
from adapter.errors import AdapterError
from adapter.kafka.client import Brokers
from adapter.lag.rules import Watching
from adapter.lag.states import TOO_FAR_APART
from adapter.memory.keeper import Exchange, MemoryKeeper
from adapter.metrics.definitions import SERVED
from adapter.metrics.problems import NoMatch
from adapter.metrics.query import Metrics, Reading
from adapter.metrics.store import Store
from adapter.settings.file import parse
from adapter.settings.models import Settings
from local.kafka.broker import Kafka
from local.processes import wait_until
from tests.support.samples import SHORT_NAMES, wants

ALL_DUE_SECONDS = 61.0
"""After this time everything that is read at intervals is due."""
WAIT_SECONDS = 120.0
"""For what Kafka does in a moment, on a machine that is busy with something else."""


@dataclass
class CycleClock:
    """The machine's clock, for the cycle alone: ahead of what readers and brokers go by."""

    ahead: float = 0.0

    def monotonic(self) -> float:
        return clock.monotonic() + self.ahead

    def time(self) -> float:
        return time.time() + self.ahead


@dataclass(frozen=True)
class InProcess:
    """One cluster's cycle, its store, and the metrics that are served from it; made by `in_process`."""

    settings: Settings
    brokers: Brokers
    store: Store
    cycle: Cycle
    metrics: Metrics
    requests: list[str] = field(default_factory=list)
    """The kind of every request that was sent, in order."""
    clock: CycleClock = field(default_factory=CycleClock)
    memory: MemoryKeeper = field(kw_only=True)
    """Its thread is not started: a test runs its rounds itself."""

    def run_once(self) -> Outcome:
        """Run one cycle, and again while this process was held up between commits and log ends.

        Such a cycle keeps the pairs of the one before; what it has read of commits alone says nothing to a test.
        """
        outcomes: list[Outcome] = []

        def is_in_time() -> bool:
            outcomes.append(self.cycle.run_once())
            return not any(TOO_FAR_APART in view.snapshot.causes for view in self.store.views)

        wait_until(is_in_time, "a cycle that is not held up", WAIT_SECONDS)
        return outcomes[-1]

    def read_all(self) -> Outcome:
        """Run cycles until one has read every row; any other keeps the last pair of what it has not read."""
        outcomes: list[Outcome] = []

        def is_complete() -> bool:
            outcomes.append(self.run_once())
            return outcomes[-1].completeness == "complete"

        wait_until(is_complete, "a complete cycle", WAIT_SECONDS)
        return outcomes[-1]

    def put_forward(self, seconds: float = ALL_DUE_SECONDS) -> None:
        """Make everything that is read at intervals due in the next cycle."""
        self.clock.ahead += seconds

    def run_full_cycle(self) -> Outcome:
        """Run a cycle in which everything is due."""
        self.put_forward()
        return self.run_once()

    def read(self, metric: str, **labels: str) -> Reading:
        """`metric` by its short name or as clients write it; raises what the product raises."""
        name = f"kafka_consumergroup_{metric}" if metric in SHORT_NAMES else metric
        return self.metrics.read(name, wants(**labels))

    def value(self, metric: str, **labels: str) -> int:
        """The sum of the items, as the HPA takes it."""
        return sum(item.milli // 1000 for item in self.read(metric, **labels).values)

    def lag(self, group: str, topic: str | None = None, **labels: str) -> int:
        return self.value("lag", group=group, **({} if topic is None else {"topic": topic}), **labels)

    def uncommitted(self, group: str) -> int:
        return self.value("uncommitted_partitions", group=group)

    def refusal(self, metric: str, **labels: str) -> AdapterError | None:
        """The error instead of an answer; None where there is an answer."""
        try:
            self.read(metric, **labels)
        except AdapterError as error:
            return error
        return None

    def is_unknown(self, **labels: str) -> bool:
        """Whether there is nothing of that kind (a 404), rather than a number or a refusal."""
        return isinstance(self.refusal("lag", **labels), NoMatch)

    def wait_for(self, condition: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
        """Run cycles until it holds, each of them a full one; a refusal counts as "not yet"."""

        def holds_after_a_cycle() -> bool:
            self.run_full_cycle()
            with contextlib.suppress(AdapterError):
                return condition()
            return False

        wait_until(holds_after_a_cycle, what, seconds)

    def wait_for_lag(self, expected: int, group: str, topic: str | None = None) -> None:
        self.wait_for(lambda: self.lag(group, topic) == expected, f"lag {expected} of group {group}")


def settings_for(cluster: Kafka, **parts: Any) -> Settings:  # noqa: ANN401 - as in the settings file
    """Settings of that cluster, named `main`; `parts` are further keys as in the settings file."""
    main = {"name": "main", "bootstrapServers": cluster.bootstrap_servers.split(",")}
    collection = {"interval": "1s", "maxAge": "60s", **parts.get("collection", {})}
    return parse({"clusters": [main], **parts, "collection": collection}, SERVED)


@contextlib.contextmanager
def in_process(
    cluster: Kafka,
    *,
    call_seconds: float = 30.0,
    exchange: Exchange | None = None,
    **parts: Any,  # noqa: ANN401 - as above
) -> Iterator[InProcess]:
    """Not yet connected: the first cycle does that. Afterwards nothing of it is left, its thread included.

    `call_seconds` is the deadline of each call. The product's is 3 s, which brokers on a busy machine may exceed.
    """
    settings = settings_for(cluster, **parts)
    requests: list[str] = []
    clock = CycleClock()
    (main,) = settings.clusters
    brokers = Brokers(main, requests.append, call_seconds)
    store = Store([main.name])
    memory = MemoryKeeper(lambda: {main.name: cycle.remembered()}, clock, Conditions(), exchange)
    cycle = Cycle(Watching(settings, main.name), brokers, store.feeds[main.name], clock, memory)
    try:
        yield InProcess(
            settings,
            brokers,
            store,
            cycle,
            Metrics(settings, store, CycleClock()),
            requests,
            clock,
            memory=memory,
        )
    finally:
        left = _client_threads() - brokers.is_connected
        brokers.close()
        wait_until(lambda: _client_threads() <= left, "the client's thread to end", WAIT_SECONDS)


def _client_threads() -> int:
    return sum(thread.name == "kafka-io-kafka-lag-adapter" for thread in threading.enumerate())
