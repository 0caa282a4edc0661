"""Builds the threads that follow HPAs, change them, and post Events about them."""

from collections.abc import Callable
from typing import NamedTuple

from adapter.reload.live_metrics import LiveMetrics
from adapter.telemetry import Telemetry
from apiservice.autoscalers.changes import Changes
from apiservice.autoscalers.followed import Autoscalers
from apiservice.autoscalers.hpa_writes import HpaWrites
from apiservice.autoscalers.limits import LimitedHpas
from apiservice.autoscalers.shadower import Shadower
from apiservice.cluster_api.objects import ClusterObjects
from apiservice.events import Events
from apiservice.hpa_events.poster import HpaEvents
from apiservice.pods.values import PodsOf
from apiservice.registration.api_service import Service


class HpaWriters(NamedTuple):
    changes: Changes
    states: HpaEvents
    events: Events

    @property
    def are_needed(self) -> bool:
        """Whether there is something that only one replica may do."""
        return self.changes.is_needed or self.states.is_needed


def autoscalers_for(metrics: LiveMetrics) -> Autoscalers:
    autoscalers = Autoscalers(
        lambda: metrics.current.names,
        metrics.ask,
        lambda: metrics.current.named_groups,
        lambda: metrics.settings.custom_metrics.register_services,
        lambda group, namespace, metric: metrics.current.may_read(group, namespace, metric),  # noqa: PLW0108 - changes with the settings
    )
    metrics.follow_replicas(autoscalers.replicas_of)
    return autoscalers


def shadows_of(autoscalers: Autoscalers, metrics: LiveMetrics, telemetry: Telemetry) -> Shadower:
    shadows = Shadower(lambda: autoscalers.current, lambda: metrics.current)
    telemetry.registry.register(shadows)
    telemetry.registry.register(LimitedHpas(lambda: autoscalers.current))
    return shadows


def writers_for(
    autoscalers: Autoscalers,
    metrics: LiveMetrics,
    pods_in: PodsOf,
    is_leader: Callable[[], bool],
    objects: ClusterObjects,
    identity: str,
    service: Service | None,
    telemetry: Telemetry,
) -> HpaWriters:
    """`identity` is that of this process, `service` that of all replicas of this adapter."""
    conditions = telemetry.conditions
    events = Events(objects.create, identity, count=telemetry.count_event, merged=objects.merged, conditions=conditions)
    writes = HpaWrites(objects, events, conditions, "" if service is None else service.place)

    def allowed() -> bool:
        return metrics.settings.autoscalers.events

    return HpaWriters(
        Changes(autoscalers, lambda: metrics.current, lambda: metrics.settings.autoscalers, is_leader, writes),
        HpaEvents(lambda: autoscalers.current, lambda: metrics.current, pods_in, allowed, is_leader, events),
        events,
    )
