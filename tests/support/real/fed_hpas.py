"""HPAs on a real control plane whose metrics have the values that a test says, one for each sync of the controller, and
what the controller made of them.

The controller reads the scale of the target first and then the metrics, and nobody else changes the target. So whoever
answers a read of a metric knows what the controller has just seen, and what it decided last, without waiting."""

import base64
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apiservice.api_group import EXTERNAL
from local.adapter import external_name, is_available
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.processes import wait_until
from tests.support.kubernetes.authorities import Authority
from tests.support.kubernetes.other_server import NAMESPACE, SERVICE, Answer, OtherServer

SCALED_VERSION, SCALED_KIND = "scaled.example/v1", "Scaled"
MERGE_PATCH = "application/merge-patch+json"
NO_SUCH_METRIC = b'{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"}'

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sync:
    """What the controller saw. Seconds of the monotonic clock."""

    arrived: float
    """When it asked for the first metric."""
    spec: int
    status: int


@dataclass(slots=True)
class FedHpa:
    """`spec` is that of an HPA, without its target; its metrics are called `NAME-0`, `NAME-1`, …"""

    name: str
    spec: Json
    replicas: int
    """At the start."""
    values: Sequence[Sequence[int | None]]
    """Thousandths, for each sync and metric; None: the metric fails."""
    syncs: list[Sync] = field(default_factory=list)
    replied: list[float] = field(default_factory=list)
    """When the last metric of each sync was about to be answered."""

    @property
    def is_over(self) -> bool:
        """Whether the decision of every sync is known."""
        return len(self.syncs) > len(self.values)


class FeedingServer(OtherServer):
    """Serves the metrics of these HPAs to the controller, as `external.metrics.k8s.io`."""

    def __init__(self, plane: ControlPlane, folder: Path, namespace: str, hpas: Sequence[FedHpa]) -> None:
        self.authority = Authority("feeding")
        super().__init__(folder, self.authority)
        self._plane, self._namespace = plane, namespace
        self._hpas = {hpa.name: hpa for hpa in hpas}

    def answer_to(self, path: str) -> Answer:
        name, _, number = path.partition("?")[0].rpartition("/")[2].rpartition("-")
        hpa = self._hpas.get(name)
        if hpa is None:
            return _answer({"kind": "APIResourceList", "groupVersion": f"{EXTERNAL.name}/{EXTERNAL.version}"})
        if int(number) == 0:
            self._begin(hpa)
        at = min(len(hpa.syncs), len(hpa.values)) - 1
        value = hpa.values[at][int(number)]
        if int(number) == len(hpa.values[at]) - 1:
            hpa.replied.append(time.monotonic())
        if value is None:
            return Answer(404, NO_SUCH_METRIC, {"Content-Type": "application/json"}, retry_after=None)
        item = {"metricName": name, "metricLabels": {}, "timestamp": "2026-11-24T00:00:00Z", "value": f"{value}m"}
        return _answer({"kind": "ExternalMetricValueList", "items": [item]})

    def _begin(self, hpa: FedHpa) -> None:
        """Takes down what the controller sees, then lets the replicas follow, for its next sync to see."""
        arrived, target = time.monotonic(), self._plane.get(_path(hpa, self._namespace))
        spec = target["spec"]["replicas"]
        hpa.syncs.append(Sync(arrived, spec, target["status"]["replicas"]))
        _report(self._plane, hpa, self._namespace, replicas=spec)

    def served(self) -> list[Manifest]:
        """What makes kube-apiserver ask this server."""
        service = {"name": SERVICE, "namespace": NAMESPACE, "port": self.port}
        spec = {"group": EXTERNAL.name, "version": EXTERNAL.version, "service": service}
        priorities = {"groupPriorityMinimum": 100, "versionPriority": 100}
        place = {"metadata": {"name": SERVICE, "namespace": NAMESPACE}}
        bundle = base64.b64encode(self.authority.pem.encode()).decode()
        return [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            {"apiVersion": "v1", "kind": "Service", **place, "spec": external_name(self.port)},
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": EXTERNAL.api_service},
                "spec": {**spec, "caBundle": bundle, **priorities},
            },
        ]


def feed(plane: ControlPlane, folder: Path, namespace: str, hpas: Sequence[FedHpa], seconds: float) -> None:
    """Runs HPAs until the controller has decided on all their values; raises RigError if that takes longer."""
    with FeedingServer(plane, folder, namespace, hpas) as server:
        served = server.served()
        plane.apply(served)
        try:
            wait_until(lambda: is_available(plane), "kube-apiserver to find the metrics available", 180)
            for hpa in hpas:
                plane.apply([_target(hpa, namespace)])
                _report(plane, hpa, namespace, replicas=hpa.replicas, selector=f"app={hpa.name}")
            plane.apply([_autoscaler(hpa, namespace) for hpa in hpas])
            wait_until(lambda: all(hpa.is_over for hpa in hpas), "the controller to decide on all values", seconds)
        finally:
            plane.delete([*(_autoscaler(hpa, namespace) for hpa in hpas), *served[:0:-1]])


def ready_pods(hpa: str, number: int, plane: ControlPlane, namespace: str) -> None:
    """Creates pods of an HPA's target that run and are ready, as far as anybody can see."""
    for at in range(number):
        metadata = {"name": f"{hpa}-{at}", "namespace": namespace, "labels": {"app": hpa}}
        spec = {"containers": [{"name": "consumer", "image": "consumer"}]}
        pod: Manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        plane.apply([pod])
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        plane.ask("PATCH", f"{plane.path_of(pod)}/status", {"status": status}, content_type=MERGE_PATCH)


def _path(hpa: FedHpa, namespace: str) -> str:
    return f"/apis/{SCALED_VERSION}/namespaces/{namespace}/scaleds/{hpa.name}"


def _report(plane: ControlPlane, hpa: FedHpa, namespace: str, **status: object) -> None:
    plane.ask("PATCH", f"{_path(hpa, namespace)}/status", {"status": status}, content_type=MERGE_PATCH)


def _target(hpa: FedHpa, namespace: str) -> Manifest:
    metadata = {"name": hpa.name, "namespace": namespace}
    spec = {"replicas": hpa.replicas}
    return {"apiVersion": SCALED_VERSION, "kind": SCALED_KIND, "metadata": metadata, "spec": spec}


def _autoscaler(hpa: FedHpa, namespace: str) -> Manifest:
    metadata = {"name": hpa.name, "namespace": namespace}
    target = {"apiVersion": SCALED_VERSION, "kind": SCALED_KIND, "name": hpa.name}
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    return {**kind, "metadata": metadata, "spec": {**hpa.spec, "scaleTargetRef": target}}


def _answer(document: Json) -> Answer:
    body = json.dumps({"apiVersion": f"{EXTERNAL.name}/{EXTERNAL.version}", **document}).encode()
    return Answer(200, body, {"Content-Type": "application/json"}, retry_after=None)
