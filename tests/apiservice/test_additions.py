"""A metric, and an API group of the form of external metrics, are each one definition: both are added and read."""

import datetime
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import yaml

from adapter.metrics.aggregation import MAXIMUM, SUM_BY_TOPIC
from adapter.metrics.definitions import DEFINITIONS, OF_VALUES, MetricDefinition
from adapter.metrics.query import Metrics
from adapter.telemetry import Telemetry
from apiservice.api_group import API_GROUPS, EXTERNAL, ApiGroup
from apiservice.registration.api_service import Service
from apiservice.registration.keeper import Registration
from apiservice.tls.issuing import serving_manifests
from tests.support import samples
from tests.support.kafka.questions import BILLING
from tests.support.kubernetes.fakes import NAMESPACE, V1BETA1, House
from tests.support.samples import SteppedClock, store_of, view

HALF = MetricDefinition(
    "half_lag",
    "messages",
    lambda totals: [lag // 2 for lag in totals.lag],
    MAXIMUM,
    OF_VALUES,
    is_listed=False,
    help="half",
)
OWNER = "/apis/rbac.authorization.k8s.io/v1/clusterroles/adapter-registration"
ADDED = ApiGroup("more.metrics.k8s.io", "v1beta2", "MoreMetricValueList", "more metrics")
SELECTED = "labelSelector=group%3Dbilling,topic%3Dorders"


def house(*definitions: MetricDefinition, groups: tuple[ApiGroup, ...] = API_GROUPS) -> House:
    metrics = Metrics(samples.settings(), store_of(view(BILLING)), SteppedClock(), definitions)
    return House(metrics=metrics, groups=groups)  # type: ignore[arg-type]  # the real one instead of a fake


def test_an_added_metric_is_listed_and_served_in_thousandths() -> None:
    added = house(*DEFINITIONS, HALF)
    (item,) = added.get(f"{NAMESPACE}/kafka_consumergroup_half_lag?{SELECTED}").document["items"]

    assert item["value"] == "1500m"
    assert "kafka_consumergroup_half_lag" in [each["name"] for each in added.get(V1BETA1).document["resources"]]


def test_an_added_metric_is_listed_without_a_selector_if_its_definition_says_so() -> None:
    listed = replace(HALF, fold=SUM_BY_TOPIC, is_listed=True)
    items = house(listed).get(f"{NAMESPACE}/kafka_consumergroup_half_lag").document["items"]

    assert [(item["metricLabels"]["topic"], item["value"]) for item in items] == [("orders", "1500m"), ("refunds", "5")]


def test_an_added_group_is_discovered_described_reviewed_and_served() -> None:
    added = house(*DEFINITIONS, groups=(*API_GROUPS, ADDED))
    path = f"{ADDED.path}/namespaces/shop/kafka_consumergroup_lag"
    answer = added.get(f"{path}?{SELECTED}")

    assert (answer.document["kind"], answer.document["apiVersion"]) == (
        "MoreMetricValueList",
        "more.metrics.k8s.io/v1beta2",
    )
    assert [item["value"] for item in answer.document["items"]] == ["3"]
    assert (added.callers.reviewed[0].group, added.callers.reviewed[0].verb) == (ADDED.name, "list")
    assert ADDED.name in [each["name"] for each in added.get("/apis").document["groups"]]
    assert added.get(ADDED.path).document["groupVersion"] == ADDED.group_version
    for address in added.get("/openapi/v3").document["paths"].values():
        assert added.get(address["serverRelativeURL"]).code == 200
    assert f"{ADDED.path}/namespaces/{{namespace}}/{{metric}}" in added.get("/openapi/v2").document["paths"]
    assert added.get(f"{path}?watch=true").is_status(405, 'watch is not supported on resources of kind "*.more.metrics')


def test_an_added_group_is_registered_beside_the_others() -> None:
    groups, now = (EXTERNAL, ADDED), datetime.datetime.now(datetime.UTC)
    owner = {"metadata": {"name": "adapter-registration", "uid": "1"}}
    kept: dict[str, Any] = {OWNER: owner, "/api/v1/namespaces/lag/secrets/adapter-serving": {}}

    def write(path: str, document: object, **_options: bool) -> bool:
        kept[path] = document
        return True

    objects: Any = SimpleNamespace(read=kept.get, replace=write, apply=write, answered_at=now)
    tls: Any = SimpleNamespace(serve=lambda *_: None, served="")
    service = Service("lag", "adapter", 443)
    Registration(objects, service, tls, Telemetry(), may_register=True, groups=lambda: groups).look()
    printed = yaml.safe_load_all(serving_manifests("lag", "adapter", 1, now, groups))
    names = ["v1beta1.external.metrics.k8s.io", "v1beta2.more.metrics.k8s.io"]

    assert [each["metadata"]["name"] for path, each in kept.items() if "/apiservices/" in path] == names
    assert [each["metadata"]["name"] for each in printed if each["kind"] == "APIService"] == names
