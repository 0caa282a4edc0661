"""Everything that is written for HPAs: their annotations, the replicas of their targets, and Events about them."""

import logging
from collections.abc import Callable, Mapping

from adapter.conditions import AUTOSCALER_CHANGES, Conditions
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.autoscalers.annotations import ASLEEP_BY, ASLEEP_SINCE, MAX_REPLICAS_BEFORE, MAX_REPLICAS_BY
from apiservice.autoscalers.autoscaler import Autoscaler
from apiservice.cluster_api.connection import Json
from apiservice.cluster_api.objects import ClusterObjects
from apiservice.cluster_api.scale import SCALED_KINDS, Scale, read_scale, scale_path, write_replicas
from apiservice.events import Events, EventText, EventType, Regarded

logger = logging.getLogger(__name__)

MAX_REPLICAS_MANAGER = "kafka-lag-adapter-max-replicas"
"""The field manager that applies `maxReplicas`."""
_GONE, _FORBIDDEN = 404, 403
MISSING_RIGHT = "what annotations of HPAs ask for may not be written: the component `autoscalers` contains the right to"
NOT_WRITTEN = "what annotations of HPAs ask for cannot be written"


class HpaWrites:
    """One thread calls it, in rounds: `begin_round`, then any number of `tried`, then `end_round`."""

    def __init__(self, objects: ClusterObjects, events: Events, conditions: Conditions, owner: str = "") -> None:
        """`owner`: this adapter's Service, as `NAMESPACE/NAME`; without one, its marks are anybody's."""
        self.owner = owner
        self._objects = objects
        self._events = events
        self._conditions = conditions
        self._failure: ClusterUnreachable | None = None
        """The first one of this round."""
        self._has_written = False
        self._was_failing = False

    def begin_round(self) -> None:
        self._failure, self._has_written = None, False

    def end_round(self) -> None:
        """Reports whether writes succeed. A failure stays until a write succeeds."""
        if self._failure is not None:
            is_forbidden = self._failure.status == _FORBIDDEN
            reason, message = ("Forbidden", MISSING_RIGHT) if is_forbidden else ("NotWritten", NOT_WRITTEN)
            self._conditions.fails(AUTOSCALER_CHANGES, reason, message, details=str(self._failure))
        elif self._has_written or not self._was_failing:
            self._conditions.holds(AUTOSCALER_CHANGES)
        self._was_failing = self._failure is not None or (self._was_failing and not self._has_written)

    def forget(self) -> None:
        """Reports nothing any more."""
        self._was_failing = False
        self._conditions.forget(name=AUTOSCALER_CHANGES.name)

    def tried(self, hpa: Autoscaler, act: Callable[[], None]) -> bool:
        """Returns whether it succeeded. While the API server does not answer, nothing more is tried in this round."""
        if self._failure is not None and self._failure.status is None:
            return False
        try:
            act()
        except ClusterUnreachable as error:
            if error.status == _GONE:
                return True  # the HPA or its namespace has been deleted
            logger.debug("HPA %s/%s: %s", hpa.namespace, hpa.name, error)
            self._failure = self._failure or error
            return False
        return True

    # -- reads and writes, which raise ClusterUnreachable ----------------------------------------

    def scale_of(self, hpa: Autoscaler) -> Scale | None:
        """Returns None if the target does not exist, or is of a kind that cannot be scaled here."""
        if hpa.target.kind not in SCALED_KINDS:
            return None
        return read_scale(self._objects, scale_path(hpa.namespace, SCALED_KINDS[hpa.target.kind], hpa.target.name))

    def set_replicas(self, scale: Scale, replicas: int) -> bool:
        """Returns False, and writes nothing, if others have changed the number since it was read."""
        return self._noted(write_replicas(self._objects, scale, replicas))

    def annotate(self, hpa: Autoscaler, annotations: Mapping[str, str | None], *, is_current: bool = False) -> bool:
        """None removes an annotation. With `is_current`, returns False if the HPA has changed since it was read."""
        metadata: Json = {"annotations": dict(annotations)}
        if is_current:
            metadata["resourceVersion"] = hpa.version
        return self._noted(self._objects.merge(path_of(hpa), {"metadata": metadata}))

    def mark_asleep(self, hpa: Autoscaler, since: str) -> bool:
        """Returns False if the HPA has changed since it was read."""
        return self.annotate(hpa, {ASLEEP_SINCE: since, **self._signed(ASLEEP_BY)}, is_current=True)

    def mark_awake(self, hpa: Autoscaler) -> bool:
        return self.annotate(hpa, {ASLEEP_SINCE: None, ASLEEP_BY: None})

    def apply_maximum(self, hpa: Autoscaler, maximum: int, before: str | None) -> bool:
        """Applies `maxReplicas`, and its former value as an annotation; without one, the annotation goes.

        Returns False, and writes nothing, if the HPA has changed since it was read, or another manager has set another
        value."""
        metadata: Json = {"name": hpa.name, "namespace": hpa.namespace, "resourceVersion": hpa.version}
        if before is not None:
            metadata["annotations"] = {MAX_REPLICAS_BEFORE: before, **self._signed(MAX_REPLICAS_BY)}
        document = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": metadata,
            "spec": {"maxReplicas": maximum},
        }
        return self._noted(self._objects.apply(path_of(hpa), document, force=False, manager=MAX_REPLICAS_MANAGER))

    def _signed(self, by: str) -> dict[str, str]:
        return {by: self.owner} if self.owner else {}

    def _noted(self, is_written: bool) -> bool:  # noqa: FBT001 - passed through
        self._has_written |= is_written
        return is_written

    # -- Events ----------------------------------------------------------------------------------

    def tell(self, hpa: Autoscaler, action: str, reason: str, note: str) -> None:
        logger.info("HPA %s/%s: %s", hpa.namespace, hpa.name, note)
        self._events.post(regarded(hpa), EventText(EventType.NORMAL, reason, action, note))

    def warn(self, hpa: Autoscaler, action: str, reason: str, note: str) -> None:
        logger.warning("HPA %s/%s: %s", hpa.namespace, hpa.name, note)
        self._events.post(regarded(hpa), EventText(EventType.WARNING, reason, action, note))

    def report(self, hpa: Autoscaler, action: str, reason: str, note: str) -> None:
        """Warns once per change; without a note, the next one counts as a change."""
        text = EventText(EventType.WARNING, reason, action, note) if note else None
        if self._events.post_change(regarded(hpa), action, text):
            logger.warning("HPA %s/%s: %s", hpa.namespace, hpa.name, note)


def path_of(hpa: Autoscaler) -> str:
    return f"/apis/autoscaling/v2/namespaces/{hpa.namespace}/horizontalpodautoscalers/{hpa.name}"


def regarded(hpa: Autoscaler) -> Regarded:
    return Regarded("autoscaling/v2", "HorizontalPodAutoscaler", hpa.namespace, hpa.name, hpa.uid)
