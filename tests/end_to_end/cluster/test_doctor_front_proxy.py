"""What doctor finds where a real adapter cannot recognise kube-apiserver's front proxy, or trusts another one."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from apiservice.commands.doctor import checks_of
from apiservice.doctor.check import Check
from apiservice.flags import DoctorFlags
from local.adapter import NAMESPACE, Adapter, new_serving, own_kubeconfig, process, shipped
from local.certificates import new_authority
from local.kafka.broker import Kafka
from local.kubernetes.control_plane import FRONT_PROXY, ControlPlane, Manifest
from local.kubernetes.control_plane import control_plane as running_control_plane
from local.processes import free_port, wait_until
from tests.support.checks import of, wait_for

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
HERE = "0.0.0.0"
"""No pod's address: kube-apiserver refuses to be a proxy to those of loopback, so the pod itself is not asked."""
POD = "adapter-0"
MERGE = "application/merge-patch+json"
SECONDS = 120.0
CA = "requestheader-client-ca-file"


@dataclass(frozen=True, slots=True)
class Stage:
    plane: ControlPlane
    adapter: Adapter


@pytest.fixture(scope="module")
def stage(rig_home: Path, one_broker: Kafka) -> Iterator[Stage]:
    """An adapter beside a kube-apiserver that publishes no CA of its front proxy, although it has one."""
    settings = {"clusters": [{"name": "main", "bootstrapServers": one_broker.bootstrap_servers.split(",")}]}
    home, port = rig_home / "no-front-proxy", free_port()
    with running_control_plane(home, names_front_proxy=False) as plane:
        own, serving = own_kubeconfig(plane), new_serving(home / "adapter")
        with process(home / "adapter", settings, own, serving=serving, port=port) as adapter:
            plane.apply([*map(selecting, shipped(port, serving.ca_bundle)), pod(port)])
            say_ready(plane, "False")
            yield Stage(plane, adapter)


def selecting(document: Manifest) -> Manifest:
    """The Service with the selector that it has in the manifests, which an ExternalName does not follow."""
    if (document["kind"], document["metadata"]["name"]) != ("Service", NAMESPACE):
        return document
    return {**document, "spec": {**document["spec"], "selector": template()["metadata"]["labels"]}}


def template() -> Manifest:
    """The pods of the shipped Deployment."""
    (deployment,) = (each for each in shipped(0, "") if each["kind"] == "Deployment")
    found: Manifest = deployment["spec"]["template"]
    return found


def pod(port: int) -> Manifest:
    """A pod as it is shipped, but for the port; the process runs in its place."""
    spec = template()["spec"]
    (container,) = spec["containers"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD, "namespace": NAMESPACE, "labels": template()["metadata"]["labels"]},
        "spec": {**spec, "containers": [{**container, "ports": [{"name": "https", "containerPort": port}]}]},
    }


def say_ready(plane: ControlPlane, status: str) -> None:
    """Writes what kubelet would write of the pod."""
    conditions = [{"type": "Ready", "status": status}]
    state = {"phase": "Running", "podIP": HERE, "podIPs": [{"ip": HERE}], "conditions": conditions}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{POD}/status"
    plane.ask("PATCH", path, {"status": state}, content_type=MERGE)


def found(stage: Stage) -> list[Check]:
    return checks_of(DoctorFlags(kubeconfig=stage.plane.admin_kubeconfig, category=["kubernetes"]))


def publish(plane: ControlPlane, authority: Path) -> None:
    """Writes the CA as kube-apiserver writes its own."""
    data = {
        CA: authority.read_text(),
        "requestheader-allowed-names": json.dumps([FRONT_PROXY]),
        "requestheader-username-headers": json.dumps(["X-Remote-User"]),
        "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
        "requestheader-extra-headers-prefix": json.dumps(["X-Remote-Extra-"]),
    }
    plane.ask("PATCH", CONFIG_MAP, {"data": data}, content_type=MERGE)


def test_a_front_proxy_without_a_published_ca_is_found(stage: Stage) -> None:
    missing = f"{CA} is missing, so no front proxy can be recognised"
    stage.plane.ask("PATCH", CONFIG_MAP, {"data": {CA: None}}, content_type=MERGE)  # that of another test
    say_ready(stage.plane, "False")
    lacking = wait_for(partial(found, stage), lambda broken: "KLA409" in broken, "the pod to be not ready")

    assert lacking["KLA405"] == missing
    (check,) = of(found(stage), "KLA409")
    assert check.subject == f"pod {POD}"
    assert check.detail.startswith("it is not ready")


def test_a_front_proxy_of_another_ca_than_the_adapter_trusts_is_found(stage: Stage, tmp_path: Path) -> None:
    publish(stage.plane, new_authority(tmp_path / "other", "another front proxy").pair.certificate)
    wait_until(stage.adapter.is_ready, "the adapter to trust the other CA", SECONDS)
    say_ready(stage.plane, "True")

    lacking = wait_for(partial(found, stage), lambda broken: {*broken} == {"KLA405"}, "kube-apiserver to be refused")

    assert lacking["KLA405"].startswith("the adapter does not accept the front proxy's certificate: ")


def test_with_the_right_ca_all_is_well(stage: Stage) -> None:
    publish(stage.plane, stage.plane.front_proxy_ca)
    say_ready(stage.plane, "True")

    wait_for(partial(found, stage), lambda broken: not broken, "kube-apiserver to be let in")


def test_a_service_that_selects_no_pod_is_found(stage: Stage) -> None:
    only = pod(stage.adapter.port)
    said = "there is no pod that it selects"
    stage.plane.delete([only])
    try:
        wait_for(partial(found, stage), lambda broken: broken.get("KLA409") == said, "the pod to be gone")
    finally:
        stage.plane.apply([only])
