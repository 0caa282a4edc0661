"""A Deployment behind an HPA that asks the adapter to scale it to zero, on a real control plane and a real broker.

The adapter runs with the rights of the shipped manifests and the components `autoscalers` and `events`."""

import contextlib
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apiservice.autoscalers.annotations import ASLEEP_SINCE, COOLDOWN, SCALE_TO_ZERO
from local.adapter import Adapter, Serving, new_serving, own_kubeconfig, process, shipped
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.manifests.check import MANIFESTS, load
from local.manifests.shipped import NAME
from local.processes import free_port, wait_until
from tests.support.real.programs import MAIN

METRIC = "kafka_consumergroup_lag"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAME}/leases/{NAME}-leader"
INTERVAL_SECONDS = 1.0
COOLDOWN_SECONDS = 3
WAIT_SECONDS = 180.0
MERGE = "application/merge-patch+json"
KILLED_AFTER = (
    "import os, time; from apiservice.cluster_api.objects import ClusterObjects; "
    "original, count = ClusterObjects._written, [0]\n"
    "def counted(*arguments, **options):\n"
    "    result = original(*arguments, **options)\n"
    "    if 'events' not in arguments[2]:\n"
    "        count[0] += 1\n"
    "        while count[0] == {writes} and not os.path.exists({allowed!r}): time.sleep(0.05)\n"
    "        if count[0] == {writes}: os._exit(9)\n"
    "    return result\n"
    "ClusterObjects._written = counted\n"
    f"{MAIN}"
)
"""The installed command, which ends without a trace after so many writes for an HPA, as soon as a file allows it."""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Stage:
    """Where adapters run one after the other, all at the address that the APIService has."""

    plane: ControlPlane
    kafka: Kafka
    kubeconfig: Path
    serving: Serving
    port: int
    home: Path
    prepared: set[str] = field(default_factory=set)
    """Names with a topic and a group that has read it. An adapter that runs sees a new topic after up to 30 s."""
    max_age: str = "10s"
    """Longer than a cycle takes on a busy machine, and short for those who wait for the end of it."""

    def prepare(self, *names: str) -> None:
        for name in names:
            create_topic(self.kafka, name)
            commit(self.kafka, name, {(name, 0): 0})
        self.prepared.update(names)

    @contextlib.contextmanager
    def adapter(self, program: Sequence[str] = (), **autoscalers: bool) -> Iterator[Adapter]:
        """Runs an adapter that may do what `autoscalers` says, as in the settings."""
        home = self.home / f"adapter-{next(_numbers)}"
        with process(
            home,
            self.settings(**autoscalers),
            self.kubeconfig,
            serving=self.serving,
            port=self.port,
            program=program,
        ) as running:
            yield running

    @contextlib.contextmanager
    def replicas(self, program: Sequence[str], **autoscalers: bool) -> Iterator[list[Adapter]]:
        """Runs two that share the Lease; `autoscalers` as for `adapter`. kube-apiserver reads from neither."""
        with contextlib.ExitStack() as stack:
            yield [
                stack.enter_context(
                    process(
                        self.home / f"replica-{next(_numbers)}",
                        self.settings(**autoscalers),
                        self.kubeconfig,
                        port=free_port(),
                        service=f"{NAME}/{NAME}",
                        program=program,
                    )
                )
                for _ in range(2)
            ]

    def transitions(self) -> int:
        """How often the Lease has had another holder."""
        return int(self.plane.get(LEASE)["spec"].get("leaseTransitions", 0))

    def leader_of(self, running: Sequence[Adapter]) -> tuple[Adapter, int]:
        """Returns the replica that holds the Lease, and the transitions that made it the holder."""
        found: list[tuple[Adapter, int]] = []

        def is_one() -> bool:
            before = self.transitions()
            holders = [one for one in running if "held by this replica" in one.get_plain("/readyz?verbose")[1].decode()]
            found[:] = [(one, before) for one in holders]
            return len(holders) == 1 and self.transitions() == before

        wait_until(is_one, "one leader", WAIT_SECONDS)
        return found[0]

    def status_when_killed_after(self, writes: int) -> int | None:
        """Returns the status with which the adapter has ended, once it was seen to live."""
        allowed = self.home / f"allowed-{next(_numbers)}"
        program = (sys.executable, "-c", KILLED_AFTER.format(writes=writes, allowed=str(allowed)))
        with self.adapter(program, scaleToZero=True) as doomed:
            allowed.touch()
            return doomed.process.wait(WAIT_SECONDS)

    def settings(self, **autoscalers: bool) -> dict[str, Any]:
        return {
            "clusters": [{"name": "main", "bootstrapServers": self.kafka.bootstrap_servers.split(",")}],
            "collection": {"interval": f"{INTERVAL_SECONDS:g}s", "maxAge": self.max_age},
            "autoscalers": autoscalers,
        }


def stage(plane: ControlPlane, kafka: Kafka, home: Path) -> Stage:
    """Applies what is shipped, with the components, so that kube-apiserver asks whoever serves at the port."""
    serving, port = new_serving(home), free_port()
    components = (document for name in ("autoscalers", "events") for document in load(MANIFESTS / name))
    plane.apply([*shipped(port, serving.ca_bundle), *components])
    return Stage(plane, kafka, own_kubeconfig(plane), serving, port, home)


@dataclass(frozen=True)
class Consumer:
    """A Deployment, its HPA, and the group and topic that are named like them. There is no node, so no pod runs."""

    plane: ControlPlane
    kafka: Kafka
    name: str
    namespace: str = "default"
    kind: str = "Deployment"

    @property
    def target(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/{self.kind.lower()}s/{self.name}"

    @property
    def hpa(self) -> str:
        return f"/apis/autoscaling/v2/namespaces/{self.namespace}/horizontalpodautoscalers/{self.name}"

    @property
    def replicas(self) -> int:
        return int(self.plane.get(f"{self.target}/scale")["spec"].get("replicas", 0))

    @property
    def is_marked(self) -> bool:
        return ASLEEP_SINCE in (self.plane.get(self.hpa)["metadata"].get("annotations") or {})

    @property
    def state(self) -> tuple[int, bool]:
        return self.replicas, self.is_marked

    def wait_for(self, replicas: int, *, is_marked: bool, seconds: float = WAIT_SECONDS) -> None:
        what = f"{replicas} replicas, {'marked' if is_marked else 'not marked'}"
        wait_until(lambda: self.state == (replicas, is_marked), what, seconds)

    def events(self) -> list[str]:
        """The reasons of the Events about the HPA, as `kubectl describe` finds them."""
        uid = self.plane.get(self.hpa)["metadata"]["uid"]
        found = self.plane.get(f"/api/v1/namespaces/{self.namespace}/events?fieldSelector=involvedObject.uid%3D{uid}")
        ours = [each for each in found["items"] if each.get("reportingComponent") == "kafka-lag-adapter"]
        return [each["reason"] for each in sorted(ours, key=lambda each: each["eventTime"])]

    def patch(self, path: str, change: Mapping[str, object]) -> None:
        self.plane.ask("PATCH", path, change, content_type=MERGE)

    def annotate(self, **annotations: str | None) -> None:
        """Their names without our prefix, and with underscores."""
        named = {f"kafka-lag-adapter/{key.replace('_', '-')}": value for key, value in annotations.items()}
        self.patch(self.hpa, {"metadata": {"annotations": named}})

    def scale(self, replicas: int) -> None:
        """As somebody else."""
        self.patch(f"{self.target}/scale", {"spec": {"replicas": replicas}})

    def produce(self, count: int) -> None:
        produce(self.kafka, self.name, count)

    def read_until(self, offset: int) -> None:
        commit(self.kafka, self.name, {(self.name, 0): offset})


@contextlib.contextmanager
def consumer(
    stage: Stage, name: str, *, annotations: Mapping[str, str] | None = None, most: int = 3, kind: str = "Deployment"
) -> Iterator[Consumer]:
    """One replica, which has read everything. `annotations`: instead of those that ask for zero."""
    made = Consumer(stage.plane, stage.kafka, name, kind=kind)
    if name not in stage.prepared:
        stage.prepare(name)
    documents = [target(name, kind), hpa(name, annotations, most, kind)]
    stage.plane.apply(documents)
    try:
        yield made
    finally:
        stage.plane.delete(documents)


def target(name: str, kind: str = "Deployment") -> Manifest:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def hpa(
    name: str,
    annotations: Mapping[str, str] | None = None,
    most: int = 3,
    kind: str = "Deployment",
    *,
    group: str | None = None,
) -> Manifest:
    """`group`: instead of the one that is named like the HPA."""
    asks = {SCALE_TO_ZERO: "true", COOLDOWN: f"{COOLDOWN_SECONDS}s"}
    metric = {"name": METRIC, "selector": {"matchLabels": {"group": group or name, "topic": name}}}
    target = {"type": "AverageValue", "averageValue": "1000"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": dict(asks if annotations is None else annotations),
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
            "minReplicas": 1,
            "maxReplicas": most,
            "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
        },
    }
