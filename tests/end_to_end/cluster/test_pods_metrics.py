"""Pods metrics with real members of every kind of group in pods, and the HPA controller that scales by them.

The members take seconds for a message, or never commit, so every pod's lag hardly moves."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from apiservice.api_group import CUSTOM, ApiGroup
from local.adapter import EXTERNAL_METRICS, NAMESPACE, Adapter
from local.kafka.broker import Kafka
from local.kafka.java import java
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.manifests.check import MANIFESTS, read
from local.manifests.shipped import placed
from local.processes import wait_until
from tests.support.real.group_members import CONSUMER, KIP_848, streams_command
from tests.support.real.groups_to_read import LAG, path

RIGHTS = [
    placed(read(MANIFESTS / "pods-metrics" / file), NAMESPACE)
    for file in ("cluster-role-reads-pods.yaml", "cluster-role-binding-reads-pods.yaml")
]
LARGEST = "kafka_consumer_fetch_manager_records_lag_max"
POD_NAME = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
WAIT_SECONDS = 180.0
Answer = tuple[int, str]


@pytest.fixture
def allowed(control_plane: ControlPlane, adapter: Adapter, namespace: str) -> Iterator[None]:
    """The adapter may read pods, until it watches those of the namespace no more."""
    control_plane.apply(RIGHTS)
    yield
    control_plane.request("DELETE", f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers")
    wait_until(lambda: not condition(adapter), "the pods to be watched no more", WAIT_SECONDS)
    control_plane.delete(RIGHTS)


def pod(name: str, command: Sequence[str]) -> Manifest:
    environment = [POD_NAME, {"name": "PYTHONPATH", "value": str(Path(__file__).resolve().parents[3])}]
    container = {"name": "consumer", "image": "none", "command": list(command), "env": environment}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {"metadata": {"labels": {"app": name}}, "spec": spec}


def deployment(namespace: str, name: str, command: Sequence[str], replicas: int) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": pod(name, command),
        },
    }


def autoscaler(namespace: str, name: str, replicas: int) -> Manifest:
    """Of a group that is named like its Deployment."""
    target = {"type": "AverageValue", "averageValue": "10"}
    metric = {"name": LAG, "selector": {"matchLabels": {"group": name}}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1,
            "maxReplicas": replicas,
            "metrics": [{"type": "Pods", "pods": {"metric": metric, "target": target}}],
        },
    }


def consume(cluster: Kafka, group: str, topic: str) -> list[str]:
    """A classic member that takes 4 s for a message, and as long to notice a rebalance."""
    arguments = {"bootstrap-servers": cluster.bootstrap_servers, "group": group, "topic": topic}
    own = (*(f"--{name}={value}" for name, value in arguments.items()), "--client-id=$(POD_NAME)", "--rate=0.25")
    return [sys.executable, "-m", "local.kafka.consumer", *own]


def answer(plane: ControlPlane, namespace: str, group: str, metric: str = LAG, place: ApiGroup = CUSTOM[0]) -> Answer:
    selectors = f"labelSelector=app%3D{group}&metricLabelSelector=group%3D{group}"
    status, body = plane.raw(f"{place.path}/namespaces/{namespace}/pods/*/{metric}?{selectors}")
    return status, body.decode()


def values(
    plane: ControlPlane, namespace: str, group: str, metric: str = LAG, place: ApiGroup = CUSTOM[0]
) -> dict[str, int]:
    status, body = answer(plane, namespace, group, metric, place)
    items = json.loads(body)["items"] if status == 200 else []
    return {item["describedObject"]["name"]: int(item["value"]) for item in items}


def wait_for(plane: ControlPlane, namespace: str, group: str, wanted: Sequence[int]) -> None:
    def are_served() -> bool:
        return sorted(values(plane, namespace, group).values()) == list(wanted)

    wait_until(are_served, f"the lags {wanted} of the pods of {group}", WAIT_SECONDS)


def group_with_lags(cluster: Kafka, name: str, lags: Sequence[int]) -> None:
    """A topic of the same name, with so many messages in each partition, of which the group has read none."""
    create_topic(cluster, name, len(lags))
    for partition, count in enumerate(lags):
        produce(cluster, name, count, partition)
    commit(cluster, name, {(name, partition): 0 for partition in range(len(lags))})


def condition(adapter: Adapter) -> str:
    lines = adapter.get_plain("/readyz?verbose")[1].decode().splitlines()
    return next((line for line in lines if ": pods: " in line), "")


def times_forbidden(adapter: Adapter) -> int:
    """The adapter is shared, and tests that follow take the right away as well."""
    return adapter.process.log.read_text().count("pods: Forbidden")


def test_without_the_right_pods_are_refused_once_in_words_and_all_else_works(
    control_plane: ControlPlane, adapter: Adapter, namespace: str
) -> None:
    before = times_forbidden(adapter)
    control_plane.apply([autoscaler(namespace, "ledger", 2)])
    wait_until(lambda: "Forbidden" in condition(adapter), "the condition pods to fail", WAIT_SECONDS)

    status, body = answer(control_plane, namespace, "ledger")
    assert (status, "the pods of namespace" in body or "which partitions" in body) == (503, True)
    assert control_plane.raw(path("default", LAG, "group%3Dledger"))[0] == 200
    assert times_forbidden(adapter) == before + 1
    control_plane.delete([autoscaler(namespace, "ledger", 2)])
    wait_until(lambda: not condition(adapter), "the condition pods to be gone", WAIT_SECONDS)


@pytest.mark.usefixtures("adapter", "node", "allowed")
def test_the_hpa_controller_scales_by_the_lag_of_the_pods_of_a_classic_group(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str
) -> None:
    group = f"classic-{namespace}"
    group_with_lags(one_broker, group, [1000, 400])
    consumers = deployment(namespace, group, consume(one_broker, group, group), 2)
    control_plane.apply([autoscaler(namespace, group, 3), consumers])

    of_pods: list[int] = []

    def are_three() -> bool:
        """With the group's lag as their sum: the members go on between two reads, which a busy machine delays."""
        of_pods[:] = sorted(values(control_plane, namespace, group).values())
        status, body = control_plane.raw(path(namespace, LAG, f"group%3D{group}"))
        total = sum(int(item["value"]) for item in json.loads(body)["items"]) if status == 200 else -1
        return len(of_pods) == 3 and abs(sum(of_pods) - total) <= 4

    def are_three_in(place: ApiGroup) -> bool:
        return len(values(control_plane, namespace, group, LARGEST, place)) == 3

    wait_until(are_three, "the pod that the HPA has added to be a member", WAIT_SECONDS)
    for place in CUSTOM:
        wait_until(partial(are_three_in, place), f"three pods in {place.version}", WAIT_SECONDS)
    assert of_pods[0] == 0, "the third member of a topic with two partitions"
    assert 0 < of_pods[1] <= 400 < of_pods[2] <= 1000

    def is_read() -> bool:
        found = control_plane.get(f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/{group}")
        current = found["status"].get("currentMetrics") or []
        return LAG in [each["pods"]["metric"]["name"] for each in current if "pods" in each]

    wait_until(is_read, "the HPA to read its metric again after the rebalance", WAIT_SECONDS)
    control_plane.delete([consumers])


def explained(plane: ControlPlane, namespace: str, group: str) -> tuple[str, int, int | None]:
    """The value that the namespace's HPA reads, of how many pods, and the number of replicas that follows."""
    status, body = plane.raw(f"{EXTERNAL_METRICS}/namespaces/{namespace}/{LAG}/{group}?output=json")
    assert status == 200, body
    (hpa,) = json.loads(body)["hpas"]
    (value,) = hpa["values"]
    return value["value"], value["pods"], (hpa["arithmetic"] or {}).get("asked")


def described_in(adapter: Adapter, request: str, cycles: int) -> tuple[int, int]:
    """How many such requests were sent in at least so many cycles, and how many cycles there were."""
    names = (rf'broker_requests_total\{{[^}}]*request="{request}"\}}', r"cycle_duration_seconds_count\{[^}]*\}")

    def counted() -> list[int]:
        text = adapter.get_plain("/metrics")[1].decode()
        return [sum(map(int, map(float, re.findall(rf"{name} (\S+)", text)))) for name in names]

    before = counted()
    wait_until(lambda: counted()[1] >= before[1] + cycles, f"{cycles} cycles", WAIT_SECONDS)
    descriptions, ran = (after - former for after, former in zip(counted(), before, strict=True))
    return descriptions, ran


@pytest.mark.usefixtures("node", "allowed")
def test_a_member_of_a_kip_848_group_is_found_by_its_client_id(
    control_plane: ControlPlane, adapter: Adapter, one_broker: Kafka, namespace: str
) -> None:
    group = f"kip848-{namespace}"
    group_with_lags(one_broker, group, [7])
    options = ("--bootstrap-server", one_broker.bootstrap_servers, "--topic", group, "--group", group, *KIP_848)
    properties = ("client.id=$(POD_NAME)-0", "enable.auto.commit=false")
    given = (argument for each in properties for argument in (KIP_848[0], each))
    member = java(CONSUMER, *options, *given, heap_megabytes=64)
    consumers = deployment(namespace, group, member, 1)
    control_plane.apply([autoscaler(namespace, group, 1), consumers])

    wait_for(control_plane, namespace, group, [7])
    wait_until(lambda: explained(control_plane, namespace, group) == ("7", 1, 1), "the explanation", WAIT_SECONDS)
    descriptions, cycles = described_in(adapter, "ConsumerGroupDescribe", cycles=4)
    assert abs(descriptions - cycles) <= 2, "one more in each cycle, whatever a minute brings"
    control_plane.delete([consumers])


@pytest.mark.usefixtures("adapter", "node", "allowed")
def test_a_member_of_a_streams_group_is_found_by_the_address_of_its_pod(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str
) -> None:
    """The node's pods all have this machine's address, and this namespace has one pod."""
    group = f"streams-{namespace}"
    group_with_lags(one_broker, group, [5])
    create_topic(one_broker, f"{group}-internal", 1)
    member = streams_command(one_broker, group, group, f"{group}-internal")
    consumers = deployment(namespace, group, member, 1)
    control_plane.apply([autoscaler(namespace, group, 1), consumers])

    wait_for(control_plane, namespace, group, [5])
    control_plane.delete([consumers])
