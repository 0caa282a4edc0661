"""A release of the chart on a real kube-apiserver: `helm test`, a change of its certificate while HPAs read, what stays
when it goes, and another chart that wants the APIService as well.
"""

import datetime
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from apiservice.tls.issuing import serving_manifests
from local.adapter import API_SERVICE, EXTERNAL_METRICS, Adapter
from local.downloads import command_line_tools
from local.kafka.broker import Kafka
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.kubernetes.node import Node
from local.manifests import rendered
from local.manifests.check import MANIFESTS
from local.manifests.shipped import NAME
from local.processes import RigError, wait_until
from tests.end_to_end.cluster.test_chart import VALUES
from tests.support.real.applied import MERGE, pod_of

PLACE = "released"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{PLACE}/deployments/{NAME}"
SERVICE = f"/api/v1/namespaces/{PLACE}/services/{NAME}"
CLAIM = f"/api/v1/namespaces/{PLACE}/persistentvolumeclaims/{NAME}-history"
UPGRADE = ("upgrade", "--install", NAME, str(MANIFESTS), "--namespace", PLACE, "--create-namespace")
CERT_MANAGER = (*UPGRADE, "--reuse-values", "--set", "tls.certManager.enabled=true")


@pytest.fixture
def released(plane: ControlPlane, guarded: Kafka, tmp_path: Path) -> Iterator[None]:
    """A release with one running pod, which has registered itself."""
    values = tmp_path / "values.yaml"
    servers = guarded.bootstrap_servers.split(",")
    values.write_text(yaml.safe_dump({"clusters": [{"name": "main", "bootstrapServers": servers}]}))
    helm(plane, *UPGRADE, f"--values={values}")
    with pod_of(plane, tmp_path / "pod", PLACE, NAME) as adapter:
        wait_until(lambda: reads(plane), "a read", 180, alive=[adapter.process])
        give_back_service(plane)
        yield
        helm(plane, "uninstall", NAME, "--namespace", PLACE)
    wait_until(lambda: plane.raw(API_SERVICE)[0] == 404, "the APIService to be deleted", 180)


def helm(plane: ControlPlane, *arguments: str) -> str:
    return rendered.run("helm", *arguments, env={"KUBECONFIG": str(plane.admin_kubeconfig)})


def reads(plane: ControlPlane) -> bool:
    return plane.raw(EXTERNAL_METRICS)[0] == 200


def arguments_of(plane: ControlPlane) -> list[str]:
    found: list[str] = plane.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


def run_commands_of_the_notes(plane: ControlPlane) -> None:
    """Runs the commands that change something."""
    notes = helm(plane, "get", "notes", NAME, "--namespace", PLACE)
    changing = ("  CA=", "  kubectl patch", "  kubectl --namespace")
    commands = [line for line in notes.splitlines() if line.startswith(changing)]
    environment = {"PATH": f"{command_line_tools()}:/usr/bin:/bin", "KUBECONFIG": str(plane.admin_kubeconfig)}
    ended = subprocess.run(
        ["bash", "-ec", "\n".join(commands)],
        env={**environment, "HOME": str(plane.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert commands


def issue_certificate(plane: ControlPlane) -> None:
    """What cert-manager does for the Certificate."""
    secret, api_service = yaml.safe_load_all(serving_manifests(PLACE, NAME, 1, datetime.datetime.now(datetime.UTC)))
    secret["data"]["ca.crt"] = api_service["spec"]["caBundle"]
    plane.apply([secret])


def give_back_service(plane: ControlPlane) -> None:
    """Gives the Service the chart's ports again, so that Helm can write it. kube-apiserver goes by the APIService's."""
    ports = [{"name": "https", "port": 443, "targetPort": "https"}]
    plane.ask("PATCH", SERVICE, {"spec": {"ports": ports}}, content_type=MERGE)


def lead_to(plane: ControlPlane, adapter: Adapter) -> None:
    plane.ask("PATCH", API_SERVICE, {"spec": {"service": {"port": adapter.port}}}, content_type=MERGE)


@pytest.mark.usefixtures("adapter")
def test_helm_test_reads_discovery_through_the_aggregator(
    control_plane: ControlPlane, node: Node, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pod's command runs as a process of this machine, with a token of the release's account."""
    helm(control_plane, "install", "tested", str(MANIFESTS), "--namespace", namespace)
    account = control_plane.kubeconfig_for_service_account(namespace, f"tested-{NAME}")
    monkeypatch.setenv("KUBECONFIG", str(account))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")

    assert "Succeeded" in helm(control_plane, "test", "tested", "--namespace", namespace)
    log = node.log(namespace, f"tested-{NAME}-discovery", "discovery")
    assert "kafka_consumergroup_lag" in log.read_text()
    helm(control_plane, "uninstall", "tested", "--namespace", namespace)


def test_the_command_of_helm_test_fails_where_nobody_serves(plane: ControlPlane) -> None:
    """kube-apiserver forgets the APIService of an earlier test a moment after it is gone."""
    wait_until(lambda: plane.raw(EXTERNAL_METRICS)[0] == 404, "nobody to serve", 180)
    (pod,) = [each for each in rendered.chart() if each["kind"] == "Pod"]
    _, *flags, script = pod["spec"]["containers"][0]["command"]

    ended = subprocess.run(
        [sys.executable, *flags, script.replace("range(30)", "range(1)")],
        env={"KUBECONFIG": str(plane.admin_kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "404" in ended.stderr


@pytest.mark.usefixtures("released")
def test_a_running_release_changes_to_another_certificate_and_reads_succeed_at_each_step(
    plane: ControlPlane, tmp_path: Path
) -> None:
    helm(plane, *CERT_MANAGER)
    assert reads(plane)
    assert not any(each.startswith("--tls-cert-file") for each in arguments_of(plane))
    with pytest.raises(RigError, match="does not trust the new serving certificate yet"):
        helm(plane, *CERT_MANAGER, "--set", "apiService.create=true", "--take-ownership")

    issue_certificate(plane)
    helm(plane, *CERT_MANAGER)
    assert not any(each.startswith("--tls-cert-file") for each in arguments_of(plane))
    run_commands_of_the_notes(plane)
    assert reads(plane)
    helm(plane, *CERT_MANAGER)
    assert "--tls-cert-file=/etc/kafka-lag-adapter/tls/tls.crt" in arguments_of(plane)
    assert reads(plane)

    with pod_of(plane, tmp_path / "changed", PLACE, NAME) as changed:
        lead_to(plane, changed)
        assert reads(plane)
        give_back_service(plane)
        helm(plane, *CERT_MANAGER, "--set", "apiService.create=true", "--take-ownership", "--force-conflicts")
        lead_to(plane, changed)
        wait_until(lambda: reads(plane), "a read at this machine's port", 180, alive=[changed.process])


def test_the_claim_of_the_history_stays_when_the_release_goes(plane: ControlPlane) -> None:
    install = (*UPGRADE, f"--values={VALUES['volume']}")
    helm(plane, *install)
    uid = plane.get(CLAIM)["metadata"]["uid"]
    helm(plane, "uninstall", NAME, "--namespace", PLACE)
    helm(plane, *install)

    assert plane.get(CLAIM)["metadata"]["uid"] == uid
    run_commands_of_the_notes(plane)
    assert plane.raw(CLAIM)[0] == 404
    helm(plane, "uninstall", NAME, "--namespace", PLACE)


def test_helm_refuses_another_chart_with_the_api_service_and_changes_nothing(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """As KEDA's chart is, after the adapter has registered itself."""
    held = api_service({"namespace": PLACE, "name": NAME, "port": 443})
    plane.apply([{**held, "metadata": {**held["metadata"], "labels": {"app.kubernetes.io/managed-by": NAME}}}])
    before = plane.get(API_SERVICE)["spec"]
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: keda, version: 1.0.0}")
    theirs = api_service({"namespace": "keda", "name": "keda-operator-metrics-apiserver", "port": 443})
    (tmp_path / "templates" / "api-service.yaml").write_text(yaml.safe_dump(theirs))

    with pytest.raises(RigError, match="cannot be imported into the current release"):
        helm(plane, "install", "keda", str(tmp_path), "--namespace", "keda", "--create-namespace")
    assert plane.get(API_SERVICE)["spec"] == before
    plane.delete([held])


def api_service(service: dict[str, object]) -> Manifest:
    spec = {"group": "external.metrics.k8s.io", "version": "v1beta1", "service": service, "insecureSkipTLSVerify": True}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
        "spec": {**spec, "groupPriorityMinimum": 100, "versionPriority": 100},
    }
