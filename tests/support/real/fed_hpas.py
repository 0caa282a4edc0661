"""HPAs on a real control plane whose metrics have the values that a test says, one for each sync of the controller, and
what the controller made of them.

The controller reads the scale of the target first and then the metrics, and nobody else changes the target. So whoever
answers a read of a metric knows what the controller has just seen, and what it decided last, without waiting.

When it decided is in its log. Windows and periods end so many seconds after earlier decisions. An answer is held back
as long as the next decision could come just then, so that it is certain in each sync what is in a window."""

import base64
import contextlib
import json
import math
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
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

DECISION_SECONDS = 0.75
"""From an answer until the controller has decided, and has changed the scale; on a busy machine it is more."""
LINE = re.compile(
    r'I(?P<time>\d{4} \d\d:\d\d:\d\d\.\d{6}) .*"(?P<what>Proposing desired replicas|Decided not to scale|'
    r'Successfully rescaled)[^"]*" .*(?:scaleTarget="Scaled/|HPA=")(?P<name>[^"]+)"'
)
"""Of the controller's log: the first one comes before the decision, one of the others after it."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds of the wall clock between which something happened."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Sync:
    """What the controller saw."""

    arrived: float
    """When it asked for the first metric. Seconds of the wall clock."""
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
    windows: Sequence[float]
    """Seconds that a decision looks back."""
    first: Span = Span(0.0, 0.0)
    """When the controller took down the replicas at the start."""
    syncs: list[Sync] = field(default_factory=list)
    decisions: list[Span] = field(default_factory=list)
    """Of the syncs in which the metrics allowed one."""

    @property
    def is_over(self) -> bool:
        """Whether the decision of every sync is known."""
        return len(self.syncs) > len(self.values)

    def decided_in(self, sync: int) -> Span | None:
        """None: the metrics allowed no decision."""
        begin, end = self.syncs[sync].arrived, self.syncs[sync + 1].arrived
        return next((it for it in self.decisions if begin <= it.begin < end), None)


class ControllerLog:
    """Follows what the controller decided."""

    def __init__(self, path: Path) -> None:
        self._file, self._rest, self._lock = path.open(), "", threading.Lock()
        self._begun: dict[str, float] = {}
        self._decisions: dict[str, list[Span]] = {}

    def decisions(self, name: str) -> list[Span]:
        """Returns those for `NAMESPACE/NAME` until now."""
        with self._lock:
            self._read_on()
            return list(self._decisions.get(name, ()))

    def close(self) -> None:
        self._file.close()

    def _read_on(self) -> None:
        whole, _, self._rest = (self._rest + self._file.read()).rpartition("\n")
        for found in filter(None, map(LINE.match, whole.split("\n"))):
            name, at = found["name"], _seconds_of(found["time"])
            if found["what"].startswith("Proposing"):
                self._begun[name] = at
            elif name in self._begun:
                self._decisions.setdefault(name, []).append(Span(self._begun.pop(name), at))


class FeedingServer(OtherServer):
    """Serves the metrics of these HPAs to the controller, as `external.metrics.k8s.io`."""

    def __init__(
        self, plane: ControlPlane, folder: Path, namespace: str, hpas: Sequence[FedHpa], log: ControllerLog
    ) -> None:
        self.authority = Authority("feeding")
        super().__init__(folder, self.authority)
        self._plane, self._namespace, self._log = plane, namespace, log
        self._over = threading.Event()
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
            self._over.wait(certain_from(hpa, time.time()) - time.time())
        if value is None:
            return Answer(404, NO_SUCH_METRIC, {"Content-Type": "application/json"}, retry_after=None)
        item = {"metricName": name, "metricLabels": {}, "timestamp": "2026-11-24T00:00:00Z", "value": f"{value}m"}
        return _answer({"kind": "ExternalMetricValueList", "items": [item]})

    def _begin(self, hpa: FedHpa) -> None:
        """Takes down what the controller sees, then lets the replicas follow, for its next sync to see."""
        arrived, target = time.time(), self._plane.get(_path(hpa, self._namespace))
        spec = target["spec"]["replicas"]
        hpa.decisions = self._log.decisions(f"{self._namespace}/{hpa.name}")
        if not hpa.syncs:
            hpa.first = Span(hpa.first.begin, arrived)
        hpa.syncs.append(Sync(arrived, spec, target["status"]["replicas"]))
        _report(self._plane, hpa, self._namespace, replicas=spec)

    def stop_holding(self) -> None:
        """Answers at once from now on."""
        self._over.set()

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


def certain_from(hpa: FedHpa, now: float) -> float:
    """Returns the earliest time from `now` on, at which an answer leads to a decision for which it is certain what is
    in its windows."""
    held = sorted(
        (before.begin + seconds - DECISION_SECONDS, before.end + seconds)
        for before in (hpa.first, *hpa.decisions)
        for seconds in hpa.windows
    )
    for begin, end in held:
        if begin < now < end:
            now = end
    return now


def uncertain_syncs(hpa: FedHpa) -> Iterator[int]:
    """Yields the syncs whose windows may or may not have held an earlier decision: the controller took longer than
    expected, or its log does not show when it decided."""
    for sync, values in enumerate(hpa.values):
        now = hpa.decided_in(sync)
        if now is None:
            if None not in values:
                yield sync
            continue
        earlier = (hpa.first, *(it for it in hpa.decisions if it.begin < now.begin))
        if any(now.begin - it.end <= seconds <= now.end - it.begin for it in earlier for seconds in hpa.windows):
            yield sync


def feed(
    plane: ControlPlane, folder: Path, namespace: str, hpas: Sequence[FedHpa], sync_seconds: float, longest: float
) -> None:
    """Runs HPAs until the controller has decided on all their values; raises RigError if that takes longer."""
    log = ControllerLog(plane.controller_manager_log)
    with contextlib.closing(log), FeedingServer(plane, folder, namespace, hpas, log) as server:
        served = server.served()
        plane.apply(served)
        try:
            wait_until(lambda: is_available(plane), "kube-apiserver to find the metrics available", 180)
            for hpa in hpas:
                plane.apply([_target(hpa, namespace)])
                _report(plane, hpa, namespace, replicas=hpa.replicas, selector=f"app={hpa.name}")
            for hpa in hpas:
                # The controller looks at a new HPA after it has waited for the time between two syncs.
                hpa.first = Span(time.time() + sync_seconds, math.inf)
                plane.apply([_autoscaler(hpa, namespace)])
            wait_until(lambda: all(hpa.is_over for hpa in hpas), "the controller to decide on all values", longest)
        finally:
            server.stop_holding()
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


def _seconds_of(time_in_log: str) -> float:
    """Of the wall clock. The log is in local time, and lacks the year."""
    whole, _, fraction = time_in_log.partition(".")
    return time.mktime(time.strptime(f"{time.localtime().tm_year}{whole}", "%Y%m%d %H:%M:%S")) + float(f"0.{fraction}")
