"""The local control plane and its node stand-in: what every other test with Kubernetes in it builds on."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from local.kubernetes.control_plane import ControlPlane
from local.kubernetes.node import Node
from local.processes import RigError, wait_until

SLEEP = "import time; time.sleep(600)"


def deployment(namespace: str, code: str, *, replicas: int = 1, **container: object) -> dict[str, Any]:
    """Manifest of a Deployment named `consumer` whose pods run Python code."""
    labels = {"app": "consumer"}
    worker = {"name": "worker", "image": "none", "command": [sys.executable, "-c", code], **container}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [worker]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "consumer", "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def ready_replicas(plane: ControlPlane, namespace: str) -> int:
    found = plane.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/consumer")
    return int(found["status"].get("readyReplicas", 0))


def pods(plane: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    return list(plane.get(f"/api/v1/namespaces/{namespace}/pods")["items"])


def container_status(plane: ControlPlane, namespace: str) -> dict[str, Any]:
    """That of the only pod's only container; empty as long as there is none."""
    found = [status for pod in pods(plane, namespace) for status in pod["status"].get("containerStatuses", [])]
    assert len(found) <= 1
    return found[0] if found else {}


def who_am_i(kubeconfig: Path) -> client.V1UserInfo:
    with config.new_client_from_config(str(kubeconfig)) as api:  # type: ignore[no-untyped-call]
        review = client.AuthenticationV1Api(api).create_self_subject_review(client.V1SelfSubjectReview())
    assert review.status is not None
    assert review.status.user_info is not None
    return review.status.user_info


def test_the_control_plane_is_the_pinned_version(control_plane: ControlPlane) -> None:
    status, body = control_plane.raw("/version")

    assert status == 200
    assert json.loads(body)["gitVersion"] == "v1.36.3"


def test_a_deployments_pods_run_as_processes_and_become_ready(
    control_plane: ControlPlane, node: Node, namespace: str
) -> None:
    control_plane.apply([deployment(namespace, SLEEP, replicas=2)])

    wait_until(lambda: ready_replicas(control_plane, namespace) == 2, "two ready pods", 60)
    found = pods(control_plane, namespace)
    assert {f"{pod['metadata']['name']}/worker" for pod in found} == set(node.processes(namespace))
    assert all(pod["status"]["containerStatuses"][0]["ready"] for pod in found)


def test_scaled_to_zero_a_deployment_has_no_process_left(
    control_plane: ControlPlane, node: Node, namespace: str
) -> None:
    control_plane.apply([deployment(namespace, SLEEP, replicas=2)])
    wait_until(lambda: ready_replicas(control_plane, namespace) == 2, "two ready pods", 60)
    processes = list(node.processes(namespace).values())

    control_plane.apply([deployment(namespace, SLEEP, replicas=0)])

    wait_until(lambda: not pods(control_plane, namespace), "the pods to be gone", 60)
    assert [process.status for process in processes] == [-signal.SIGTERM, -signal.SIGTERM]


def test_a_killed_pod_process_is_started_again(control_plane: ControlPlane, node: Node, namespace: str) -> None:
    control_plane.apply([deployment(namespace, SLEEP)])
    wait_until(lambda: ready_replicas(control_plane, namespace) == 1, "a ready pod", 60)
    (killed,) = node.processes(namespace).values()
    os.kill(killed.pid, signal.SIGKILL)

    wait_until(lambda: container_status(control_plane, namespace).get("restartCount") == 1, "a restart", 60)
    (restarted,) = node.processes(namespace).values()
    assert restarted.pid != killed.pid
    assert container_status(control_plane, namespace)["lastState"]["terminated"]["exitCode"] == 128 + signal.SIGKILL


def test_a_pods_environment_arguments_and_output_are_its_own(
    control_plane: ControlPlane, node: Node, namespace: str
) -> None:
    code = f"import os, sys; print(os.environ['TOPIC'], os.environ['POD'], sys.argv[1], flush=True); {SLEEP}"
    pod_name = {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    env = [{"name": "TOPIC", "value": "orders"}, pod_name]
    control_plane.apply([deployment(namespace, code, env=env, args=["--fast"])])
    wait_until(lambda: ready_replicas(control_plane, namespace) == 1, "a ready pod", 60)
    name = pods(control_plane, namespace)[0]["metadata"]["name"]

    log = node.log(namespace, name, "worker")
    wait_until(lambda: log.read_text().endswith("\n"), "a line in the log", 60)
    assert log.read_text() == f"orders {name} --fast\n"


@pytest.mark.usefixtures("node")
def test_a_container_that_only_has_an_image_is_told_why_it_does_not_start(
    control_plane: ControlPlane, namespace: str
) -> None:
    manifest = deployment(namespace, SLEEP)
    del manifest["spec"]["template"]["spec"]["containers"][0]["command"]
    control_plane.apply([manifest])

    wait_until(lambda: container_status(control_plane, namespace) != {}, "a status", 60)
    waiting = container_status(control_plane, namespace)["state"]["waiting"]
    assert "needs a `command`" in waiting["message"]
    assert ready_replicas(control_plane, namespace) == 0


def test_the_hpa_may_scale_to_zero(control_plane: ControlPlane, namespace: str) -> None:
    target = {"type": "AverageValue", "averageValue": "100"}
    metric = {"type": "External", "external": {"metric": {"name": "kafka_consumergroup_lag"}, "target": target}}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "consumer"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "consumer", "namespace": namespace},
        "spec": {"scaleTargetRef": reference, "minReplicas": 0, "maxReplicas": 3, "metrics": [metric]},
    }
    control_plane.apply([autoscaler])

    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/consumer"
    assert control_plane.get(path)["spec"]["minReplicas"] == 0


def test_an_issued_certificate_is_a_user_of_its_name_and_groups(control_plane: ControlPlane) -> None:
    pair = control_plane.issue("auditor", ["readers", "writers"])
    user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}

    me = who_am_i(control_plane.kubeconfig("auditor", user))
    assert me.username == "auditor"
    assert set(me.groups or []) == {"readers", "writers", "system:authenticated"}


def test_a_certificate_of_the_front_proxys_authority_is_no_user(control_plane: ControlPlane) -> None:
    pair = control_plane.front_proxy
    user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}

    with pytest.raises(client.ApiException, match="Unauthorized"):
        who_am_i(control_plane.kubeconfig("front-proxy", user))


def test_a_service_accounts_kubeconfig_acts_as_that_account(control_plane: ControlPlane, namespace: str) -> None:
    metadata = {"name": "adapter", "namespace": namespace}
    control_plane.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}])

    me = who_am_i(control_plane.kubeconfig_for_service_account(namespace, "adapter"))
    assert me.username == f"system:serviceaccount:{namespace}:adapter"


def test_a_refused_manifest_is_an_error_with_the_apiservers_words(control_plane: ControlPlane, namespace: str) -> None:
    manifest = deployment(namespace, SLEEP, replicas=-1)

    with pytest.raises(RigError, match="must be greater than or equal to 0"):
        control_plane.apply([manifest])
