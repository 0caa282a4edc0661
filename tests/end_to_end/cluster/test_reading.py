"""The served numbers, read as people and programs read them: through kube-apiserver."""

import json
import shutil
import subprocess
from typing import Any

import pytest
from kubernetes import client, config
from kubernetes.utils.quantity import parse_quantity

from local.adapter import EXTERNAL_METRICS, NAMESPACE, Adapter, is_available
from local.kafka.broker import Kafka
from local.kafka.tools import Described, described_groups
from local.kubernetes.control_plane import ControlPlane
from local.manifests.check import MANIFESTS, load
from local.processes import wait_until
from tests.support.real.groups_to_read import COMMITS, IDLE_GROUP, LAG, UNLABELLED_GROUP, UNLABELLED_METRIC, path

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
SERVED = {
    LAG,
    "kafka_consumergroup_records_lag_max",
    "kafka_consumergroup_lead_min",
    "kafka_consumergroup_uncommitted_partitions",
    "kafka_consumergroup_replicas",
    "kafka_consumergroup_required_replicas",
    "kafka_consumergroup_required_replicas_forecast",
    "kafka_consumergroup_capacity",
    "kafka_consumergroup_lag_seconds",
    "kafka_consumergroup_production_rate",
    "kafka_consumergroup_consumption_rate",
    "kafka_consumergroup_members",
    "kafka_consumergroup_seconds_to_data_loss",
    "records-lag-max",
    "kafka_consumer_fetch_manager_records_lag_max",
    UNLABELLED_METRIC,
}

Table = dict[str, dict[tuple[str, int], Described]]

pytestmark = pytest.mark.usefixtures("adapter")


@pytest.fixture(scope="module")
def described(one_broker: Kafka) -> Table:
    """Group -> (topic, partition) -> what Kafka's own command prints; nothing moves while these tests run."""
    return described_groups(one_broker)


def values(plane: ControlPlane, metric: str, selector: str = "") -> list[tuple[dict[str, str], int]]:
    """Labels and value of every item that kube-apiserver serves."""
    status, body = plane.raw(path("default", metric, selector))
    assert status == 200, body
    return [(item["metricLabels"], number(item["value"])) for item in json.loads(body)["items"]]


def number(quantity: str) -> int:
    return int(parse_quantity(quantity))  # type: ignore[no-untyped-call]  # the client has no types here


def test_every_partitions_lag_is_what_kafkas_own_command_says(control_plane: ControlPlane, described: Table) -> None:
    expected = {
        (group, topic, partition): described[group][topic, partition].lag
        for group, offsets in COMMITS.items()
        for topic, partition in offsets
    }
    assert sum(lag or 0 for lag in expected.values()) > 16_000

    served = {
        (group, topic, partition): values(
            control_plane, LAG, f"group%3D{group},topic%3D{topic},partition%3D{partition}"
        )[0][1]
        for group, topic, partition in expected
    }
    assert served == expected


def test_a_topics_lag_is_the_sum_that_kafkas_own_command_gives(control_plane: ControlPlane, described: Table) -> None:
    expected = {
        name: sum(partition.lag or 0 for (topic, _), partition in described["ledger"].items() if topic == name)
        for name in ("read-orders", "read-invoices")
    }

    served = values(control_plane, LAG, "group%3Dledger")
    assert {labels["topic"]: value for labels, value in served} == expected


def test_a_group_whose_name_is_no_label_has_its_own_metric(control_plane: ControlPlane, described: Table) -> None:
    ((labels, value),) = values(control_plane, UNLABELLED_METRIC)
    assert value == sum(partition.lag or 0 for partition in described[UNLABELLED_GROUP].values()) == 100
    assert labels["topic"] == "read-invoices"


def test_the_kubernetes_client_reads_a_metric(control_plane: ControlPlane) -> None:
    with config.new_client_from_config(str(control_plane.admin_kubeconfig)) as api:  # type: ignore[no-untyped-call]
        found: Any = client.CustomObjectsApi(api).list_namespaced_custom_object(
            "external.metrics.k8s.io", "v1beta1", "default", LAG, label_selector="group=mail"
        )

    assert found["kind"] == "ExternalMetricValueList"
    assert [(item["metricName"], item["value"]) for item in found["items"]] == [(LAG, "2")]


def test_the_age_of_what_waits_is_served_of_a_group_that_has_read_all(control_plane: ControlPlane) -> None:
    ((labels, value),) = values(control_plane, "kafka_consumergroup_lag_seconds", f"group%3D{IDLE_GROUP}")

    assert (labels["bound"], value) == ("exact", 0)


def test_an_age_that_is_only_a_lower_bound_is_refused_unless_the_selector_asks_for_it(
    control_plane: ControlPlane,
) -> None:
    metric = "kafka_consumergroup_lag_seconds"
    status, body = control_plane.raw(path("default", metric, "group%3Dmail"))
    ((labels, value),) = values(control_plane, metric, "group%3Dmail,bound%3Dlower")

    assert status == 503
    assert [cause["reason"] for cause in json.loads(body)["details"]["causes"]] == ["LowerBound"]
    assert labels["bound"] == "lower"
    assert 0 <= value < 24 * 3600  # since the shared adapter began to follow the group


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH")
def test_kubectl_reads_a_metric(control_plane: ControlPlane) -> None:
    command = ["kubectl", "--kubeconfig", str(control_plane.admin_kubeconfig), "get", "--raw"]
    ended = subprocess.run(
        [*command, path("default", LAG, "group%3Dmail")], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert [item["value"] for item in json.loads(ended.stdout)["items"]] == ["2"]


def test_discovery_names_the_metrics(control_plane: ControlPlane) -> None:
    found = control_plane.get(EXTERNAL_METRICS)

    assert found["kind"] == "APIResourceList"
    assert {resource["name"] for resource in found["resources"]} == SERVED


def test_kube_apiservers_aggregated_discovery_names_the_metrics(control_plane: ControlPlane) -> None:
    def names() -> set[str]:
        groups = control_plane.ask("GET", "/apis", headers={"Accept": AGGREGATED})["items"]
        versions = [v for g in groups if g["metadata"]["name"] == "external.metrics.k8s.io" for v in g["versions"]]
        # kube-apiserver asks again after a while if it had no answer in time.
        current = [version for version in versions if version.get("freshness", "Current") == "Current"]
        return {resource["resource"] for version in current for resource in version["resources"]}

    wait_until(lambda: names() == SERVED, "kube-apiserver to have asked for our discovery", 180)


def test_an_unknown_group_is_a_status_with_kubernetes_words(control_plane: ControlPlane) -> None:
    status, body = control_plane.raw(path("default", LAG, "group%3Dledgre"))

    assert status == 404
    assert json.loads(body)["kind"] == "Status"
    assert "'ledgre'" in json.loads(body)["message"]
    assert "ledger" in json.loads(body)["message"]


@pytest.mark.parametrize("query", ["limit=x", "limit=", "limit=x&timeoutSeconds=1.5", f"timeoutSeconds={2**63}"])
def test_a_number_that_is_none_is_refused_as_by_kube_apiserver(control_plane: ControlPlane, query: str) -> None:
    theirs, ours = (control_plane.raw(f"{where}?{query}") for where in ("/api/v1/namespaces", path("default", LAG)))

    assert (ours[0], json.loads(ours[1])) == (theirs[0], json.loads(theirs[1]))


def test_kube_apiserver_takes_the_shipped_manifests_as_they_are(control_plane: ControlPlane) -> None:
    """Those that a machine without pods needs otherwise, tried without effect; the others are in force unchanged."""
    changed = [document for document in load() if document["kind"] in {"Deployment", "Service"}]
    assert len(changed) == 3
    for document in changed:
        untried = {**document, "metadata": {**document["metadata"], "name": "tried"}}
        collection = control_plane.path_of(untried).rpartition("/")[0]
        answer = control_plane.ask("POST", f"{collection}?dryRun=All&fieldValidation=Strict", untried)
        assert answer["metadata"]["name"] == "tried"


def test_the_shipped_pod_is_admitted_to_its_restricted_namespace(control_plane: ControlPlane) -> None:
    (deployment,) = [document for document in load() if document["kind"] == "Deployment"]
    template = deployment["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": "tried"}}
    where = f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All"
    assert control_plane.ask("POST", where, {**pod, "spec": template["spec"]})["metadata"]["name"] == "tried"

    container = {**template["spec"]["containers"][0], "securityContext": {}}
    status, body = control_plane.request(
        "POST", where, {**pod, "spec": {**template["spec"], "containers": [container]}}
    )
    assert (status, b"violates PodSecurity" in body) == (403, True)


def test_kube_apiserver_takes_the_reports_manifests_and_admits_its_pod(control_plane: ControlPlane) -> None:
    documents = load(MANIFESTS / "report")
    assert [document["kind"] for document in documents] == ["PersistentVolumeClaim", "CronJob"]
    template = documents[1]["spec"]["jobTemplate"]["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": NAMESPACE}, "spec": template["spec"]}
    for document in (*documents, pod):
        untried = {**document, "metadata": {**document["metadata"], "name": "tried"}}
        collection = control_plane.path_of(untried).rpartition("/")[0]
        answer = control_plane.ask("POST", f"{collection}?dryRun=All&fieldValidation=Strict", untried)
        assert answer["metadata"]["name"] == "tried"


def test_the_adapter_may_not_do_more_than_its_manifests_say(control_plane: ControlPlane, adapter: Adapter) -> None:
    """Its kubeconfig is that of its own ServiceAccount: it works, and it cannot read Secrets."""
    kubeconfig = control_plane.kubeconfig_for_service_account(NAMESPACE, "kafka-lag-adapter")
    with config.new_client_from_config(str(kubeconfig)) as api:  # type: ignore[no-untyped-call]
        with pytest.raises(client.ApiException) as refused:
            client.CoreV1Api(api).list_namespaced_secret("kube-system")
        assert refused.value.status == 403

    assert adapter.process.is_running()
    wait_until(lambda: is_available(control_plane), "the adapter to be available", 180)
