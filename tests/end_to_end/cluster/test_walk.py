"""The way of docs/install.md on real parts: a broker with TLS, SCRAM and an authorizer, and an APIService that somebody
else holds. The adapter runs from what was applied: arguments, ConfigMap, Secrets and ServiceAccount.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from local.adapter import API_SERVICE, EXTERNAL_METRICS, Adapter, items
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.manifests import rendered
from local.manifests.check import MANIFESTS
from local.manifests.shipped import NAME
from local.processes import wait_until
from tests.end_to_end.cluster.test_chart import VALUES
from tests.support.real.applied import Runner, as_process, hand_over, pod_of, remark_of
from tests.support.real.guarded import DOCUMENTED_PASSWORD

HELD = "belongs to KEDA (Service keda/keda-operator-metrics-apiserver)"
READ = f"{EXTERNAL_METRICS}/namespaces/default/kafka_consumergroup_lag?labelSelector=cluster%3Darchive%2Cgroup%3Dwalked"
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required username="


@pytest.fixture
def runner() -> Runner:
    """tests/images has another one."""
    return as_process


@pytest.fixture(scope="module")
def walked(documented: Kafka) -> Kafka:
    """A group with a lag of 6."""
    create_topic(documented, "walked")
    produce(documented, "walked", 10)
    commit(documented, "walked", {("walked", 0): 4})
    return documented


@pytest.fixture
def hpa(plane: ControlPlane) -> Iterator[str]:
    """The path of an HPA on the group's lag, whose Deployment has one pod."""
    metadata = {"name": "walked", "namespace": "default"}
    pod = {"metadata": {"labels": {"app": "walked"}}, "spec": {"containers": [{"name": "any", "image": "any"}]}}
    metric = {"name": "kafka_consumergroup_lag", "selector": {"matchLabels": {"cluster": "main", "group": "walked"}}}
    target = {"type": "AverageValue", "averageValue": "1000"}
    documents = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "walked"}}, "template": pod},
        },
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": metadata,
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "walked"},
                "maxReplicas": 2,
                "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
            },
        },
    ]
    plane.apply(documents)
    yield plane.path_of(documents[1])
    plane.delete(documents)


def secrets(cluster: Kafka, namespace: str) -> list[Manifest]:
    """One for the cluster main, and two as Strimzi makes them for the cluster archive; their user is the page's."""
    assert cluster.security is not None
    authority = cluster.security.ca_file.read_text()
    contents = {
        "main-user": {"password": DOCUMENTED_PASSWORD, "ca.crt": authority},
        "archive-user": {
            "password": DOCUMENTED_PASSWORD,
            "sasl.jaas.config": f'{JAAS}"lag" password="{DOCUMENTED_PASSWORD}";',
            "ca.crt": "of the clients",
        },
        "archive-cluster-ca-cert": {"ca.crt": authority},
    }
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "stringData": data}
        for name, data in contents.items()
    ]


def with_settings_of(cluster: Kafka, text: str) -> str:
    """The shipped example with this broker's address, and short cycles."""
    assert cluster.security is not None
    settings = yaml.safe_load(text)
    for each in settings["clusters"]:
        each["bootstrapServers"] = cluster.security.bootstrap_servers.split(",")
    return yaml.safe_dump({**settings, "collection": {"interval": "1s"}, "rules": []})


def prepare(plane: ControlPlane, cluster: Kafka, namespace: str) -> None:
    plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}])
    plane.apply(secrets(cluster, namespace))


def wait_for_value(plane: ControlPlane, hpa: str, adapter: Adapter) -> None:
    """Until the HPA has read its metric from the cluster main, and kube-apiserver one from the other cluster."""

    def has_value() -> bool:
        found = plane.get(hpa)["status"].get("currentMetrics") or [{}]
        return bool(found[0].get("external", {}).get("current", {}).get("averageValue") == "6")

    def is_other_served() -> bool:
        status, body = plane.raw(READ)
        return status == 200 and [item["value"] for item in items(body)] == ["6"]

    wait_until(has_value, "the HPA to read its metric", 180, alive=[adapter.process])
    wait_until(is_other_served, "the other cluster's value", 180, alive=[adapter.process])


def wait_until_removed(plane: ControlPlane, namespace: str) -> None:
    """No APIService is left that would block the deletion of the namespace."""
    wait_until(lambda: plane.raw(API_SERVICE)[0] == 404, "the APIService to be deleted", 180)
    path = f"/api/v1/namespaces/{namespace}"
    plane.request("DELETE", path)
    wait_until(lambda: plane.raw(path)[0] == 404, "the namespace to be deleted", 180)
    left = "clusterroles,clusterrolebindings,rolebindings"
    selector = "app.kubernetes.io/name=kafka-lag-adapter"
    assert kubectl(plane, "get", left, "--all-namespaces", "--selector", selector, "--output", "name") == ""


def kubectl(plane: ControlPlane, *arguments: str) -> str:
    return rendered.run("kubectl", *arguments, env={"KUBECONFIG": str(plane.admin_kubeconfig)})


def helm(plane: ControlPlane, *arguments: str) -> str:
    return rendered.run("helm", *arguments, env={"KUBECONFIG": str(plane.admin_kubeconfig)})


def test_with_helm_beside_another_server_and_then_in_its_place(
    plane: ControlPlane, walked: Kafka, hpa: str, somebody_elses: Manifest, runner: Runner, tmp_path: Path
) -> None:
    example = VALUES["secret-for-each-cluster"].read_text()
    secrets_of_values = {"existingSecrets": yaml.safe_load(example)["existingSecrets"]}
    values = tmp_path / "values.yaml"
    values.write_text(with_settings_of(walked, example) + yaml.safe_dump(secrets_of_values))
    prepare(plane, walked, NAME)
    helm(plane, "upgrade", "--install", NAME, str(MANIFESTS), "--namespace", NAME, "--values", str(values))

    with pod_of(plane, tmp_path / "pod", NAME, NAME, runner) as adapter:
        wait_until(lambda: HELD in remark_of(adapter), "the other server to be reported", 180, alive=[adapter.process])
        assert plane.get(API_SERVICE)["spec"] == somebody_elses
        hand_over(plane, NAME, adapter.port)
        wait_until(lambda: not remark_of(adapter), "the APIService to be this adapter's", 180, alive=[adapter.process])
        wait_for_value(plane, hpa, adapter)
        helm(plane, "uninstall", NAME, "--namespace", NAME)
    wait_until_removed(plane, NAME)


def test_with_kustomize_in_another_namespace_once_the_other_server_is_gone(
    plane: ControlPlane, walked: Kafka, hpa: str, somebody_elses: Manifest, tmp_path: Path
) -> None:
    manifests = Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))
    settings = manifests / "several-clusters" / "settings.yaml"
    settings.write_text(with_settings_of(walked, settings.read_text()))
    overlay = manifests / "another-namespace"
    with (overlay / "kustomization.yaml").open("a") as file:
        file.write("components: [../several-clusters]\n")
    prepare(plane, walked, "lag")
    kubectl(plane, "apply", "-k", str(overlay))

    with pod_of(plane, tmp_path / "pod", "lag", NAME) as adapter:
        wait_until(lambda: HELD in remark_of(adapter), "the other server to be reported", 180, alive=[adapter.process])
        assert plane.get(API_SERVICE)["spec"] == somebody_elses
        plane.request("DELETE", API_SERVICE)
        wait_until(lambda: not remark_of(adapter), "the adapter to register itself", 180, alive=[adapter.process])
        wait_for_value(plane, hpa, adapter)
        kubectl(plane, "delete", "-k", str(overlay))
    wait_until_removed(plane, "lag")
