"""Reads of custom metrics that are passed on to another server of them, as prometheus-adapter is one."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from apiservice.api_group import CUSTOM
from tests.support.kubernetes.beside import Beside
from tests.support.kubernetes.fakes import FakeCallers, House
from tests.support.kubernetes.other_server import Answer

GROUP = "/apis/custom.metrics.k8s.io"
PODS = "namespaces/shop/pods/*/http_requests"
LIST = Answer(body=b'{"kind":"MetricValueList","items":[{"value":"7500m"}]}')
RESOURCES = ("pods/http_requests", "namespaces/http_requests", "jobs.batch/kafka_consumergroup_lag", "queue", "a/b/c")


@pytest.fixture
def beside(beside: Beside) -> Iterator[Beside]:
    beside.other.answer = LIST
    of_custom = replace(beside, groups=CUSTOM)
    yield of_custom
    of_custom.upstreams.stop(60)


def house(beside: Beside, **parts: FakeCallers) -> House:
    return House(upstreams=(beside.upstreams,), **parts)  # type: ignore[arg-type]  # callers alone


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
@pytest.mark.parametrize(
    "path",
    [
        "namespaces/shop/pods/*/http_requests",
        "namespaces/shop/jobs.batch/Nightly/HTTP_requests",
        "namespaces/shop/services/status/http_requests",
        "namespaces/shop/metrics/http_requests",
        "nodes/first/load",
    ],
)
def test_what_is_not_ours_is_read_there_at_the_same_path(beside: Beside, version: str, path: str) -> None:
    answer = house(beside).get(f"{GROUP}/{version}/{path}")

    assert (answer.code, answer.body) == (200, LIST.body)
    assert beside.other.asked[-1][0] == f"{GROUP}/{version}/{path}".replace("*", "%2A")


def test_both_selectors_are_passed_on_and_nothing_else(beside: Beside) -> None:
    query = "pretty=true&metricLabelSelector=verb%3DGET&limit=1&labelSelector=app%20in%20%28a%2Cb%29"
    house(beside).get(f"{GROUP}/v1beta2/{PODS}?{query}")

    _, _, passed_on = beside.other.asked[-1][0].partition("?")
    assert passed_on == "labelSelector=app%20in%20%28a%2Cb%29&metricLabelSelector=verb%3DGET"


def test_ours_win_at_every_object_and_its_external_metrics_are_nobodys(beside: Beside) -> None:
    asking = house(beside)
    assert asking.get(f"{GROUP}/v1beta2/namespaces/shop/jobs.batch/a/kafka_consumergroup_lag").code == 200
    assert asking.get("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/http_requests").code == 404

    assert beside.other.asked == []


def test_who_may_not_read_is_refused_before_the_other_server_is_asked(beside: Beside) -> None:
    callers = FakeCallers(allowed=frozenset({("get", "services")}))

    assert house(beside, callers=callers).get(f"{GROUP}/v1beta2/{PODS}").code == 403
    assert beside.other.asked == []


def test_a_list_of_external_values_is_no_reply(beside: Beside) -> None:
    beside.other.answer = Answer(body=b'{"kind":"ExternalMetricValueList","items":[]}')

    assert house(beside).get(f"{GROUP}/v1beta2/{PODS}").is_status(503, "the upstream others/other sent no reply")


@pytest.mark.parametrize("path", ["namespaces/shop/pods/../x", "namespaces/Shop/pods/*/x", "../first/x"])
def test_what_would_be_another_path_is_refused(beside: Beside, path: str) -> None:
    assert house(beside).get(f"{GROUP}/v1beta2/{path}").is_status(404, "the server could not find")
    assert beside.other.asked == []


def test_discovery_lists_its_metrics_below_their_objects(beside: Beside) -> None:
    listed = {"kind": "APIResourceList", "resources": [{"name": name} for name in RESOURCES]}
    beside.other.answer = Answer(body=json.dumps(listed).encode())
    beside.upstream.list_metrics()
    asking = house(beside)
    names = {each["name"]: each["namespaced"] for each in asking.get(f"{GROUP}/v1beta1").document["resources"]}

    assert beside.other.asked[-1][0] == f"{GROUP}/v1beta2"
    assert names.items() > {"pods/http_requests": True, "namespaces/http_requests": False}.items()
    assert names.keys().isdisjoint({"queue", "a/b/c"})
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    resources = asking.get("/apis", accept=aggregated).document["items"][1]["versions"][0]["resources"]
    below = {each["resource"]: [one["subresource"] for one in each["subresources"]] for each in resources}
    assert "http_requests" in below["pods"]
    assert "kafka_consumergroup_lag" in below["jobs.batch"]
