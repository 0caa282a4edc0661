"""One thread per cluster, so that a hanging cluster delays neither the others nor the server."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import numpy as np

from adapter.clock import Clock
from adapter.cluster.coordinators import Placement
from adapter.collector.cycle import Completeness, Cycle, Outcome
from adapter.columns import NEVER
from adapter.conditions import CREDENTIALS, TOPIC_IDS, VALUES, ConditionStatus
from adapter.errors import some_of
from adapter.history.sample import Keep
from adapter.kafka.answers import Failure, FailureCause
from adapter.kafka.client import Brokers
from adapter.lag.earlier import Wanted
from adapter.lag.ring import Ring
from adapter.lag.rules import (
    Asked,
    AskedTopics,
    MayName,
    Watching,
    groups_of_members,
    groups_of_partitions,
    topics_for,
)
from adapter.lag.snapshot import State
from adapter.lag.values import states_of
from adapter.memory.keeper import MemoryKeeper
from adapter.memory.value import ClusterMemory
from adapter.metrics.store import Store
from adapter.repeating import Repeating
from adapter.settings.models import Cluster, Isolation, Settings
from adapter.telemetry import Telemetry

LEAST_SECONDS = 1.0
"""Pause before a cycle that is run early because an HPA asks for something new."""
FIRST_SECONDS = 20.0
"""A cluster that can be read only in part delays the readiness of a new process by at most this, and a cycle."""

PAST_SECONDS = 40.0
"""After that, what is not read yet is taken to stay so, and what moved before the start is read back for the others."""

WITHOUT_TOPIC_IDS = (
    "the brokers report no topic ids (Metadata before version 10, or Kafka before 2.8): "
    "a topic that is created again is recognised by its offsets alone"
)


class Collector(Repeating):
    """One cluster's loop. An unexpected error in a cycle is counted, and the loop continues."""

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
        super().__init__(f"collector-{cluster.name}", is_nice=True)
        self.basis = basis_of(settings, cluster)
        self.feed = store.feeds[cluster.name]
        self.completeness: Completeness | None = None
        """Of the latest cycle; None before the first one has ended."""
        self.trouble = ""
        """What failed in the latest cycle; if no request did, why partitions could not be read."""
        self.name = cluster.name
        self._interval = settings.collection.interval
        self._telemetry = telemetry
        self._clock = clock
        self._brokers = Brokers(cluster, self._count_request)
        self._keep = keep
        self._is_serving = self._lacked_topic_ids = False
        self._watching = Watching(settings, cluster.name)
        self._cycle = Cycle(self._watching, self._brokers, self.feed, clock, memory)
        self._due = self._patient_until = clock.monotonic()
        self._has_begun = False
        """Whether a cycle has read every known group, or waiting longer is useless."""

    def start(self) -> None:
        self._due = self._clock.monotonic()
        self._patient_until = self._due + FIRST_SECONDS
        super().start()

    def expect(self) -> None:
        self._telemetry.conditions.expect(VALUES, cluster=self.name)

    def serve(self) -> None:
        """Its values are served from now on: they are kept in the history and shown in the adapter's own metrics."""
        self._is_serving = True
        self._telemetry.age.labels(self.name).set_function(self._age)
        self._telemetry.last_success.labels(self.name)

    def succeed(self, former: "Collector") -> None:
        """Call before `start`."""
        if former.basis[0] == self.basis[0]:
            self._cycle.recall(former.remembered(everything=True))
            self._cycle.follow(former._cycle)

    @property
    def rows_to_recall(self) -> Wanted | None:
        """Returns the rows whose past the history may have; None until a cycle has read everything, within a minute."""
        layout, is_late = self.feed.view.layout, self._clock.monotonic() >= self._patient_until + PAST_SECONDS
        if not len(layout) or not (is_late or self.has_read_everything):
            return None
        isolation_of = self._watching.isolation_of
        is_committed_only = [isolation_of(group) is Isolation.READ_COMMITTED for group in layout.groups]
        return Wanted(self.name, layout, np.array(is_committed_only, dtype=bool)[layout.group])

    def precede(self, past: Ring) -> None:
        """Takes over what moved before the first cycle."""
        self._cycle.precede(past)

    def remembered(self, *, everything: bool = False) -> ClusterMemory:
        return self._cycle.remembered(everything=everything)

    def ask_for(self, asked: Collection[AskedTopics], may_name: MayName, settings: Settings) -> None:
        """Replaces what HPAs ask for. Only groups that an HPA's namespace may name count."""
        follows_partitions = settings.autoscalers.max_replicas
        of_members = groups_of_members(self.name, asked, may_name)
        of_partitions = groups_of_partitions(self.name, asked if follows_partitions else (), may_name)
        self.ask(topics_for(self.name, asked, may_name), of_members, of_partitions)

    def ask(
        self, asked: Asked, of_members: frozenset[str] = frozenset(), of_partitions: frozenset[str] = frozenset()
    ) -> None:
        """Replaces what HPAs ask for, group -> topics, and the groups for whose members they ask or whose number of
        partitions they follow. What is not known yet is read at once."""
        self._cycle.partitions_asked = of_partitions
        if of_members != self._cycle.members_asked:
            self._cycle.members_asked = of_members
            if not of_members <= self.feed.view.assignments.keys():
                self.wake()
        if asked != self._cycle.asked:
            self._cycle.asked = asked
            pairs = self.feed.view.layout.pairs
            if any((group, topic) not in pairs for group, topics in asked.items() for topic in topics):
                self.wake()

    @property
    def placement(self) -> Placement:
        return self._cycle.inventory.placement

    @property
    def has_read_everything(self) -> bool:
        return self._has_read_all_groups and not self.feed.view.possible_groups.leaves_doubt

    @property
    def _has_read_all_groups(self) -> bool:
        return self.completeness is Completeness.COMPLETE and not self.feed.view.has_unread

    def stop(self, timeout_seconds: float) -> None:
        self._is_serving = False
        super().stop(timeout_seconds)

    def turn(self) -> float:
        started = self._clock.monotonic()
        self._due = min(self._due, started)  # earlier if it was woken
        try:
            self._note(self._cycle.run_once(), started)
        except Exception as error:
            failure = Failure(FailureCause.OTHER, f"unexpected {type(error).__name__}")
            self._note(Outcome(0, 0, (failure,)), started)
            raise
        # A long cycle shortens the pause; missed ticks are skipped.
        self._due = max(self._due + self._interval, self._clock.monotonic())
        if not self._has_begun:
            self._due = min(self._due, max(self._patient_until, self._clock.monotonic()))
        self._stopping.wait(min(LEAST_SECONDS, self._due - self._clock.monotonic()))
        return max(self._due - self._clock.monotonic(), 0.0)

    def end(self) -> None:
        self._brokers.close()

    def _count_request(self, request: str) -> None:
        # A loop that still hangs in a call would bring back the series of a cluster that is no longer read.
        if not self._stopping.is_set():
            self._telemetry.count_request(self.name, request)

    def _note(self, outcome: Outcome, started: float) -> None:
        texts = {failure.text for failure in outcome.failures} or self.feed.view.snapshot.why_unread
        self.trouble = some_of(sorted(texts), most=10)
        self.completeness = outcome.completeness
        is_late, has_failed = self._clock.monotonic() >= self._patient_until, self.completeness is Completeness.FAILED
        self._has_begun = self._has_begun or is_late or has_failed or self._has_read_all_groups
        if self._is_serving:
            if self._keep is not None and outcome.sample is not None:
                self._keep(outcome.sample)
            self._count(outcome, self._clock.monotonic() - started)
            self._report(outcome.completeness)

    def _count(self, outcome: Outcome, seconds: float) -> None:
        self._telemetry.count_cycle(self.name, outcome.completeness, seconds)
        if outcome.completeness is Completeness.COMPLETE:
            self._telemetry.last_success.labels(self.name).set(self._clock.time())
        for failure in outcome.failures:
            self._telemetry.errors.labels(self.name, failure.cause).inc()
        for gap in outcome.gaps:
            self._telemetry.gap.labels(self.name).observe(gap)
        view = self.feed.view
        counts = np.bincount(states_of(view.snapshot, view.treatment), minlength=len(State)).tolist()
        for state in State:
            self._telemetry.rows.labels(self.name, state.name.lower()).set(counts[state])

    def _report(self, completeness: Completeness) -> None:
        """Sets the conditions. Until every group has been read once, it is unknown whether the values are complete."""
        conditions = self._telemetry.conditions
        if completeness is not Completeness.COMPLETE:
            has_failed = completeness is Completeness.FAILED
            message = "nothing could be read" if has_failed else "a part could not be read"
            status = ConditionStatus.FALSE if self._has_begun else ConditionStatus.UNKNOWN
            reason, name = completeness.capitalize(), self.name
            conditions.fails(VALUES, reason, message, details=self.trouble, cluster=name, status=status)
        elif self._has_begun:
            conditions.holds(VALUES, cluster=self.name)
        if problem := self._brokers.credentials_problem:
            message = "the newest credentials are not used; those that worked before stay in use"
            conditions.fails(CREDENTIALS, "NotUsed", message, details=problem, cluster=self.name)
        else:
            conditions.holds(CREDENTIALS, cluster=self.name)
        self._report_topic_ids()

    def _report_topic_ids(self) -> None:
        conditions = self._telemetry.conditions
        if self._cycle.inventory.lacks_topic_ids:
            self._lacked_topic_ids = True
            conditions.fails(TOPIC_IDS, "NotReported", WITHOUT_TOPIC_IDS, cluster=self.name)
        elif self._lacked_topic_ids:
            conditions.holds(TOPIC_IDS, cluster=self.name)

    def _age(self) -> float:
        received = self.feed.view.snapshot.received
        times = received[received > NEVER]
        return self._clock.monotonic() - float(times.min()) if len(times) else float("nan")


def basis_of(settings: Settings, cluster: Cluster) -> tuple[object, ...]:
    """Returns the part of the settings that decides what is read from this cluster, and how."""
    metrics = settings.metrics
    given = frozenset((each.cluster, each.group, each.topics, each.judges_movement) for each in metrics)
    rules = tuple((rule.without_replicas, rule.judges_movement) for rule in settings.rules)
    return cluster, settings.collection, rules, given, len(settings.clusters) == 1


def collectors_of(
    settings: Settings,
    store: Store,
    telemetry: Telemetry,
    clock: Clock,
    keep: Keep | None = None,
    running: Mapping[str, Collector] = MappingProxyType({}),
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
    """Starts the first loops of a process, which is not ready until it is known whether they can read."""
    for collector in collectors:
        collector.expect()
        collector.serve()
        collector.start()


def stop_all(collectors: Collection[Collector], timeout_seconds: float) -> None:
    """Ends these loops; one that hangs in a call ends with the process."""
    for collector in collectors:
        collector.stop(0.0)
    for collector in collectors:
        collector.stop(timeout_seconds / len(collectors))
