"""Reads of Object metrics: the same values as the external ones, as values of objects."""

import json
from typing import Any

import pytest

from adapter.metrics.aggregation import MetricValue
from adapter.metrics.definitions import DEFINITIONS
from adapter.metrics.problems import ValueUnavailable
from adapter.metrics.query import Metrics
from apiservice.auth.caller import Attributes
from tests.support import samples
from tests.support.kafka.questions import BILLING
from tests.support.kubernetes.fakes import LAG, LAG_OF_ORDERS, MEASURED_AT, FakeMetrics, House
from tests.support.samples import SteppedClock, store_of, view

GROUP = "/apis/custom.metrics.k8s.io"
NAME = "kafka_consumergroup_lag"
SERVICE = f"namespaces/shop/services/kafka/{NAME}"
BY_VERSION = ("v1beta1", "v1beta2")
SELECTED = "metricLabelSelector=group%3Dbilling%2Ctopic%20in%20%28b%2Ca%29%2C%21partition"
ECHO = {
    "matchLabels": {"group": "billing"},
    "matchExpressions": [
        {"key": "partition", "operator": "DoesNotExist"},
        {"key": "topic", "operator": "In", "values": ["a", "b"]},
    ],
}


def house_of(*values: MetricValue, **parts: Any) -> House:  # noqa: ANN401 - fields of FakeMetrics
    return House(metrics=FakeMetrics({NAME: values}, **parts))


def real_house() -> House:
    metrics = Metrics(samples.settings(), store_of(view(BILLING)), SteppedClock(), DEFINITIONS)
    return House(metrics=metrics)  # type: ignore[arg-type]  # the real one instead of a fake


@pytest.mark.parametrize(
    ("version", "naming"),
    [
        ("v1beta1", {"metricName": NAME, "selector": ECHO}),
        ("v1beta2", {"metric": {"name": NAME, "selector": ECHO}}),
    ],
)
def test_a_value_describes_its_object_and_repeats_the_selector(version: str, naming: dict[str, Any]) -> None:
    assert House().get(f"{GROUP}/{version}/{SERVICE}?{SELECTED}").document == {
        "kind": "MetricValueList",
        "apiVersion": f"custom.metrics.k8s.io/{version}",
        "metadata": {},
        "items": [
            {
                "describedObject": {"kind": "Service", "namespace": "shop", "name": "kafka", "apiVersion": "v1"},
                **naming,
                "timestamp": "2026-11-21T11:48:29Z",
                "value": "42",
            }
        ],
    }


@pytest.mark.parametrize(
    ("path", "described"),
    [
        ("namespaces/shop/metrics", {"kind": "Namespace", "name": "shop", "apiVersion": "v1"}),
        (
            "namespaces/shop/Deployments.Apps/billing",
            {"kind": "Deployment", "namespace": "shop", "name": "billing", "apiVersion": "apps/v1"},
        ),
        ("namespaces/shop/kafkatopics.kafka.strimzi.io/orders", {"namespace": "shop", "name": "orders"}),
        ("nodes/first", {"kind": "Node", "name": "first", "apiVersion": "v1"}),
        (
            "namespaces/shop/services/metrics",
            {"kind": "Service", "namespace": "shop", "name": "metrics", "apiVersion": "v1"},
        ),
    ],
)
@pytest.mark.parametrize("slash", ["", "/"])
def test_any_object_is_a_handle_and_need_not_exist(path: str, described: dict[str, str], slash: str) -> None:
    (item,) = House().get(f"{GROUP}/v1beta2/{path}/{NAME}{slash}").document["items"]

    assert (item["describedObject"], item["metric"]["selector"]) == (described, None)


def test_any_kind_that_the_cluster_knows_describes_its_object() -> None:
    house = House(kinds={"kafkatopics.kafka.strimzi.io": ("KafkaTopic", "kafka.strimzi.io/v1beta2")})
    path = f"{GROUP}/v1beta2/namespaces/shop/KafkaTopics.Kafka.Strimzi.io/orders/{NAME}"

    assert house.get(path).document["items"][0]["describedObject"] == {
        "kind": "KafkaTopic",
        "namespace": "shop",
        "name": "orders",
        "apiVersion": "kafka.strimzi.io/v1beta2",
    }


@pytest.mark.parametrize("version", BY_VERSION)
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_namespace_without_a_metric_is_a_400_as_other_servers_answer_it(version: str, slash: str) -> None:
    answer = House().get(f"{GROUP}/{version}/namespaces/shop/metrics{slash}")

    assert answer.is_status(400, "invalid request path")


@pytest.mark.parametrize("path", ["v1beta1/namespaces/shop/pods", "v1/namespaces/shop/metrics", "v1beta2/namespaces"])
def test_other_paths_without_a_metric_are_unknown(path: str) -> None:
    assert House().get(f"{GROUP}/{path}").is_status(404, "the server could not find the requested resource")


@pytest.mark.parametrize("version", BY_VERSION)
def test_an_object_has_the_sum_of_the_external_items(version: str) -> None:
    house = real_house()
    external = house.get(f"{LAG}?labelSelector=group%3Dbilling").document["items"]
    (item,) = house.get(f"{GROUP}/{version}/{SERVICE}?metricLabelSelector=group%3Dbilling").document["items"]

    assert [each["value"] for each in external] == ["3", "10"]
    assert item["value"] == "13"
    assert item["timestamp"] == min(each["timestamp"] for each in external)


@pytest.mark.parametrize(
    "metric", ["kafka_consumergroup_records_lag_max", "kafka_consumergroup_lead_min", "records-lag-max"]
)
def test_what_is_one_external_item_is_the_same_for_an_object(metric: str) -> None:
    house = real_house()
    (external,) = house.get(f"{LAG.replace(NAME, metric)}?labelSelector=group%3Dbilling").document["items"]
    path = f"{GROUP}/v1beta2/{SERVICE.replace(NAME, metric)}?metricLabelSelector=group%3Dbilling"
    (item,) = house.get(path).document["items"]

    assert (item["value"], item["metric"]["name"]) == (external["value"], metric)


def test_an_object_never_has_a_part_of_a_sum() -> None:
    """A read without selector is no listing that may leave out groups."""
    house = House()
    house.get(f"{GROUP}/v1beta2/{SERVICE}")
    house.get(LAG)

    assert house.metrics.lists == [False, True]


def test_a_name_is_read_in_any_case_and_echoed_as_it_is_defined() -> None:
    path = SERVICE.replace(NAME, NAME.upper())

    assert House().get(f"{GROUP}/v1beta1/{path}").document["items"][0]["metricName"] == NAME


def test_labels_of_objects_select_no_metric() -> None:
    house = House()
    house.get(f"{GROUP}/v1beta2/{SERVICE}?labelSelector=app%3Dbilling&metricLabelSelector=group%3Dbilling")

    ((_, requirements),) = house.metrics.asked
    assert [one.key for one in requirements] == ["group"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("metricLabelSelector=x%2C%2Cy", "found ',', expected: identifier after ','"),
        ("labelSelector=%21%21", "unable to parse requirement: found '!'"),
        ("metricLabelSelector=a&metricLabelSelector=b", "metricLabelSelector is given more than once"),
        ("metricLabelSelector=partition%3E3", "metricLabelSelector: '>' is no operator of a LabelSelector"),
        ("limit=x", "strconv.ParseInt: "),
        ("fieldSelector=a%3Db", "fieldSelector is not supported"),
    ],
)
def test_a_bad_query_is_a_400(query: str, message: str) -> None:
    assert House().get(f"{GROUP}/v1beta2/{SERVICE}?{query}").is_status(400, message)


def test_a_watch_is_a_405() -> None:
    answer = House().get(f"{GROUP}/v1beta2/{SERVICE}?watch=true")

    assert answer.is_status(405, 'watch is not supported on resources of kind "*.custom.metrics.k8s.io"')


@pytest.mark.parametrize("path", ["namespaces/shop/services/*", "namespaces/*/metrics", "nodes/*"])
def test_a_metric_of_all_objects_is_a_404_that_says_so(path: str) -> None:
    answer = House().get(f"{GROUP}/v1beta2/{path}/{NAME}")

    assert answer.is_status(404, f"metric '{NAME}' is not served for all ")


def test_an_unknown_metric_and_an_unknown_value_are_as_in_the_other_door() -> None:
    house = House(metrics=FakeMetrics({NAME: ValueUnavailable("lag of group billing is 95 s old, limit 60 s")}))

    assert house.get(f"{GROUP}/v1beta2/{SERVICE.replace(NAME, 'nope')}").is_status(404, "no metric nope is served")
    assert house.get(f"{GROUP}/v1beta2/{SERVICE}").is_status(503, "lag of group billing is 95 s old")


@pytest.mark.parametrize(
    ("path", "attributes"),
    [
        (SERVICE, {"namespace": "shop", "resource": "services", "name": "kafka", "subresource": NAME}),
        (
            f"namespaces/shop/kafkatopics.kafka.strimzi.io/orders/{NAME}",
            {"namespace": "shop", "resource": "kafkatopics.kafka.strimzi.io", "name": "orders", "subresource": NAME},
        ),
        (f"namespaces/shop/metrics/{NAME}", {"namespace": "shop", "resource": "metrics", "name": NAME}),
        (f"nodes/first/{NAME}", {"resource": "nodes", "name": "first", "subresource": NAME}),
    ],
)
def test_an_object_is_got_by_who_may_get_the_metric_as_its_subresource(path: str, attributes: dict[str, str]) -> None:
    house = House()
    house.get(f"{GROUP}/v1beta1/{path}")

    path = f"{GROUP}/v1beta1/{path}"
    assert house.callers.reviewed == [
        Attributes(verb="get", path=path, group="custom.metrics.k8s.io", version="v1beta1", **attributes)
    ]


def test_who_may_not_read_is_refused_in_kubernetes_words() -> None:
    answer = House().get(f"{GROUP}/v1beta2/{SERVICE}", authorization="")

    assert answer.is_status(
        403, 'services.custom.metrics.k8s.io "kafka" is forbidden: User "system:anonymous" cannot get resource'
    )


def test_objects_in_no_namespace_are_read_in_the_name_of_no_tenant() -> None:
    house = house_of(LAG_OF_ORDERS, tenants=frozenset({""}))
    house.get(f"{GROUP}/v1beta2/nodes/first/{NAME}")
    house.get(f"{GROUP}/v1beta2/namespaces/shop/metrics/{NAME}")

    assert house.metrics.namespaces == ["", "shop"]


def test_replies_of_objects_versions_and_doors_are_not_mixed_up() -> None:
    house = house_of(LAG_OF_ORDERS, MetricValue({}, 1_000, MEASURED_AT))
    targets = [LAG, *(f"{GROUP}/{version}/{SERVICE}" for version in BY_VERSION)]
    targets.append(f"{GROUP}/v1beta1/{SERVICE.replace('kafka/', 'other/')}")
    bodies = [house.get(target).body for target in [*targets, *targets]]

    assert bodies[:4] == bodies[4:]
    assert len(set(bodies)) == len(house.metrics.asked) == 4
    assert json.loads(bodies[1])["items"][0]["value"] == "43"


def test_reads_of_both_doors_are_counted_by_the_metric() -> None:
    house = House()
    house.get(LAG)
    house.get(f"{GROUP}/v1beta2/{SERVICE}")

    assert house.counted == [(NAME, 200)] * 2
