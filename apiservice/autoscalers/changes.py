"""A thread that does what the annotations of HPAs ask for, each time there are new values.

Only one replica of the adapter writes."""

from collections.abc import Callable, Mapping

from adapter import clock
from adapter.metrics.query import Metrics
from adapter.repeating import Repeating
from adapter.settings.models import AutoscalerChanges
from apiservice.autoscalers.activator import Activator
from apiservice.autoscalers.annotations import (
    ASLEEP_BY,
    ASLEEP_SINCE,
    MAX_REPLICAS_BEFORE,
    MAX_REPLICAS_BY,
    is_of_others,
)
from apiservice.autoscalers.capper import Capper
from apiservice.autoscalers.followed import Autoscalers
from apiservice.autoscalers.hpa_writes import HpaWrites

GLANCE_SECONDS = 0.25
"""How often it is seen whether there are new values, which is what a target at zero waits for."""
IDLE_SECONDS = 2.0
"""The same while nothing is allowed and nothing is left to undo."""
LOOK_SECONDS = 10.0
"""Without new values, HPAs are looked at this often: annotations change as well."""

MARKS = {ASLEEP_SINCE: ASLEEP_BY, MAX_REPLICAS_BEFORE: MAX_REPLICAS_BY}
"""Annotations that say what must be undone -> the one that names the adapter that has to."""


class Changes(Repeating):
    def __init__(
        self,
        autoscalers: Autoscalers,
        metrics: Callable[[], Metrics],
        allowed: Callable[[], AutoscalerChanges],
        is_leader: Callable[[], bool],
        writes: HpaWrites,
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        super().__init__("autoscaler-changes")
        self._autoscalers = autoscalers
        self._metrics = metrics
        self._allowed = allowed
        self._is_leader = is_leader
        self._writes = writes
        self._monotonic = monotonic
        self._activator, self._capper = Activator(writes, monotonic), Capper(writes, monotonic)
        self._version, self._look_at = -1, float("-inf")
        self._has_marks = False

    @property
    def is_needed(self) -> bool:
        """Whether something is allowed, or an HPA has an annotation that says what must be undone."""
        allowed = self._allowed()
        return allowed.scale_to_zero or allowed.max_replicas or self._has_marks

    def turn(self) -> float:
        if not self.is_needed:
            self._writes.forget()
        version, now = self._metrics().version, self._monotonic()
        if version != self._version or now >= self._look_at:
            self._version, self._look_at = version, now + LOOK_SECONDS
            self.look()
        return GLANCE_SECONDS if self.is_needed else IDLE_SECONDS

    def look(self) -> None:
        """Looks at every HPA once and does what is due."""
        hpas = [hpa for hpa in self._autoscalers.current if hpa.annotations]
        self._has_marks = any(self._has_mark(hpa.annotations) for hpa in hpas)
        if not self.is_needed:
            return
        is_leader, allowed = self._is_leader(), self._allowed()
        self._writes.begin_round()
        rivals, metrics = self._autoscalers.rivals(), self._metrics()
        self._activator.look(hpas, rivals, metrics, is_allowed=allowed.scale_to_zero, is_leader=is_leader)
        self._capper.look(hpas, metrics, is_allowed=allowed.max_replicas, is_leader=is_leader)
        self._writes.end_round()

    def _has_mark(self, annotations: Mapping[str, str]) -> bool:
        owner = self._writes.owner
        return any(mark in annotations and not is_of_others(annotations, by, owner) for mark, by in MARKS.items())
