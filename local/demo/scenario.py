"""What the demo shows, step by step: the real HPA scales a Deployment of slow consumers to zero and back.

one replica, no lag -> 0    messages arrive -> 3    all are read -> 0    a single late message -> 1 or more

Separate from `screen`, which handles the terminal. Each step ends when its condition is met, or raises RigError."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kubernetes.utils.quantity import parse_quantity

from apiservice.autoscalers.annotations import COOLDOWN, SCALE_TO_ZERO
from local.adapter import EXTERNAL_METRICS, items
from local.kafka.broker import Kafka
from local.kafka.tools import produce
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.processes import RigError, wait_until

METRIC = "kafka_consumergroup_lag"
PARTITIONS = 3
MOST_REPLICAS = 3
LAG_PER_REPLICA = 1000
MESSAGES_PER_SECOND = 100
COOLDOWN_OF_DEMO = "8s"
"""Short, for people who watch: 5m is the default."""
LOOK_SECONDS = 0.2
STEP_SECONDS = 180.0
DRAIN_SECONDS = 300.0
# What the HPA controller writes for an average over no replicas: the least int64, which kubectl shows as it is.
DIVIDED_BY_ZERO = "-9223372036854775808m"
REPOSITORY = Path(__file__).resolve().parents[2]


class StepFailed(RigError):
    """The replicas did not change as expected; the message says what was seen."""


@dataclass(frozen=True, slots=True)
class Names:
    """`group` is also the name of the Deployment and of the HPA."""

    namespace: str = "demo"
    group: str = "billing"
    topic: str = "orders"


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen at one moment; `replicas` counts pods, `ready` those whose process runs."""

    targets: str
    """As `kubectl get hpa` shows it."""
    replicas: int
    ready: int
    pods: int
    """Includes pods that are about to end, which no longer count as replicas."""
    lag: int | None
    """None if no number was served; `trouble` has the reason."""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """The parts on which the scenario runs. `show` receives every sight, including unchanged ones."""

    kafka: Kafka
    plane: ControlPlane
    names: Names
    show: Callable[[Sight], None]
    has_gate: bool = True
    """Whether the control plane has the feature gate HPAScaleToZero; without it, the adapter scales to zero."""

    @property
    def least_replicas(self) -> int:
        return 0 if self.has_gate else 1


def settings(kafka: Kafka, names: Names, *, has_gate: bool = True) -> dict[str, Any]:
    """Returns settings with a rule for this group, so that it has a value at zero replicas."""
    return {
        "clusters": [{"name": "main", "bootstrapServers": kafka.bootstrap_servers.split(",")}],
        "collection": {"interval": "2s", "maxAge": "20s"},
        "rules": [{"group": names.group, "topics": [names.topic], "offsetReset": "earliest"}],
        **({} if has_gate else {"autoscalers": {"scaleToZero": True}}),
    }


def fall_asleep(stage: Stage) -> None:
    """Applies the objects; the only pod starts, finds nothing to read, and ends.

    The HPA comes last: on a busy machine, it would end the pod before anybody could see it."""
    *others, hpa = manifests(stage.kafka, stage.names, has_gate=stage.has_gate)
    stage.plane.apply(others)
    wait_until(lambda: _has_pod(stage), "a first pod", STEP_SECONDS)
    stage.plane.apply([hpa])
    unshown = replace(stage, show=lambda _: None)
    stage.show(
        _until(unshown, lambda sight: sight.ready == 1 and sight.lag == 0, "a first pod without lag", STEP_SECONDS)
    )
    _until(stage, _is_asleep, "0 replicas while there is no lag", STEP_SECONDS)


def scale_out(stage: Stage, messages: int) -> float:
    """Writes messages until all replicas are ready; returns the seconds from the first one to the first ready pod."""
    seconds = wake(stage, messages)
    _until(stage, lambda sight: sight.ready == MOST_REPLICAS, f"{MOST_REPLICAS} ready replicas", STEP_SECONDS)
    return seconds


def drain(stage: Stage) -> None:
    _until(stage, lambda sight: sight.lag == 0, "all messages to be read", DRAIN_SECONDS)
    _until(stage, _is_asleep, "0 replicas after the last message", STEP_SECONDS)


def wake(stage: Stage, messages: int = 1) -> float:
    """Writes messages; returns the seconds from the first one to the first ready pod."""
    began = time.monotonic()
    produce(stage.kafka, stage.names.topic, messages)
    _until(stage, lambda sight: sight.ready > 0, f"a ready pod for {messages} messages", STEP_SECONDS)
    return time.monotonic() - began


def _has_pod(stage: Stage) -> bool:
    return bool(stage.plane.get(_deployment_path(stage.names))["status"].get("readyReplicas", 0) == 1)


def _is_asleep(sight: Sight) -> bool:
    """The last pod must have ended, because it could still read new messages while it ends."""
    return sight.replicas == 0 and sight.pods == 0


def look(plane: ControlPlane, names: Names) -> Sight:
    """Asks kube-apiserver; raises RigError if the objects do not exist."""
    deployment = plane.get(_deployment_path(names))["status"]
    pods = plane.get(f"/api/v1/namespaces/{names.namespace}/pods?labelSelector=app%3D{names.group}")["items"]
    hpa = plane.get(f"/apis/autoscaling/v2/namespaces/{names.namespace}/horizontalpodautoscalers/{names.group}")
    status, body = plane.raw(metric_path(names))
    is_number = status == 200
    return Sight(
        targets=_targets(hpa),
        replicas=int(deployment.get("replicas", 0)),
        ready=int(deployment.get("readyReplicas", 0)),
        pods=len(pods),
        lag=sum(_number(item["value"]) for item in items(body)) if is_number else None,
        trouble="" if is_number else f"{status} {body.decode(errors='replace').strip()}",
    )


def _deployment_path(names: Names) -> str:
    return f"/apis/apps/v1/namespaces/{names.namespace}/deployments/{names.group}"


def metric_path(names: Names) -> str:
    """Returns the path at which kube-apiserver serves the group's lag."""
    selector = quote(f"group={names.group},topic={names.topic}", safe="")
    return f"{EXTERNAL_METRICS}/namespaces/{names.namespace}/{METRIC}?labelSelector={selector}"


def explanation_path(names: Names) -> str:
    """Returns the path at which kube-apiserver serves why the lag is what it is, and what the HPA makes of it."""
    return f"{EXTERNAL_METRICS}/namespaces/{names.namespace}/{METRIC}/{quote(names.group, safe='')}"


def page_path(names: Names) -> str:
    """Returns the path at which kube-apiserver serves the status page of the namespace."""
    return f"{EXTERNAL_METRICS}/namespaces/{names.namespace}/{METRIC}?output=html"


def manifests(kafka: Kafka, names: Names, *, has_gate: bool = True) -> list[Manifest]:
    """Returns Namespace, Deployment and HPA, in this order."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.namespace}}
    return [namespace, _deployment(kafka, names), _hpa(names) if has_gate else _hpa_for_activator(names)]


def _deployment(kafka: Kafka, names: Names) -> Manifest:
    arguments = {"bootstrap-servers": kafka.bootstrap_servers, "group": names.group, "topic": names.topic}
    command = [
        sys.executable,
        "-m",
        "local.kafka.consumer",
        *(f"--{name}={value}" for name, value in arguments.items()),
    ]
    consumer = {
        "name": "consumer",
        "image": "none",  # the node runs the command on this machine
        "command": [*command, f"--rate={MESSAGES_PER_SECOND}"],
        "env": [{"name": "PYTHONPATH", "value": str(REPOSITORY)}],
    }
    labels = {"app": names.group}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": names.group, "namespace": names.namespace},
        "spec": {
            "replicas": 1,  # an HPA wakes up only what it put to sleep itself
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [consumer]}},
        },
    }


def _hpa(names: Names) -> Manifest:
    metric = {"name": METRIC, "selector": {"matchLabels": {"group": names.group, "topic": names.topic}}}
    target = {"type": "AverageValue", "averageValue": str(LAG_PER_REPLICA)}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": names.group, "namespace": names.namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": names.group},
            "minReplicas": 0,
            "maxReplicas": MOST_REPLICAS,
            "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
            # Short, for people who watch: 300 s is the default.
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 8}},
        },
    }


def _hpa_for_activator(names: Names) -> Manifest:
    hpa = _hpa(names)
    annotations = {SCALE_TO_ZERO: "true", COOLDOWN: COOLDOWN_OF_DEMO}
    return {
        **hpa,
        "metadata": {**hpa["metadata"], "annotations": annotations},
        "spec": {**hpa["spec"], "minReplicas": 1},
    }


def _until(stage: Stage, is_there: Callable[[Sight], bool], what: str, timeout_seconds: float) -> Sight:
    """Returns the sight that was waited for; raises StepFailed."""
    for sight in _sights(stage, timeout_seconds):
        if is_there(sight):
            return sight
    trouble = f"; asked for the lag, kube-apiserver says: {sight.trouble}" if sight.trouble else ""
    raise StepFailed(
        f"waited {timeout_seconds:g} s in vain for {what}: there are {sight.replicas} replicas, {sight.ready} of them "
        f"ready, and the lag is {'unknown' if sight.lag is None else sight.lag}{trouble}"
    )


def _sights(stage: Stage, timeout_seconds: float) -> Iterator[Sight]:
    """Yields a sight now and then one after another until the time is over."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        sight = look(stage.plane, stage.names)
        stage.show(sight)
        yield sight
        if time.monotonic() > deadline:
            return
        time.sleep(LOOK_SECONDS)


def _targets(hpa: Any) -> str:  # noqa: ANN401 - JSON
    """Returns the content of kubectl's column of that name."""
    target = hpa["spec"]["metrics"][0]["external"]["target"]["averageValue"]
    metrics = hpa["status"].get("currentMetrics") or []
    averages = [metric["external"]["current"].get("averageValue") for metric in metrics if "external" in metric]
    average = averages[0] if averages else None
    return f"{'<unknown>' if average in {None, DIVIDED_BY_ZERO} else average}/{target} (avg)"


def _number(quantity: str) -> int:
    """`10k` -> 10000."""
    return int(parse_quantity(quantity))  # type: ignore[no-untyped-call]  # the client has no types here
