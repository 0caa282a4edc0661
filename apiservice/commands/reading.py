"""Clusters that are read for a while in this process, without serving: for commands that show what they find."""

import contextlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from threading import Event

from adapter import clock
from adapter.collector.cycle import Completeness
from adapter.collector.threads import Collector, collectors_of, stop_all
from adapter.errors import AdapterError
from adapter.lag.rules import AskedTopics
from adapter.metrics.query import Metrics
from adapter.metrics.store import Store
from adapter.settings.models import Settings
from adapter.telemetry import Telemetry

PATIENCE_SECONDS = 15.0
"""A cluster that can be read only in part is shown after this time."""
FAILED_SECONDS = 6.0
"""Until then, a cycle that failed proves nothing: it may have asked the one broker that has just frozen."""
STOP_SECONDS = 5.0
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Reading:
    metrics: Metrics
    store: Store
    collectors: tuple[Collector, ...]

    @property
    def troubles(self) -> dict[str, str]:
        """Returns the clusters that cannot be read at all, each with the reason."""
        failed = (each for each in self.collectors if each.completeness is Completeness.FAILED)
        return {each.name: each.trouble for each in failed}

    def wait(self) -> None:
        """Waits until every cluster has been read. Raises AdapterError if none can be."""
        began, pause, waited = clock.monotonic(), Event(), 0.0
        while waited < PATIENCE_SECONDS and not all(_is_read(each, waited) for each in self.collectors):
            pause.wait(POLL_SECONDS)
            waited = clock.monotonic() - began
        if len(self.troubles) == len(self.collectors):
            lines = [f"cluster {name} cannot be read: {why}" for name, why in self.troubles.items()]
            raise AdapterError("\n".join(lines))


def hurried(settings: Settings, interval: float) -> Settings:
    """Returns the settings with cycles so far apart, in seconds, and with values that outlive some of them."""
    longest = max(settings.collection.max_age, 3 * interval)
    collection = settings.collection.model_copy(update={"interval": interval, "max_age": longest})
    return settings.model_copy(update={"collection": collection})


Ask = Callable[[Metrics], Collection[AskedTopics]]


@contextlib.contextmanager
def reading(settings: Settings, ask: Ask = lambda _: ()) -> Iterator[Reading]:
    """Reads the clusters of the settings at their interval until the block ends. `ask` returns what HPAs ask for."""
    store = Store(cluster.name for cluster in settings.clusters)
    collectors = tuple(collectors_of(settings, store, Telemetry(), clock).values())
    metrics = Metrics(settings, store, clock)
    asked = ask(metrics)
    for collector in collectors:
        collector.ask_for(asked, metrics.may_name, settings)
        collector.start()
    try:
        yield Reading(metrics, store, collectors)
    finally:
        stop_all(collectors, STOP_SECONDS)


def _is_read(collector: Collector, waited: float) -> bool:
    has_failed = collector.completeness is Completeness.FAILED and waited >= FAILED_SECONDS
    return collector.has_read_everything or has_failed
