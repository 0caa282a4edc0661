"""What the documents about the API say: discovery in its three forms, and OpenAPI."""

import re
from typing import Any

import pytest

from tests.support.kubernetes.fakes import GROUP, LAG, V1BETA1, FakeMetrics, House

HPA_ACCEPTS = "application/vnd.kubernetes.protobuf, */*"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize("slash", ["", "/"])
def test_groups_and_versions_are_listed(slash: str) -> None:
    house = House()
    version = {"groupVersion": "external.metrics.k8s.io/v1beta1", "version": "v1beta1"}
    kind = {"kind": "APIGroup", "apiVersion": "v1", "name": "external.metrics.k8s.io"}
    group = {**kind, "versions": [version], "preferredVersion": version}

    custom = [{"groupVersion": f"custom.metrics.k8s.io/{each}", "version": each} for each in ("v1beta2", "v1beta1")]
    of_custom = {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "custom.metrics.k8s.io",
        "versions": custom,
        "preferredVersion": custom[0],
    }

    assert house.get(GROUP + slash).document == group
    assert house.get("/apis/custom.metrics.k8s.io" + slash).document == of_custom
    assert house.get("/apis" + slash).document == {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [group, of_custom],
    }


@pytest.mark.parametrize("slash", ["", "/"])
def test_every_metric_is_a_namespaced_resource_that_can_only_be_got(slash: str) -> None:
    answer = House().get(V1BETA1 + slash)
    rest = {"singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}

    assert answer.document == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "external.metrics.k8s.io/v1beta1",
        "resources": [{"name": name, **rest} for name in ("kafka_consumergroup_lag", "Billing-Backlog")],
    }


@pytest.mark.parametrize(
    "accept", [AGGREGATED, f"application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io,{HPA_ACCEPTS}"]
)
def test_all_groups_come_in_one_document_for_who_asks(accept: str) -> None:
    answer = House().get("/apis", accept=accept)
    group, _ = answer.document["items"]
    kind = {"group": "", "version": "", "kind": "ExternalMetricValueList"}

    assert answer.headers["content-type"] == AGGREGATED
    assert answer.headers["vary"] == "Accept"
    assert group["metadata"] == {"name": "external.metrics.k8s.io"}
    assert group["versions"][0]["freshness"] == "Current"
    assert group["versions"][0]["resources"][0] == {
        "resource": "kafka_consumergroup_lag",
        "responseKind": kind,
        "scope": "Namespaced",
        "singularResource": "",
        "verbs": ["get"],
    }


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_custom_metrics_are_subresources_of_the_usual_objects(version: str) -> None:
    """Any other object can be read as well."""
    listed = House().get(f"/apis/custom.metrics.k8s.io/{version}").document["resources"]

    assert {each["kind"] for each in listed} == {"MetricValueList"}
    assert [(each["name"], each["namespaced"]) for each in listed] == [
        (f"{resource}/{metric}", resource != "namespaces")
        for resource in ("deployments.apps", "namespaces", "pods", "services")
        for metric in ("kafka_consumergroup_lag", "Billing-Backlog")[: 1 if resource == "pods" else 2]
    ]


def test_aggregated_discovery_has_custom_metrics_below_their_objects() -> None:
    _, group = House().get("/apis", accept=AGGREGATED).document["items"]
    resources = group["versions"][0]["resources"]
    kind = {"group": "", "version": "", "kind": "MetricValueList"}

    assert [each["version"] for each in group["versions"]] == ["v1beta2", "v1beta1"]
    assert {each["resource"]: each["scope"] for each in resources} == {
        "deployments.apps": "Namespaced",
        "namespaces": "Cluster",
        "pods": "Namespaced",
        "services": "Namespaced",
    }
    assert resources[-1] == {
        "resource": "services",
        "responseKind": kind,
        "scope": "Namespaced",
        "singularResource": "",
        "verbs": [],
        "subresources": [
            {"subresource": metric, "responseKind": kind, "verbs": ["get"]}
            for metric in ("kafka_consumergroup_lag", "Billing-Backlog")
        ],
    }


@pytest.mark.parametrize("accept", ["", HPA_ACCEPTS, AGGREGATED.replace("v=v2", "v=v2beta1")])
def test_who_asks_for_no_such_document_or_an_older_form_gets_the_plain_list(accept: str) -> None:
    """Then kube-apiserver asks for each version's list."""
    answer = House().get("/apis", accept=accept)

    assert (answer.document["kind"], answer.headers["content-type"]) == ("APIGroupList", "application/json")


@pytest.mark.parametrize("pattern", ["{}", "W/{}", '"other", {}'])
def test_known_aggregated_discovery_is_not_sent_again(pattern: str) -> None:
    house = House()
    etag = house.get("/apis", accept=AGGREGATED).headers["etag"]

    answer = house.get("/apis", accept=AGGREGATED, if_none_match=pattern.format(etag))

    assert (answer.code, answer.body, answer.headers["etag"]) == (304, b"", etag)


@pytest.mark.parametrize("target", ["/apis", GROUP, V1BETA1, LAG])
def test_no_other_document_is_ever_unchanged(target: str) -> None:
    """kube-apiserver takes a 304 of these for a failure."""
    house = House()
    etag = house.get("/apis", accept=AGGREGATED).headers["etag"]

    assert house.get(target, if_none_match=etag).code == 200


def test_the_etag_follows_what_is_served() -> None:
    other = House(metrics=FakeMetrics({}, names=("another",)))
    documents = [house.get("/apis", accept=AGGREGATED) for house in (House(), House(), other)]
    etags = [answer.headers["etag"] for answer in documents]

    assert (etags[0] == etags[1], etags[0] == etags[2]) == (True, False)


# OpenAPI


def references_in(node: Any) -> set[str]:  # noqa: ANN401 - any JSON
    """Everything that the document refers to within itself."""
    if isinstance(node, list):
        return {found for part in node for found in references_in(part)}
    if not isinstance(node, dict):
        return set()
    return {node["$ref"]} if "$ref" in node else {found for part in node.values() for found in references_in(part)}


def resolves(document: Any, reference: str) -> bool:  # noqa: ANN401 - any JSON
    for step in reference.removeprefix("#/").split("/"):
        document = document.get(step, {})
    return bool(document)


CUSTOM_PATHS = ("/namespaces/{namespace}/{resource}/{name}/{metric}", "/namespaces/{namespace}/metrics/{metric}")


def custom_paths(version: str) -> set[str]:
    return {f"/apis/custom.metrics.k8s.io/{version}{tail}" for tail in (*CUSTOM_PATHS, "/{resource}/{name}/{metric}")}


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_openapi_describes_the_reads_of_custom_metrics(version: str) -> None:
    document = House().get(f"/openapi/v3/apis/custom.metrics.k8s.io/{version}").document
    (schema,) = document["components"]["schemas"].values()
    item = schema["properties"]["items"]["items"]
    named_by = "metric" if version == "v1beta2" else "metricName"

    assert document["paths"].keys() == custom_paths(version)
    assert set(item["required"]) == {"describedObject", named_by, "timestamp", "value"} <= item["properties"].keys()
    assert schema["x-kubernetes-group-version-kind"][0]["version"] == version
    assert all(resolves(document, reference) for reference in references_in(document))


def test_openapi_2_has_every_version_of_every_group() -> None:
    document = House().get("/openapi/v2").document
    operations = [operation["get"]["operationId"] for operation in document["paths"].values()]

    assert document["paths"].keys() > custom_paths("v1beta1") | custom_paths("v1beta2")
    assert len(document["definitions"]) == 3
    assert len(set(operations)) == 7


@pytest.mark.parametrize("target", ["/openapi/v2", "/openapi/v3/apis/external.metrics.k8s.io/v1beta1"])
def test_openapi_describes_the_read_and_what_it_refers_to(target: str) -> None:
    document = House().get(target).document
    path = f"{V1BETA1}/namespaces/{{namespace}}/{{metric}}"
    operations = document["paths"][path]
    references = references_in(document)

    assert operations["get"]["responses"]["200"]["description"] == "OK"
    assert {one["name"] for one in operations["get"]["parameters"] if one["in"] == "path"} == {"namespace", "metric"}
    assert references
    assert all(resolves(document, reference) for reference in references)
    assert {"swagger", "openapi"} & document.keys()
    assert document["info"] == {"title": "kafka-lag-adapter", "version": "0.1.0"}


def test_the_root_of_openapi_points_to_the_document() -> None:
    house = House()
    root = house.get("/openapi/v3").document
    address = root["paths"]["apis/external.metrics.k8s.io/v1beta1"]["serverRelativeURL"]

    assert house.get(address).document["openapi"] == "3.0.0"
    assert re.search(r"\?hash=[0-9A-F]{32}$", address)
