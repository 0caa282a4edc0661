"""A substitute for a node: binds pods to itself and runs their commands as processes of this machine.

It does what an autoscaler needs of a scheduler and a kubelet: a pod gets a node, its containers' `command` and
`args` run with their `env`, its status is correct, a process that ends is restarted with growing pauses, and a
deleted pod's processes get SIGTERM and their grace period. Images, volumes, probes and networks are ignored: a
container is ready once its process runs.

One thread lists the pods a few times a second and moves each one step closer to its desired state. It never waits
for a pod, so one that ends slowly does not delay the others."""

import contextlib
import datetime
import json
import logging
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import urllib3

from local.kubernetes.control_plane import ControlPlane
from local.processes import Process, RigError, start

STEP_SECONDS = 0.2
HEARTBEAT_SECONDS = 10.0
LEASE_SECONDS = 40
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
CALM_SECONDS = 60.0  # a process that ran this long starts again as if for the first time
ADDRESS = "127.0.0.1"
VARIABLE = re.compile(r"\$\((\w+)\)")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MERGE_PATCH = "application/merge-patch+json"

Json: TypeAlias = dict[str, Any]
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Container:
    """One container's process over its restarts. `refusal` says why it can never start."""

    name: str
    log: Path
    process: Process | None = None
    refusal: str | None = None
    started_at: str = ""
    started_monotonic: float = 0.0
    restarts: int = 0
    pause_seconds: float = FIRST_PAUSE_SECONDS
    next_start: float = 0.0
    last_end: Json | None = None


@dataclass(slots=True)
class Pod:
    """What this node knows about a pod bound to it."""

    namespace: str
    name: str
    uid: str
    began_at: str
    containers: list[Container]
    reported: Json = field(default_factory=dict)
    kill_after: float | None = None  # monotonic; set once its processes were asked to end


class Node:
    """The running substitute; made by `node`."""

    def __init__(self, plane: ControlPlane, name: str, logs: Path) -> None:
        self.name = name
        self._plane = plane
        self._logs = logs
        self._pods: dict[str, Pod] = {}
        self._next_heartbeat = 0.0
        self._leave = threading.Event()

    def log(self, namespace: str, pod: str, container: str) -> Path:
        """Returns the file with a container's output, including that of its earlier processes."""
        return self._logs / namespace / pod / f"{container}.log"

    def processes(self, namespace: str) -> Mapping[str, Process]:
        """Returns what runs in a namespace now, by `pod/container`."""
        return {
            f"{pod.name}/{container.name}": container.process
            for pod in list(self._pods.values())
            for container in pod.containers
            if pod.namespace == namespace and container.process is not None and container.process.is_running()
        }

    def run(self) -> None:
        """Runs until it is stopped, then ends all processes. An unavailable apiserver is asked again at each step."""
        while not self._leave.wait(STEP_SECONDS):
            try:
                self._step()
            except (RigError, urllib3.exceptions.HTTPError) as error:
                logger.warning("node %s: %s", self.name, error)
        for pod in self._pods.values():
            _tell_to_end(pod, 0.0)
        for pod in self._pods.values():
            for container in pod.containers:
                if container.process is not None:
                    container.process.stop()

    def leave(self) -> None:
        self._leave.set()

    def _step(self) -> None:
        if time.monotonic() >= self._next_heartbeat:
            self.beat()
            self._next_heartbeat = time.monotonic() + HEARTBEAT_SECONDS
        found = {pod["metadata"]["uid"]: pod for pod in self._plane.get("/api/v1/pods")["items"]}
        for uid in self._pods.keys() - found.keys():
            self._end(self._pods[uid], 0.0)  # deleted with force
        for uid, manifest in found.items():
            at = manifest["spec"].get("nodeName")
            if at is None and "deletionTimestamp" not in manifest["metadata"]:
                self._bind(manifest["metadata"])
            elif at == self.name:
                self._step_pod(uid, manifest)

    def beat(self) -> None:
        """Creates or renews the Node and its Lease, without which the pods would be collected as orphans."""
        now = _now()
        metadata = {"name": self.name, "labels": {"kubernetes.io/hostname": self.name}}
        room = {"cpu": "64", "memory": "64Gi", "pods": "500"}
        condition = {"type": "Ready", "status": "True", "reason": "Running", "message": "runs pods as processes"}
        condition |= {"lastHeartbeatTime": now, "lastTransitionTime": now}
        status = {
            "conditions": [condition],
            "addresses": [{"type": "InternalIP", "address": ADDRESS}],
            "capacity": room,
            "allocatable": room,
        }
        renewal = {"renewTime": now.replace("Z", ".000000Z"), "holderIdentity": self.name}
        lease = {"leaseDurationSeconds": LEASE_SECONDS, **renewal}
        self._change("POST", "/api/v1/nodes", {"metadata": metadata}, passing=[409])
        self._change("PATCH", f"/api/v1/nodes/{self.name}/status", {"status": status})
        self._change("POST", LEASES, {"metadata": {"name": self.name}, "spec": lease}, passing=[409])
        self._change("PATCH", f"{LEASES}/{self.name}", {"spec": lease})

    def _bind(self, metadata: Json) -> None:
        binding = {
            "metadata": {"name": metadata["name"], "uid": metadata["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.name},
        }
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding"
        self._change("POST", path, binding, passing=[404, 409])

    def _step_pod(self, uid: str, manifest: Json) -> None:
        pod = self._pods.get(uid)
        if manifest["metadata"].get("deletionTimestamp") is not None:
            if pod is None or self._end(pod, float(manifest["metadata"].get("deletionGracePeriodSeconds", 0))):
                self._forget(manifest["metadata"])
            return
        if manifest.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
            return
        if pod is None:
            pod = self._pods[uid] = self._pod_of(manifest)
        policy = manifest["spec"].get("restartPolicy", "Always")
        for container, spec in zip(pod.containers, manifest["spec"]["containers"], strict=True):
            _step_container(container, spec, manifest, policy)
        self._tell_status(pod, manifest["spec"]["containers"], policy)

    def _pod_of(self, manifest: Json) -> Pod:
        metadata = manifest["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        containers = [
            Container(spec["name"], self.log(namespace, name, spec["name"])) for spec in manifest["spec"]["containers"]
        ]
        return Pod(namespace, name, metadata["uid"], _now(), containers)

    def _end(self, pod: Pod, grace_seconds: float) -> bool:
        """Moves a pod's processes one step closer to their end; returns whether they have ended."""
        if pod.kill_after is None:
            _tell_to_end(pod, grace_seconds)
        running = [c.process for c in pod.containers if c.process is not None and c.process.is_running()]
        if pod.kill_after is not None and time.monotonic() > pod.kill_after:
            for process in running:
                process.send(signal.SIGKILL)
        if not running:
            del self._pods[pod.uid]
        return not running

    def _forget(self, metadata: Json) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        self._change("DELETE", path, options, passing=[404, 409])

    def _tell_status(self, pod: Pod, specs: Sequence[Json], policy: str) -> None:
        status = _status(pod, specs, policy)
        if status == pod.reported:
            return
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        self._change("PATCH", path, {"metadata": {"uid": pod.uid}, "status": status}, passing=[404, 409])
        pod.reported = status

    def _change(self, method: str, path: str, body: Json, passing: Sequence[int] = ()) -> None:
        """Sends one writing request. `passing` are statuses of races that the next step resolves."""
        content_type = MERGE_PATCH if method == "PATCH" else "application/json"
        status, answer = self._plane.request(method, path, body, content_type=content_type)
        if status >= 400 and status not in passing:
            raise RigError(f"{method} {path}: {status} {_message(answer)}")


@contextlib.contextmanager
def node(plane: ControlPlane, home: Path, name: str = "local-node") -> Iterator[Node]:
    """Runs pods inside this context; their logs are files below `home`."""
    stand_in = Node(plane, name, home / "pod-logs")
    stand_in.beat()
    thread = threading.Thread(target=stand_in.run, name=name)
    thread.start()
    try:
        yield stand_in
    finally:
        stand_in.leave()
        thread.join()


def _step_container(container: Container, spec: Json, manifest: Json, policy: str) -> None:
    """Starts the container, or records its end and, if its pod wants it, when to restart it."""
    if container.refusal is not None:
        return
    if container.process is None:
        if time.monotonic() >= container.next_start and _may_start(container, policy):
            _start(container, spec, manifest)
        return
    status = container.process.status
    if status is None:
        return
    container.process = None
    container.last_end = {
        "exitCode": status if status >= 0 else 128 - status,
        "reason": "Completed" if status == 0 else "Error",
        "startedAt": container.started_at,
        "finishedAt": _now(),
    }
    if time.monotonic() - container.started_monotonic > CALM_SECONDS:
        container.pause_seconds = FIRST_PAUSE_SECONDS
    container.next_start = time.monotonic() + container.pause_seconds
    container.pause_seconds = min(container.pause_seconds * 2, LONGEST_PAUSE_SECONDS)


def _may_start(container: Container, policy: str) -> bool:
    if container.last_end is None or policy == "Always":
        return True
    return policy == "OnFailure" and container.last_end["exitCode"] != 0


def _start(container: Container, spec: Json, manifest: Json) -> None:
    name = f"{manifest['metadata']['name']}/{container.name}"
    try:
        environment = _environment(spec, manifest)
        container.process = start(name, _command(spec, environment), log=container.log, env=environment)
    except RigError as error:
        container.refusal = str(error)
        return
    container.restarts += container.last_end is not None
    container.started_at = _now()
    container.started_monotonic = time.monotonic()


def _command(spec: Json, environment: Mapping[str, str]) -> list[str]:
    """Returns the command with the variables that it refers to as `$(NAME)`; unknown ones stay, as in Kubernetes."""
    if "command" not in spec:
        raise RigError("this node runs commands and has no images: the container needs a `command`")
    return [
        VARIABLE.sub(lambda found: environment.get(found[1], found[0]), word)
        for word in (*spec["command"], *spec.get("args", []))
    ]


def _environment(spec: Json, manifest: Json) -> dict[str, str]:
    """Returns the container's `env`. Of its sources only fields of the pod are supported; others raise RigError."""
    fields = {
        "metadata.name": manifest["metadata"]["name"],
        "metadata.namespace": manifest["metadata"]["namespace"],
        "metadata.uid": manifest["metadata"]["uid"],
        "spec.nodeName": manifest["spec"]["nodeName"],
        "status.podIP": ADDRESS,
    }
    environment = {}
    for entry in spec.get("env", []):
        if "valueFrom" not in entry:
            environment[entry["name"]] = entry.get("value", "")
            continue
        path = entry["valueFrom"].get("fieldRef", {}).get("fieldPath")
        if path not in fields:
            raise RigError(f"this node cannot give the variable {entry['name']} its value")
        environment[entry["name"]] = fields[path]
    return environment


def _tell_to_end(pod: Pod, grace_seconds: float) -> None:
    pod.kill_after = time.monotonic() + grace_seconds
    for container in pod.containers:
        if container.process is not None:
            container.process.send(signal.SIGTERM)


def _status(pod: Pod, specs: Sequence[Json], policy: str) -> Json:
    phase = _phase(pod, policy)
    ready = "True" if all(container.process is not None for container in pod.containers) else "False"
    since = max(_changed_at(container, pod) for container in pod.containers)
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": pod.began_at},
        {"type": "Initialized", "status": "True", "lastTransitionTime": pod.began_at},
        {"type": "ContainersReady", "status": ready, "lastTransitionTime": since},
        {"type": "Ready", "status": ready, "lastTransitionTime": since},
    ]
    return {
        "phase": phase,
        "startTime": pod.began_at,
        "hostIP": ADDRESS,
        "podIP": ADDRESS,
        "podIPs": [{"ip": ADDRESS}],
        "conditions": conditions,
        "containerStatuses": [
            _container_status(container, spec, policy) for container, spec in zip(pod.containers, specs, strict=True)
        ],
    }


def _changed_at(container: Container, pod: Pod) -> str:
    ended_at = "" if container.last_end is None else str(container.last_end["finishedAt"])
    return max(pod.began_at, container.started_at, ended_at)  # times of this form sort as text


def _phase(pod: Pod, policy: str) -> str:
    if any(container.refusal is not None for container in pod.containers):
        return "Pending"
    if any(container.process is not None or _may_start(container, policy) for container in pod.containers):
        return "Running"
    ends = [container.last_end["exitCode"] for container in pod.containers if container.last_end is not None]
    return "Failed" if any(ends) else "Succeeded"


def _container_status(container: Container, spec: Json, policy: str) -> Json:
    runs = container.process is not None
    state: Json
    if runs:
        state = {"running": {"startedAt": container.started_at}}
    elif container.refusal is not None:
        state = {"waiting": {"reason": "CreateContainerError", "message": container.refusal}}
    elif not _may_start(container, policy):
        state = {"terminated": container.last_end}
    else:
        state = {"waiting": {"reason": "CrashLoopBackOff" if container.last_end else "ContainerCreating"}}
    last = {} if container.last_end is None else {"lastState": {"terminated": container.last_end}}
    return {
        "name": container.name,
        "image": spec.get("image", ""),
        "imageID": "",
        "ready": runs,
        "started": runs,
        "restartCount": container.restarts,
        "state": state,
        **last,
    }


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace")


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
