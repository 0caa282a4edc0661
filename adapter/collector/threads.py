"""One thread per cluster, so that a hanging cluster delays neither the others nor the server."""

import logging
from collections.abc import Collection, Iterable, Mapping
from threading import Event, Thread
from types import MappingProxyType

import numpy as np

from adapter.clock import Clock
from adapter.collector.cycle import Cycle, Outcome
from adapter.columns import NEVER
from adapter.errors import some_of
from adapter.history.sample import Keep, Sample
from adapter.kafka.client import Brokers
from adapter.lag.rules import Watching
from adapter.lag.snapshot import State
from adapter.lag.values import states_of
from adapter.memory.keeper import MemoryKeeper
from adapter.memory.value import ClusterMemory
from adapter.metrics.store import Store
from adapter.repeating import be_nice
from adapter.settings.models import Cluster, Settings
from adapter.telemetry import Telemetry

logger = logging.getLogger(__name__)

LEAST_SECONDS = 1.0
"""Pause before a cycle that is run early because an HPA asks for something new."""

NO_COLLECTORS: Mapping[str, "Collector"] = MappingProxyType({})


class Collector:
    """One cluster's loop. A failed cycle is logged and counted, and the loop continues."""

    def __init__(
        self,
        settings: Settings,
        cluster: Cluster,
        store: Store,
        telemetry: Telemetry,
        clock: Clock,
        keep: Keep | None = None,
        memory: MemoryKeeper | None = None,
    ) -> None:
        self.basis = basis_of(settings, cluster)
        self.feed = store.feeds[cluster.name]
        self.outcome = ""
        """Of the latest cycle; empty before the first one has ended."""
        self.name = cluster.name
        self._interval = settings.collection.interval
        self._telemetry = telemetry
        self._clock = clock
        self._brokers = Brokers(cluster, lambda request: telemetry.count_request(cluster.name, request))
        self._keep = keep
        self._is_serving = False
        keep = None if keep is None else self._keep_if_serving
        watching = Watching(settings, cluster.name)
        self._cycle = Cycle(
            cluster.name, self._interval, watching, self._brokers, self.feed, clock,
            keep=keep, memory=memory,
        )  # fmt: skip
        self._stopping = Event()
        self._woken = Event()
        """The next cycle is due, or the thread is to end."""
        self._thread = Thread(target=self._run, name=f"collector-{cluster.name}", daemon=True)
        self._logged = ""
        self.credentials_problem = ""
        """Why the files with credentials are not used as they are now; empty: they are."""

    def start(self) -> None:
        self._thread.start()

    def serve(self) -> None:
        """Its values are served from now on: they are kept in the history and shown in the adapter's own metrics."""
        self._is_serving = True
        self._telemetry.age.labels(self.name).set_function(self._age)

    def succeed(self, former: "Collector") -> None:
        """Call before `start`."""
        if former.basis[0] == self.basis[0]:
            self._cycle.recall(former.remembered(everything=True))

    def remembered(self, *, everything: bool = False) -> ClusterMemory:
        return self._cycle.remembered(everything=everything)

    def ask(self, asked: Mapping[str, frozenset[str]]) -> None:
        """Replaces what HPAs ask for, group -> topics; what has no row yet is read at once."""
        if asked != self._cycle.asked:
            self._cycle.asked = asked
            pairs = self.feed.view.layout.pairs
            if any((group, topic) not in pairs for group, topics in asked.items() for topic in topics):
                self._woken.set()

    @property
    def has_begun(self) -> bool:
        """Whether a cycle has read every known group, or found that it cannot read any."""
        return self.outcome == "failed" or (self.outcome == "complete" and not self.feed.view.has_unread)

    @property
    def has_read_everything(self) -> bool:
        view = self.feed.view
        return self.outcome == "complete" and not view.has_unread and not view.possible_groups.leaves_doubt

    def stop(self) -> None:
        self._is_serving = False
        self._stopping.set()
        self._woken.set()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        # The client library's thread starts here and inherits the priority.
        be_nice()
        due = self._clock.monotonic()
        while not self._stopping.is_set():
            self._round()
            # A long cycle shortens the pause; missed ticks are skipped.
            due = max(due + self._interval, self._clock.monotonic())
            self._stopping.wait(min(LEAST_SECONDS, due - self._clock.monotonic()))
            if self._woken.wait(due - self._clock.monotonic()):
                due = self._clock.monotonic()
            self._woken.clear()
        self._brokers.close()

    def _round(self) -> None:
        started = self._clock.monotonic()
        try:
            self._note(self._cycle.run_once(), started)
        except Exception:
            logger.exception("unexpected error in the collection cycle of cluster %s", self.name)
            self.outcome = "failed"
            if self._is_serving:
                self._telemetry.count_cycle(self.name, "failed", self._clock.monotonic() - started)

    def _note(self, outcome: Outcome, started: float) -> None:
        if self._is_serving:
            self._count(outcome, self._clock.monotonic() - started)
        self._log_change(outcome)
        self._show_credentials()
        self.outcome = outcome.word

    def _count(self, outcome: Outcome, seconds: float) -> None:
        self._telemetry.count_cycle(self.name, outcome.word, seconds)
        for failure in outcome.failures:
            self._telemetry.errors.labels(self.name, failure.cause).inc()
        for gap in outcome.gaps:
            self._telemetry.gap.labels(self.name).observe(gap)
        view = self.feed.view
        counts = np.bincount(states_of(view.snapshot, view.treatment), minlength=len(State)).tolist()
        for state in State:
            self._telemetry.rows.labels(self.name, state.name.lower()).set(counts[state])

    def _keep_if_serving(self, sample: Sample) -> None:
        if self._keep is not None and self._is_serving:
            self._keep(sample)

    def _log_change(self, outcome: Outcome) -> None:
        """Logs one line per change, not per cycle."""
        troubles = sorted({failure.text for failure in outcome.failures})
        text = f"{outcome.word}: {some_of(troubles, most=10)}" if troubles else outcome.word
        if text != self._logged:
            self._logged = text
            logger.log(
                logging.WARNING if troubles else logging.INFO,
                "cluster %s: %d of %d partitions of groups read, %s",
                self.name, outcome.read, outcome.rows, text,
            )  # fmt: skip

    def _show_credentials(self) -> None:
        known, self.credentials_problem = self.credentials_problem, self._brokers.credentials_problem
        if self._is_serving:
            self._telemetry.credentials.labels(self.name).set(not self.credentials_problem)
        if self.credentials_problem and self.credentials_problem != known:
            logger.warning("cluster %s: credentials are not used: %s", self.name, self.credentials_problem)
        elif known and not self.credentials_problem:
            logger.info("cluster %s: changed credentials have taken effect", self.name)

    def _age(self) -> float:
        received = self.feed.view.snapshot.received
        known = received[received > NEVER]
        return self._clock.monotonic() - float(known.min()) if len(known) else float("nan")


def basis_of(settings: Settings, cluster: Cluster) -> tuple[object, ...]:
    """Returns the part of the settings that decides what is read from this cluster, and how."""
    given = frozenset((metric.cluster, metric.group, metric.topics) for metric in settings.metrics)
    return cluster, settings.collection, settings.rules, given, len(settings.clusters) == 1


def collectors_of(
    settings: Settings,
    store: Store,
    telemetry: Telemetry,
    clock: Clock,
    keep: Keep | None = None,
    running: Mapping[str, Collector] = NO_COLLECTORS,
    memory: MemoryKeeper | None = None,
) -> dict[str, Collector]:
    """Returns the loops of all clusters; those of `running` that need no change are taken over.

    `keep` receives each cycle's sample in the cluster's thread."""
    collectors: dict[str, Collector] = {}
    for cluster in settings.clusters:
        collector = former = running.get(cluster.name)
        if collector is None or collector.basis != basis_of(settings, cluster):
            collector = Collector(settings, cluster, store, telemetry, clock, keep, memory)
            if former is not None:
                collector.succeed(former)
        collectors[cluster.name] = collector
        store.feeds[cluster.name] = collector.feed
    return collectors


def start_all(collectors: Iterable[Collector]) -> None:
    for collector in collectors:
        collector.serve()
        collector.start()


def stop_all(collectors: Collection[Collector], timeout_seconds: float) -> None:
    """Ends these loops; one that hangs in a call ends with the process."""
    for collector in collectors:
        collector.stop()
    for collector in collectors:
        collector.join(timeout_seconds / len(collectors))
