"""Object metrics through a real kube-apiserver, and the HPA controller that scales by them."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apiservice.api_group import CUSTOM
from local.kafka.broker import Kafka
from local.kafka.tools import commit, produce
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.processes import wait_until
from tests.end_to_end.cluster.conftest import definition, serves
from tests.support.real.groups_to_read import IDLE_GROUP, IDLE_TOPIC, LAG, UNLABELLED_METRIC, path

pytestmark = pytest.mark.usefixtures("adapter")
VERSIONS = [group.version for group in CUSTOM]
STRIMZI = "kafka.strimzi.io/v1beta2"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture(scope="module")
def topics(control_plane: ControlPlane) -> Iterator[None]:
    """The kind KafkaTopic, of which there is no object."""
    kind = definition(STRIMZI, "KafkaTopic")
    control_plane.apply([kind])
    wait_until(lambda: serves(control_plane, STRIMZI, ("KafkaTopic",)), "the kind KafkaTopic", 180)
    yield
    control_plane.delete([kind])


def read(plane: ControlPlane, version: str, place: str, metric: str, selector: str = "") -> Any:  # noqa: ANN401 - JSON
    query = f"?metricLabelSelector={selector}" if selector else ""
    status, body = plane.raw(f"/apis/custom.metrics.k8s.io/{version}/{place}/{metric}{query}")
    assert status == 200, body
    (item,) = json.loads(body)["items"]
    return item


def external(plane: ControlPlane, metric: str, selector: str = "") -> list[str]:
    status, body = plane.raw(path("default", metric, selector))
    assert status == 200, body
    return [item["value"] for item in json.loads(body)["items"]]


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "place",
    [
        "namespaces/default/services/kafka",
        "namespaces/default/deployments.apps/ledger",
        "namespaces/default/kafkatopics.kafka.strimzi.io/read-orders",
        "namespaces/default/metrics",
    ],
)
def test_kube_apiserver_serves_an_objects_value_as_the_sum_of_the_external_items(
    control_plane: ControlPlane, version: str, place: str
) -> None:
    items = external(control_plane, LAG, "group%3Dledger")
    assert len(items) == 2

    assert read(control_plane, version, place, LAG, "group%3Dledger")["value"] == str(sum(map(int, items)))


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize(
    ("place", "described"),
    [
        ("kafkatopics.kafka.strimzi.io", ("KafkaTopic", STRIMZI)),
        ("configmaps", ("ConfigMap", "v1")),
        ("horizontalpodautoscalers.autoscaling", ("HorizontalPodAutoscaler", "autoscaling/v2")),
    ],
)
def test_an_object_of_any_kind_is_described_with_it(
    control_plane: ControlPlane, place: str, described: tuple[str, str]
) -> None:
    """A busy kube-apiserver may not name the kind in time; then it is asked again half a minute later."""

    def is_described() -> bool:
        item = read(control_plane, "v1beta2", f"namespaces/default/{place}/any", LAG, "group%3Dledger")
        found = item["describedObject"]
        return (found.get("kind"), found.get("apiVersion")) == described

    wait_until(is_described, f"the kind of {place}", 120)


def test_a_namespace_without_a_metric_is_a_400_through_kube_apiserver(control_plane: ControlPlane) -> None:
    status, body = control_plane.raw("/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/metrics")

    assert (status, json.loads(body)["message"]) == (400, "invalid request path")


@pytest.mark.parametrize(
    ("metric", "selector"),
    [("kafka_consumer_fetch_manager_records_lag_max", "group%3Dledger"), (UNLABELLED_METRIC, "")],
)
def test_what_is_one_external_item_has_the_same_value(control_plane: ControlPlane, metric: str, selector: str) -> None:
    item = read(control_plane, "v1beta2", "namespaces/default/services/kafka", metric, selector)

    assert [item["value"]] == external(control_plane, metric, selector)


def test_kube_apiserver_prefers_the_second_version_and_lists_both(control_plane: ControlPlane) -> None:
    group = control_plane.get("/apis/custom.metrics.k8s.io")

    assert group["preferredVersion"]["version"] == "v1beta2"
    for version in VERSIONS:
        listed = control_plane.get(f"/apis/custom.metrics.k8s.io/{version}")["resources"]
        assert {f"services/{LAG}", f"deployments.apps/{LAG}", f"namespaces/{LAG}"} < {each["name"] for each in listed}


def test_aggregated_discovery_of_kube_apiserver_has_the_metrics_of_objects(control_plane: ControlPlane) -> None:
    def groups() -> dict[str, Any]:
        _, body = control_plane.request("GET", "/apis", headers={"Accept": AGGREGATED})
        return {each["metadata"]["name"]: each["versions"] for each in json.loads(body)["items"]}

    def has_it() -> bool:
        """Freshly read: kube-apiserver asks again after a while if it had no answer in time."""
        versions = groups().get("custom.metrics.k8s.io", [])
        resources = [
            resource
            for version in versions
            if (version["version"], version["freshness"]) == ("v1beta2", "Current")
            for resource in version["resources"]
            if resource["resource"] == "services"
        ]
        return LAG in [each["subresource"] for resource in resources for each in resource["subresources"]]

    wait_until(has_it, "the metric of services in aggregated discovery", 180)


def consumers(namespace: str, described: Manifest, *, target: str, minimum: int = 1) -> list[Manifest]:
    """A Deployment, and an HPA on the lag of the group `IDLE_GROUP` by a metric of the described object."""
    metadata, labels = {"name": "idle", "namespace": namespace}, {"app": "idle"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "any", "image": "any"}]}}
    selector = {"matchLabels": {"group": IDLE_GROUP, "topic": IDLE_TOPIC}}
    metric = {
        "describedObject": described,
        "metric": {"name": LAG, "selector": selector},
        "target": {"type": "AverageValue", "averageValue": target},
    }
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
        },
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": metadata,
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "idle"},
                "minReplicas": minimum,
                "maxReplicas": 9,
                "metrics": [{"type": "Object", "object": metric}],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 1}},
            },
        },
    ]


def replicas(plane: ControlPlane, namespace: str) -> Callable[[int], None]:
    deployment = f"/apis/apps/v1/namespaces/{namespace}/deployments/idle"

    def wait_for(number: int) -> None:
        wait_until(lambda: plane.get(deployment)["spec"]["replicas"] == number, f"{number} replicas", 180)

    return wait_for


@pytest.mark.usefixtures("topics")
def test_the_hpa_controller_scales_to_zero_and_back_by_an_object_that_does_not_exist(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str
) -> None:
    topic = {"apiVersion": STRIMZI, "kind": "KafkaTopic", "name": IDLE_TOPIC}
    control_plane.apply(consumers(namespace, topic, target="4", minimum=0))
    wait_for = replicas(control_plane, namespace)
    wait_for(0)

    produce(one_broker, IDLE_TOPIC, 10)
    wait_for(3)
    commit(one_broker, IDLE_GROUP, {(IDLE_TOPIC, 0): 10})
    wait_for(0)

    def is_told() -> bool:
        hpa = control_plane.get(f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/idle")
        current = hpa["status"].get("currentMetrics") or []
        return [each["object"]["describedObject"] for each in current if "object" in each] == [topic]

    wait_until(is_told, "the object in the HPA's status", 180)
