"""Whoever writes only a promise about waiting, and copies the example of an HPA, gets the replicas that keep it."""

import json
import math
import time
from pathlib import Path

import pytest

from local.adapter import Adapter
from local.kafka.broker import Kafka
from local.kubernetes.control_plane import ControlPlane
from local.processes import wait_until
from tests.support.real import promised_group
from tests.support.real.groups_to_read import LAG, path
from tests.support.real.promised_group import GROUP, MAX_WAIT_SECONDS, ON_CPU, PARTITIONS, RATE

PLACE = "promise"
SECONDS = 180.0
STEADY_SECONDS = 8.0


def replicas(plane: ControlPlane) -> int:
    deployment = plane.get(f"/apis/apps/v1/namespaces/{PLACE}/deployments/{GROUP}")
    return int(deployment["status"].get("readyReplicas", 0))


def required(plane: ControlPlane) -> tuple[str, str] | None:
    """What kube-apiserver serves, and what it follows from; None: it is refused."""
    status, body = plane.raw(path(PLACE, "kafka_consumergroup_required_replicas", f"group%3D{GROUP}"))
    if status != 200:
        return None
    (item,) = json.loads(body)["items"]
    return item["value"], item["metricLabels"]["basis"]


def lag(plane: ControlPlane) -> float:
    """As kube-apiserver serves it; infinite while it is refused."""
    status, body = plane.raw(path(PLACE, LAG, f"group%3D{GROUP}"))
    return sum(int(item["value"]) for item in json.loads(body)["items"]) if status == 200 else math.inf


def as_object_metric(plane: ControlPlane) -> str | None:
    """The same as a custom metric of some object; None: it is refused."""
    place = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{PLACE}/services/any"
    status, body = plane.raw(f"{place}/kafka_consumergroup_required_replicas?metricLabelSelector=group%3D{GROUP}")
    return str(json.loads(body)["items"][0]["value"]) if status == 200 else None


def is_required_everywhere(plane: ControlPlane) -> bool:
    """At the same time: both follow the rates of the last minute, which a busy machine makes uneven."""
    served = required(plane)
    return served is not None and served[0] == as_object_metric(plane) == str(PARTITIONS)


def is_kept(waits: Path) -> bool:
    """For all messages of the next seconds. A machine that holds a consumer up for long breaks every promise."""
    began = time.time()
    wait_until(lambda: bool(promised_group.waits(waits, began)), "messages that came since", SECONDS)
    wait_until(lambda: time.time() > began + STEADY_SECONDS, "some seconds of them", SECONDS)
    waited = promised_group.waits(waits, began)
    return len(waited) > STEADY_SECONDS and max(waited) < MAX_WAIT_SECONDS


def shadow(adapter: Adapter) -> str:
    """The replicas that the HPA on CPU would have, as the adapter's own metrics show them."""
    series = f'shadow_replicas{{horizontalpodautoscaler="{ON_CPU}",namespace="{PLACE}",source="required"}} '
    lines = adapter.get_plain("/metrics")[1].decode().splitlines()
    return next((line.rpartition(" ")[2] for line in lines if series in line), "")


@pytest.mark.usefixtures("node")
def test_who_writes_only_a_promise_and_copies_the_example_gets_the_replicas_that_keep_it(
    control_plane: ControlPlane, one_broker: Kafka, adapter: Adapter, tmp_path: Path
) -> None:
    assert adapter.is_live()
    wait_until(lambda: required(control_plane) == ("0", "idle"), "the rates of a topic at rest", SECONDS)
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}
    control_plane.apply([place, promised_group.deployment(one_broker, PLACE, tmp_path)])
    wait_until(lambda: replicas(control_plane) == 1, "the first consumer", SECONDS)
    control_plane.apply([promised_group.example_hpa(PLACE), promised_group.hpa_on_cpu(PLACE)])
    wait_until(lambda: replicas(control_plane) == 0, "no consumer while nothing arrives", SECONDS)

    with promised_group.load(one_broker):
        wait_until(lambda: replicas(control_plane) == PARTITIONS, "a consumer for each partition", SECONDS)
        wait_until(lambda: is_required_everywhere(control_plane), "the same number by both APIs", SECONDS)
        wait_until(lambda: shadow(adapter) == f"{PARTITIONS}.0", "the same number in a shadow", SECONDS)
        # What came before the consumers were there is read before what comes since.
        wait_until(lambda: lag(control_plane) < MAX_WAIT_SECONDS * RATE / 2, "the backlog of before", SECONDS)
        wait_until(lambda: is_kept(tmp_path), "some seconds in which the promise is kept", SECONDS)
        # By uneven rates, fewer may be required for a moment.
        wait_until(lambda: replicas(control_plane) == PARTITIONS, "the same consumers", SECONDS)

    control_plane.delete([place])
