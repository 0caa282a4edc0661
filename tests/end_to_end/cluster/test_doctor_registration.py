"""What doctor finds of the APIService on a real kube-apiserver that has none of ours."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from apiservice.api_group import CUSTOM_V1BETA1, CUSTOM_V1BETA2, EXTERNAL, ApiGroup
from apiservice.commands.doctor import checks_of
from apiservice.doctor.check import Category, Check, Outcome
from apiservice.flags import DoctorFlags
from apiservice.tls.issuing import base64_of
from local.adapter import API_SERVICE, external_name
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.processes import free_port, wait_until
from tests.support.checks import broken, examined, of, wait_for
from tests.support.kubernetes.authorities import Authority
from tests.support.kubernetes.other_server import OtherServer

NAME, PLACE = "kafka-lag-adapter", "examined"
HPA_ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:horizontal-pod-autoscaler"
MERGE = "application/merge-patch+json"
SECONDS = 120.0
SETTINGS = {"clusters": [{"name": "main", "bootstrapServers": ["nowhere:9092"]}]}
REGISTERING = {**SETTINGS, "customMetrics": {"register": True}}
"""Custom metrics too."""


def found(plane: ControlPlane, *, pre: bool = False) -> list[Check]:
    flags = DoctorFlags(kubeconfig=plane.admin_kubeconfig, service=f"{PLACE}/{NAME}", pre=pre, category=["kubernetes"])
    return checks_of(flags)


def objects(port: int, authority: Authority) -> list[Manifest]:
    service = {"name": NAME, "namespace": PLACE, "port": port}
    spec = {"group": EXTERNAL.name, "version": EXTERNAL.version, "service": service}
    bundle = base64_of(authority.pem.encode())
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": NAME, "namespace": PLACE},
            "spec": external_name(port),
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": EXTERNAL.api_service},
            "spec": {**spec, "caBundle": bundle, "groupPriorityMinimum": 100, "versionPriority": 100},
        },
    ]


def test_without_an_api_service_the_check_fails_and_before_an_installation_it_passes(plane: ControlPlane) -> None:
    plane.request("DELETE", API_SERVICE)  # that of an earlier test
    wait_until(lambda: plane.request("GET", API_SERVICE)[0] == 404, "no APIService", SECONDS)

    assert broken(found(plane)) == {"KLA402": "there is no APIService, so kube-apiserver serves no external metrics"}
    assert [check.outcome for check in of(found(plane, pre=True), "KLA402")] == [Outcome.OK]


@pytest.mark.usefixtures("somebody_elses")
def test_an_api_service_of_another_server_is_found_with_its_holder(plane: ControlPlane) -> None:
    belongs = "v1beta1.external.metrics.k8s.io belongs to KEDA (Service keda/keda-operator-metrics-apiserver)"

    assert broken(found(plane))["KLA402"].startswith(belongs)
    (before,) = of(found(plane, pre=True), "KLA402")
    assert before.outcome is Outcome.WARNING
    assert before.detail.startswith(belongs)


@pytest.fixture
def custom_of_others(plane: ControlPlane) -> Iterator[None]:
    """The first version of custom metrics as prometheus-adapter has it."""
    spec = {"group": CUSTOM_V1BETA1.name, "version": CUSTOM_V1BETA1.version, "insecureSkipTLSVerify": True}
    service = {"name": "prometheus-adapter", "namespace": "monitoring", "port": 443}
    theirs = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": CUSTOM_V1BETA1.api_service},
        "spec": {**spec, "service": service, "groupPriorityMinimum": 100, "versionPriority": 100},
    }
    plane.apply([theirs])
    yield
    plane.delete([theirs])


@pytest.mark.usefixtures("somebody_elses", "custom_of_others")
def test_custom_metrics_of_another_server_are_found_where_the_settings_register_them(
    plane: ControlPlane, tmp_path: Path
) -> None:
    settings, asks = SETTINGS, REGISTERING
    kubeconfig, service = plane.admin_kubeconfig, f"{PLACE}/{NAME}"

    def holders(settings: object, outcome: Outcome, *, pre: bool = False) -> dict[str, str]:
        found = examined(tmp_path, settings, Category.KUBERNETES, pre=pre, kubeconfig=kubeconfig, service=service)
        checks = of(found, "KLA402")
        return {check.subject: check.detail for check in checks if check.outcome is outcome}

    first, second = CUSTOM_V1BETA1.api_service, CUSTOM_V1BETA2.api_service
    for found in (holders(asks, Outcome.FAILED), holders(asks, Outcome.WARNING, pre=True)):
        assert found[first].startswith(f"{first} belongs to prometheus-adapter (Service monitoring/prometheus-adapter)")
        assert found[second] == f"{second} is not created while others hold {first}"
    (external,) = holders(asks, Outcome.WARNING).items()
    assert external[0] == EXTERNAL.api_service
    assert external[1].startswith(f"{EXTERNAL.api_service} belongs to KEDA")
    assert list(holders(settings, Outcome.FAILED)) == [EXTERNAL.api_service]


def test_an_adapter_that_is_not_reached_and_a_wrong_ca_are_told_apart(plane: ControlPlane, tmp_path: Path) -> None:
    right, wrong, nobody = Authority("serving"), Authority("serving of another cluster"), free_port()
    documents = objects(nobody, right)
    plane.apply(documents)
    try:
        unreached = wait_for(partial(found, plane), lambda broken: "KLA404" in broken, "the port that refuses")
        with OtherServer(tmp_path, right, f"{NAME}.{PLACE}.svc") as server:
            plane.apply(objects(server.port, wrong))
            untrusted = wait_for(partial(found, plane), lambda broken: "KLA403" in broken, "the wrong CA")
    finally:
        plane.delete(documents[::-1])

    assert list(unreached) == ["KLA404"]
    assert "kube-apiserver does not reach this adapter" in unreached["KLA404"]
    assert list(untrusted) == ["KLA403"]
    assert "certificate signed by unknown authority" in untrusted["KLA403"]


@pytest.mark.parametrize("group", [EXTERNAL, CUSTOM_V1BETA2], ids=["external", "custom"])
def test_an_hpa_controller_without_the_right_to_read_is_found(
    plane: ControlPlane, tmp_path: Path, group: ApiGroup
) -> None:
    rules = plane.get(HPA_ROLE)["rules"]
    less = [rule for rule in rules if group.name not in (rule.get("apiGroups") or ())]
    assert less != rules, "the controller's own ClusterRole does not grant it"

    def examine() -> list[Check]:
        kubeconfig, service = plane.admin_kubeconfig, f"{PLACE}/{NAME}"
        return examined(tmp_path, REGISTERING, Category.KUBERNETES, kubeconfig=kubeconfig, service=service)

    plane.ask("PATCH", HPA_ROLE, {"rules": less}, content_type=MERGE)
    try:
        wait_for(examine, lambda broken: "KLA406" in broken, "the right to be gone")
        lacking = {check.subject: check.outcome for check in of(examine(), "KLA406")}
    finally:
        plane.ask("PATCH", HPA_ROLE, {"rules": rules}, content_type=MERGE)
    wait_for(examine, lambda broken: "KLA406" not in broken, "the right to be back")

    assert lacking == {EXTERNAL.name: Outcome.OK, CUSTOM_V1BETA2.name: Outcome.OK, group.name: Outcome.FAILED}
