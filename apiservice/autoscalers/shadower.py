"""A thread that follows, beside HPAs with the annotation for it, what the required number of replicas would have asked
for, and shows it as metrics of the adapter. Nothing is written."""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from adapter import clock
from adapter.errors import MetricUnknown
from adapter.metrics.demand import BOUND, EXACT, LOWER
from adapter.metrics.partitions import combined
from adapter.metrics.problems import Refused
from adapter.metrics.query import Metrics
from adapter.metrics.requirement import Operator, Requirement
from adapter.metrics.selection import named
from adapter.repeating import Repeating
from apiservice.autoscalers.annotations import shadow_wish_of
from apiservice.autoscalers.autoscaler import Autoscaler
from apiservice.autoscalers.shadow import Look, Shadow, looked

LOOK_SECONDS = 15.0
"""As often as an HPA reads."""
MOST_SHADOWS = 500
_LABELS = ("namespace", "horizontalpodautoscaler", "source")
_Place = tuple[str, str]


class Shadower(Repeating):
    """It is a collector of prometheus_client, too."""

    def __init__(
        self,
        hpas: Callable[[], Iterable[Autoscaler]],
        metrics: Callable[[], Metrics],
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        super().__init__("shadows")
        self._hpas, self._metrics, self._monotonic = hpas, metrics, monotonic
        self._shadows: dict[_Place, Shadow] = {}
        """Replaced as a whole."""
        self._warn_once = lru_cache(MOST_SHADOWS)(logging.getLogger(__name__).warning)

    def turn(self) -> float:
        shadows: dict[_Place, Shadow] = {}
        for hpa in self._hpas():
            try:
                group = shadow_wish_of(hpa.annotations, groups_selected(hpa))
            except ValueError as error:
                self._warn_once("HPA %s/%s is not shadowed: %s", *hpa.place, str(error))
                continue
            if group is not None and len(shadows) < MOST_SHADOWS:
                shadows[hpa.place] = looked(self._shadows.get(hpa.place), self._look(hpa, group))
        self._shadows = shadows
        return LOOK_SECONDS

    def _look(self, hpa: Autoscaler, group: str) -> Look:
        required = self._read(hpa, "required_replicas", group)
        bounds = Requirement(BOUND, Operator.IN, frozenset({EXACT, LOWER}))
        return Look(
            at=self._monotonic(),
            replicas=hpa.current_replicas,
            required=None if required is None else round(required),
            arriving=self._read(hpa, "production_rate", group),
            capacity=self._capacity(hpa, group),
            wait=self._read(hpa, "lag_seconds", group, bounds),
            lag=self._read(hpa, "lag", group),
        )

    def _capacity(self, hpa: Autoscaler, group: str) -> float | None:
        """Returns what all members in one replica can read; None: it is not known."""
        selector = (Requirement("group", Operator.EQUALS, (group,)),)
        try:
            read, _ = self._metrics().partitions("kafka_consumergroup_required_replicas", selector, hpa.namespace)
        except (Refused, MetricUnknown):
            return None
        of_member = self._read(hpa, "capacity", group)
        return None if of_member is None or not read else of_member * combined(read).consumers_per_replica

    def _read(self, hpa: Autoscaler, value: str, group: str, *more: Requirement) -> float | None:
        """Returns the sum of what the HPA could read; None: nothing."""
        selector = (Requirement("group", Operator.EQUALS, (group,)), *more)
        try:
            reading = self._metrics().read(f"kafka_consumergroup_{value}", selector, hpa.namespace)
        except (Refused, MetricUnknown):
            return None
        return sum(item.milli for item in reading.values) / 1000

    def collect(self) -> Iterator[Metric]:
        shadows = self._shadows
        replicas = _gauge("replicas", "Replicas: required ones as an HPA would have them now, and actual ones.")
        waits = _gauge(
            "wait_seconds", "Age of the oldest waiting message: expected with required replicas, and actual."
        )
        changes = _counter("changes", "Changes of the replicas since the adapter began to follow them.")
        seconds = _counter("replica_seconds", "Replicas times seconds since the adapter began to follow them.")
        for place, shadow in shadows.items():
            for source, course in (("required", shadow.would_be), ("actual", shadow.actual)):
                labels = (*place, source)
                replicas.add_metric(labels, course.replicas)
                changes.add_metric(labels, course.changes)
                seconds.add_metric(labels, course.replica_seconds)
            for source, wait in (("required", shadow.expected_wait), ("actual", shadow.observed_wait)):
                if wait is not None:
                    waits.add_metric((*place, source), wait)
        if shadows:
            yield from (replicas, waits, changes, seconds)


def groups_selected(hpa: Autoscaler) -> set[str]:
    """Returns the groups that its metrics name."""
    return {group for metric in hpa.metrics for group in named(metric.selector, "group") or ()}


def _gauge(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"kafka_lag_adapter_shadow_{name}", text, labels=_LABELS)


def _counter(name: str, text: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"kafka_lag_adapter_shadow_{name}", text, labels=_LABELS)
