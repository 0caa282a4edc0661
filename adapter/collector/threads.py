"""One thread per cluster, so that a hanging cluster delays neither the others nor the server."""

import logging
import os
import sys
from threading import Event, Thread

import numpy as np

from adapter.clock import Clock
from adapter.collector.cycle import Cycle, Outcome
from adapter.columns import NEVER
from adapter.errors import some_of
from adapter.history.sample import Keep
from adapter.kafka.client import Brokers
from adapter.lag.rules import Watching
from adapter.lag.snapshot import State
from adapter.lag.values import states_of
from adapter.metrics.store import ClusterView, Store
from adapter.settings.models import Cluster, Settings
from adapter.telemetry import Telemetry

logger = logging.getLogger(__name__)

NICENESS = 10
"""Of a collector's threads, so that on a busy machine a read does not wait for a cycle."""


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
    ) -> None:
        self._name = cluster.name
        self._interval = settings.collection.interval
        self._store = store
        self._telemetry = telemetry
        self._clock = clock
        self._brokers = Brokers(cluster, lambda request: telemetry.count_request(cluster.name, request))
        watching = Watching(settings, cluster.name)
        self._cycle = Cycle(cluster.name, self._interval, watching, self._brokers, store, clock, keep=keep)
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=f"collector-{cluster.name}", daemon=True)
        self._logged = ""
        telemetry.age.labels(cluster.name).set_function(self._age)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        if sys.platform == "linux":
            # Elsewhere the priority is the whole process's. The client library's thread starts here and inherits it.
            os.nice(NICENESS)
        due = self._clock.monotonic()
        while not self._stopping.is_set():
            self._round()
            # A long cycle shortens the pause; missed ticks are skipped.
            due = max(due + self._interval, self._clock.monotonic())
            self._stopping.wait(due - self._clock.monotonic())
        self._brokers.close()

    def _round(self) -> None:
        started = self._clock.monotonic()
        try:
            outcome = self._cycle.run_once()
        except Exception:
            logger.exception("unexpected error in the collection cycle of cluster %s", self._name)
            self._telemetry.count_cycle(self._name, "failed", self._clock.monotonic() - started)
            return
        self._telemetry.count_cycle(self._name, outcome.word, self._clock.monotonic() - started)
        for failure in outcome.failures:
            self._telemetry.count_error(self._name, failure.cause)
        for gap in outcome.gaps:
            self._telemetry.count_gap(self._name, gap)
        self._telemetry.show_rows(self._name, self._rows_by_state())
        self._log_change(outcome)

    def _rows_by_state(self) -> dict[str, int]:
        view = self._view()
        counts = np.bincount(states_of(view.snapshot, view.treatment), minlength=len(State)).tolist()
        return {state.name.lower(): counts[state] for state in State}

    def _log_change(self, outcome: Outcome) -> None:
        """Logs one line per change, not per cycle."""
        troubles = sorted({failure.text for failure in outcome.failures})
        text = f"{outcome.word}: {some_of(troubles, most=10)}" if troubles else outcome.word
        if text != self._logged:
            self._logged = text
            logger.log(
                logging.WARNING if troubles else logging.INFO,
                "cluster %s: %d of %d partitions of groups read, %s",
                self._name, outcome.read, outcome.rows, text,
            )  # fmt: skip

    def _age(self) -> float:
        received = self._view().snapshot.received
        known = received[received > NEVER]
        return self._clock.monotonic() - float(known.min()) if len(known) else float("nan")

    def _view(self) -> ClusterView:
        return next(view for view in self._store.views if view.cluster == self._name)


class Collectors:
    """The loops of all clusters; `keep` receives each cycle's sample in the cluster's thread."""

    def __init__(
        self, settings: Settings, store: Store, telemetry: Telemetry, clock: Clock, keep: Keep | None = None
    ) -> None:
        self._collectors = [
            Collector(settings, cluster, store, telemetry, clock, keep) for cluster in settings.clusters
        ]

    def start(self) -> None:
        for collector in self._collectors:
            collector.start()

    def stop(self, timeout_seconds: float) -> None:
        """Ends all loops; one that hangs in a call ends with the process."""
        for collector in self._collectors:
            collector.stop()
        for collector in self._collectors:
            collector.join(timeout_seconds / len(self._collectors))
