"""The metrics by the settings in force, and their replacement by changed settings while reads go on.

Collectors of changed clusters start beside the running ones. When they have read their clusters, the settings take
effect in one step, so no read sees a part of them or a cluster that has not been read yet."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import count
from threading import Lock

from adapter.clock import Clock
from adapter.collector.cycle import Completeness
from adapter.collector.threads import Collector, collectors_of, start_all, stop_all
from adapter.conditions import SETTINGS
from adapter.history.sample import Keep
from adapter.lag.rules import AskedTopics
from adapter.memory.keeper import Exchange, MemoryKeeper
from adapter.memory.value import ClusterMemory, GroupMemory, merged
from adapter.metrics.capacities import Capacities
from adapter.metrics.fallbacks import LOOK_SECONDS, Fallbacks
from adapter.metrics.query import Metrics
from adapter.metrics.required import Demands, Expected, Patterns
from adapter.metrics.store import Store
from adapter.repeating import Repeated
from adapter.settings.models import Settings
from adapter.telemetry import Telemetry

PATIENCE_SECONDS = 60.0
"""A cluster that cannot be read completely delays changed settings no longer than this."""
STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Generation:
    """What belongs to one version of the settings."""

    settings: Settings
    store: Store
    collectors: Mapping[str, Collector]
    metrics: Metrics

    def ask(self, asked: Collection[AskedTopics], other: "_Generation | None" = None) -> None:
        """Has the collectors that the other generation lacks read what HPAs ask for whose namespaces may read it."""
        for collector in self.without(other):
            collector.ask_for(asked, self.metrics.may_name, self.settings)

    def without(self, other: "_Generation | None") -> list[Collector]:
        """Returns the collectors that the other generation does not have."""
        others = set() if other is None else set(other.collectors.values())
        return [collector for collector in self.collectors.values() if collector not in others]


class LiveMetrics:
    """Any thread may read. One thread at a time may call the other methods."""

    def __init__(
        self,
        settings: Settings,
        telemetry: Telemetry,
        clock: Clock,
        keep: Keep | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        self.memory = MemoryKeeper(lambda: self.remembered, clock, telemetry.conditions, exchange)
        self._asked: frozenset[AskedTopics] = frozenset()
        self._lock = Lock()
        """Held while what HPAs ask for is passed on, and while a generation begins or ends."""
        self._fallbacks = Fallbacks(clock.monotonic, telemetry.conditions)
        self._capacities = Capacities(clock)
        self._demands = Demands(self._capacities, clock.monotonic, telemetry.conditions)
        self._recalled: dict[str, ClusterMemory] = {}
        """Whose capacities were taken over."""
        self._looks = Repeated("values", self._look)
        self._telemetry = telemetry
        self._clock = clock
        self._keep = keep
        self._versions = count()
        self._prepared_at = 0.0
        self._next: _Generation | None = None
        self._current = self._generation(settings, None)
        self.report_settings()

    @property
    def current(self) -> Metrics:
        """The metrics by the settings in force."""
        return self._current.metrics

    def ask(self, asked: frozenset[AskedTopics]) -> None:
        """Replaces what the selectors of HPAs ask for; any thread may call it. Without a call, they ask for nothing."""
        with self._lock:
            self._asked = asked
            self._current.ask(asked)
            if self._next is not None:
                self._next.ask(asked, self._current)

    @property
    def remembered(self) -> dict[str, ClusterMemory]:
        """Returns what each cluster's collector knows of the groups that the settings or HPAs name."""
        collectors = self._current.collectors
        seen = {name: collector.remembered() for name, collector in collectors.items()}
        learned: dict[str, dict[str, GroupMemory]] = {name: {} for name in seen}
        for (cluster, group), windows in self._capacities.windows.items():
            # A group that is gone is no longer named, so it is forgotten like others.
            if cluster in seen and group in collectors[cluster].feed.view.codes and self.settings.has_objective(group):
                learned[cluster][group] = GroupMemory(windows=windows)
        return {name: merged(seen[name], learned[name]) for name in seen}

    @property
    def collectors(self) -> Mapping[str, Collector]:
        """Those by the settings in force, by cluster."""
        return self._current.collectors

    @property
    def settings(self) -> Settings:
        return self._current.settings

    @property
    def is_preparing(self) -> bool:
        return self._next is not None

    def start(self) -> None:
        start_all(self._current.collectors.values())
        self._looks.start()

    def stop(self, timeout_seconds: float) -> None:
        self._looks.stop(0.0)
        self.discard()
        stop_all(self._current.collectors.values(), timeout_seconds)

    def follow_replicas(self, expected: Expected) -> None:
        """Has the required numbers follow how many replicas HPAs have; without a call, that is not known."""
        self._demands.expected = expected

    def follow_patterns(self, patterns: Patterns) -> None:
        """Has forecasts follow from these patterns; without a call, there are none."""
        self._demands.patterns = patterns

    def _look(self) -> float:
        recalled, self._recalled = self._recalled, {name: self.memory.of(name) for name in self._current.collectors}
        for cluster, memory in self._recalled.items():
            if memory is not recalled.get(cluster):
                self._capacities.recall(cluster, {group: one.windows for group, one in memory.items()})
        self.current.look()
        return LOOK_SECONDS

    def prepare(self, settings: Settings) -> None:
        """Starts to read by these settings, instead of any others that have not taken effect yet."""
        self.discard()
        with self._lock:
            self._next = self._generation(settings, self._current)
            self._next.ask(self._asked, self._current)
        self._prepared_at = self._clock.monotonic()
        for collector in self._next.without(self._current):
            collector.start()

    def discard(self) -> None:
        """Forgets what `prepare` began."""
        if self._next is not None:
            stop_all(self._next.without(self._current), STOP_SECONDS)
            self._forget(self._next, self._current)
            with self._lock:
                self._next = None

    def waiting_for(self) -> dict[str, str]:
        """Returns the clusters that must be read before the prepared settings take effect, and what fails there."""
        if self._next is None:
            return {}
        is_late = self._clock.monotonic() - self._prepared_at > PATIENCE_SECONDS
        running = self._current.collectors
        return {
            name: collector.trouble
            for name, collector in self._next.collectors.items()
            if collector is not running.get(name) and not _may_replace(collector, running.get(name), is_late=is_late)
        }

    def take_over(self) -> None:
        """Makes the prepared settings take effect; callable once `waiting_for` is empty."""
        old, new = self._current, self._next
        if new is None:
            return
        retired = old.without(new)
        for collector in retired:
            collector.stop(0.0)
        for collector in new.without(old):
            collector.serve()
        with self._lock:
            self._current, self._next = new, None
            new.ask(self._asked)
        new.store.renew()
        stop_all(retired, STOP_SECONDS)
        self._forget(old, new)
        self.report_settings()

    def report_settings(self) -> None:
        """Reports that those in force are those of the file."""
        self._telemetry.conditions.holds(SETTINGS, details=self.settings.model_dump_json(by_alias=True))

    def _forget(self, gone: _Generation, kept: _Generation) -> None:
        for name in gone.collectors.keys() - kept.collectors.keys():
            self._telemetry.forget(name)

    def _generation(self, settings: Settings, before: _Generation | None) -> _Generation:
        store = Store((cluster.name for cluster in settings.clusters), self._versions)
        running = {} if before is None else before.collectors
        collectors = collectors_of(settings, store, self._telemetry, self._clock, self._keep, running, self.memory)
        return _Generation(
            settings,
            store,
            collectors,
            Metrics(settings, store, self._clock, fallbacks=self._fallbacks, demands=self._demands),
        )


def _may_replace(new: Collector, old: Collector | None, *, is_late: bool) -> bool:
    """A cluster that can be read is not replaced by one that cannot, such as one with a misspelt address."""
    if new.has_read_everything:
        return True
    has_failed = new.completeness is Completeness.FAILED
    is_worse = has_failed and old is not None and old.completeness is not Completeness.FAILED
    return is_late and new.completeness is not None and not is_worse
