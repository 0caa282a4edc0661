"""Who may ask what, and what all others get: a sentence, the request, and the expected reply. Failures first."""

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiservice.auth.caller import Attributes
from apiservice.auth.cluster_settings import ClusterUnreachable
from tests.support.kubernetes.fakes import (
    GROUP,
    HPA,
    LAG,
    NAMESPACE,
    V1BETA1,
    FakeCallers,
    FakeConnection,
    House,
    ask,
    asked,
    plain_port,
)

ROOT = Path(__file__).parents[2]

NOT_FOUND = "the server could not find the requested resource"
NOT_ALLOWED = "the server does not allow this method on the requested resource"

SHOP = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop"

REFUSALS: list[tuple[str, str, str, int, str]] = [
    ("a version that is not served", "GET", f"{GROUP}/v1beta2", 404, NOT_FOUND),
    ("the group of resource metrics", "GET", "/apis/metrics.k8s.io", 404, NOT_FOUND),
    (
        "an object without a metric",
        "GET",
        f"{SHOP}/services/kafka",
        404,
        NOT_FOUND,
    ),
    (
        "a namespace without a metric",
        "GET",
        f"{SHOP}/metrics",
        400,
        "invalid request path",
    ),
    (
        "more than a metric",
        "GET",
        f"{SHOP}/services/kafka/lag/more",
        404,
        NOT_FOUND,
    ),
    ("a metric of nothing", "GET", f"{SHOP}//kafka/lag", 404, NOT_FOUND),
    ("a resource without namespace", "GET", f"{V1BETA1}/kafka_consumergroup_lag", 404, NOT_FOUND),
    ("namespaces", "GET", f"{V1BETA1}/namespaces", 404, NOT_FOUND),
    ("a namespace", "GET", NAMESPACE, 404, NOT_FOUND),
    ("a namespace with a slash", "GET", f"{NAMESPACE}/", 404, NOT_FOUND),
    ("something below a metric", "GET", f"{LAG}/more", 404, NOT_FOUND),
    ("a metric after two slashes", "GET", f"{V1BETA1}/namespaces//lag", 404, NOT_FOUND),
    ("a path of no API", "GET", "/favicon.ico", 404, NOT_FOUND),
    ("two slashes", "GET", "//", 404, NOT_FOUND),
    ("a slash too many", "GET", "/metrics/", 404, NOT_FOUND),
    ("the framework's own pages", "GET", "/docs", 404, NOT_FOUND),
    ("the framework's own description", "GET", "/openapi.json", 404, NOT_FOUND),
    ("an unknown health check", "GET", "/readyz/kafka", 404, NOT_FOUND),
    ("an unknown metric", "GET", f"{NAMESPACE}/nope", 404, "no metric nope is served here"),
    ("HEAD of a metric", "HEAD", LAG, 405, NOT_ALLOWED),
    ("POST to a metric", "POST", LAG, 405, NOT_ALLOWED),
    ("DELETE of all values", "DELETE", LAG, 405, NOT_ALLOWED),
    ("a method that nobody knows", "BREW", LAG, 405, NOT_ALLOWED),
    ("HEAD of discovery", "HEAD", V1BETA1, 405, NOT_ALLOWED),
    ("OPTIONS of the groups", "OPTIONS", "/apis", 405, NOT_ALLOWED),
    ("POST to health", "POST", "/livez", 405, NOT_ALLOWED),
    (
        "a watch",
        "GET",
        f"{LAG}?watch=true",
        405,
        'watch is not supported on resources of kind "*.external.metrics.k8s.io"',
    ),
    (
        "a watch in disguise",
        "GET",
        f"{LAG}?w%61tch=1",
        405,
        'watch is not supported on resources of kind "*.external.metrics.k8s.io"',
    ),
    ("a field selector", "GET", f"{LAG}?fieldSelector=metadata.name%3Da", 400, "fieldSelector is not supported"),
    ("too many parameters", "GET", f"{LAG}?{'a&' * 101}", 400, "the query has more than 100 parameters"),
    ("a bad selector", "GET", f"{LAG}?labelSelector=x%3Da,,y", 400, "found ',', expected: identifier after ','"),
    (
        "a selector given twice",
        "GET",
        f"{LAG}?labelSelector=x&labelSelector=y",
        400,
        "labelSelector is given more than",
    ),
    ("half an escape", "GET", f"{LAG}?labelSelector=x%3", 400, "unable to parse requirement"),
    ("a query that is not UTF-8", "GET", f"{LAG}?labelSelector=%ff", 400, "the query is not UTF-8"),
]


@pytest.mark.parametrize(("sentence", "method", "target", "code", "message"), REFUSALS)
def test_what_is_not_served_is_refused_with_a_status(
    sentence: str, method: str, target: str, code: int, message: str
) -> None:
    answer = House().ask(method, target)

    assert answer.is_status(code, message), (sentence, answer)


@pytest.mark.parametrize("target", [LAG, V1BETA1, "/favicon.ico"])
def test_a_refused_method_gets_the_allowed_one(target: str) -> None:
    answer = House().ask("PUT", target)

    assert answer.headers.get("allow") == ("GET" if answer.code == 405 else None)


def test_an_unmatched_path_has_empty_details_as_clients_expect() -> None:
    assert House().get(f"{V1BETA1}/foo").document["details"] == {}


@pytest.mark.parametrize("target", [LAG, "/apis", GROUP, V1BETA1, "/openapi/v2", "/openapi/v3"])
def test_everything_is_json_that_nobody_keeps(target: str) -> None:
    headers = House().get(target, accept="application/vnd.kubernetes.protobuf, */*").headers

    assert [headers[name] for name in ("content-type", "cache-control", "x-content-type-options")] == [
        "application/json",
        "no-cache, private",
        "nosniff",
    ]


# Who may ask


@pytest.mark.parametrize("target", [LAG, "/apis", "/nowhere", "/metrics", "/openapi/v2", f"{LAG}?labelSelector=%ff"])
def test_a_bad_credential_is_refused_before_anything_else_is_said(target: str) -> None:
    answer = House().get(target, authorization="Bearer wrong")

    assert answer.is_status(401, "Unauthorized")
    assert answer.document["message"] == "Unauthorized"


@pytest.mark.parametrize("target", ["/apis", "/nowhere", "/metrics", "/openapi/v3", "/", V1BETA1])
def test_a_path_is_forbidden_to_who_may_not_get_it(target: str) -> None:
    answer = House().get(target, authorization="")

    assert answer.is_status(403, f'forbidden: User "system:anonymous" cannot get path "{target}"')
    assert answer.document["details"] == {}


def test_a_metric_is_forbidden_to_who_may_not_list_it() -> None:
    house = House(callers=FakeCallers(allowed=frozenset(), reason="no rule allows it"))

    answer = house.get(LAG)

    assert answer.is_status(
        403,
        f'kafka_consumergroup_lag.external.metrics.k8s.io is forbidden: User "{HPA.name}" cannot list resource '
        '"kafka_consumergroup_lag" in API group "external.metrics.k8s.io" in the namespace "shop": no rule allows it',
    )
    assert answer.document["details"] == {"group": "external.metrics.k8s.io", "kind": "kafka_consumergroup_lag"}


@pytest.mark.parametrize("target", [LAG, "/apis", "/livez"])
def test_a_long_query_or_accept_of_a_stranger_is_refused_unread(target: str) -> None:
    house = House()

    long_query = house.get(f"{target}?{'a' * 8193}", authorization="")
    long_accept = house.get(target, authorization="", accept="a;," * 400)

    assert long_query.is_status(400, "without credentials, a query may have at most 8192 bytes")
    assert long_accept.is_status(400, "without credentials, Accept may have at most 1024 bytes")
    assert house.callers.reviewed == []


def test_known_callers_may_ask_long_questions() -> None:
    query, accept = f"labelSelector=group&a={'a' * 20_000}", "a/b," * 1000 + "*/*"

    assert House().get(f"{LAG}?{query}", accept=accept).code == 200
    assert House().get(f"/apis?{query}", accept=accept).code == 200


def test_a_long_query_with_a_made_up_token_is_refused_unread() -> None:
    answer = House().get(f"{LAG}?{'a&' * 30_000}", authorization="Bearer made up")

    assert answer.is_status(401, "Unauthorized")


def test_the_port_without_tls_has_the_same_bounds() -> None:
    app = plain_port()

    assert ask(app, "GET", "/metrics").code == 200
    assert ask(app, "GET", f"/metrics?{'a' * 8193}").is_status(400, "without credentials, a query")
    assert ask(app, "GET", f"/livez?{'a&' * 200}").is_status(400, "the query has more than 100 parameters")
    assert ask(app, "GET", "/livez", [("accept", "a" * 1025)]).is_status(400, "without credentials, Accept")


@pytest.mark.parametrize(("authorization", "is_known"), [("Bearer hpa", True), ("", False), ("Bearer made up", False)])
def test_connections_of_known_callers_are_recognised(authorization: str, is_known: bool) -> None:  # noqa: FBT001 - a case
    house, connection = House(), FakeConnection()
    headers = [("authorization", authorization)] if authorization else []

    asyncio.run(asked(house.app, "GET", LAG, headers, connection))

    assert connection.is_recognised == is_known


def test_why_credentials_are_refused_is_for_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="apiservice.app"):
        answer = House().get(LAG, authorization="Bearer made up")

    assert answer.is_status(401, "Unauthorized")
    assert b"not known" not in answer.body
    assert caplog.messages == ["credentials refused: the token is not known"]


def test_callers_are_refused_while_reviews_are_unavailable() -> None:
    house = House(callers=FakeCallers(failure=ClusterUnreachable("the API server does not answer")))

    assert house.get(LAG).is_status(503, "the API server does not answer")
    assert house.get("/apis").is_status(503, "the API server does not answer")
    assert house.metrics.asked == []


def test_a_token_that_cannot_be_reviewed_is_no_wrong_token() -> None:
    house = House(callers=FakeCallers(known={"Bearer hpa": ClusterUnreachable("no TokenReview")}))

    assert house.get(LAG).is_status(503, "no TokenReview")


ON_LAG = Attributes(
    verb="list",
    path=LAG,
    namespace="shop",
    group="external.metrics.k8s.io",
    version="v1beta1",
    resource="kafka_consumergroup_lag",
)
UPPER = f"{NAMESPACE}/KAFKA_ConsumerGroup_Lag"


@pytest.mark.parametrize(
    ("method", "target", "attributes"),
    [
        ("GET", f"{LAG}?labelSelector=group%3Dbilling", ON_LAG),
        ("GET", f"{LAG}/", replace(ON_LAG, path=f"{LAG}/")),
        ("GET", UPPER, replace(ON_LAG, path=UPPER)),
        ("GET", f"{LAG}?watch=true", replace(ON_LAG, verb="watch")),
        ("GET", f"{LAG}?watch=false&watch=true", ON_LAG),
        ("HEAD", LAG, ON_LAG),
        ("POST", LAG, replace(ON_LAG, verb="create")),
        ("DELETE", LAG, replace(ON_LAG, verb="deletecollection")),
        ("GET", f"{LAG}/a/b", replace(ON_LAG, path=f"{LAG}/a/b", verb="get", name="a", subresource="b")),
        (
            "GET",
            f"{NAMESPACE}/status",
            replace(
                ON_LAG, path=f"{NAMESPACE}/status", verb="get", resource="namespaces", name="shop", subresource="status"
            ),
        ),
        ("GET", NAMESPACE, replace(ON_LAG, path=NAMESPACE, verb="get", resource="namespaces", name="shop")),
        ("GET", V1BETA1, Attributes(verb="get", path=V1BETA1)),
        ("POST", "/apis/", Attributes(verb="post", path="/apis/")),
        ("GET", "/metrics", Attributes(verb="get", path="/metrics")),
        ("GET", "/livezzz", Attributes(verb="get", path="/livezzz")),
    ],
)
def test_reviews_are_asked_what_kube_apiserver_would_ask(method: str, target: str, attributes: Attributes) -> None:
    house = House()
    house.ask(method, target)

    assert house.callers.reviewed == [attributes]


# Whatever comes

BYTES = st.binary(max_size=40)
ODD_BYTES = [b"/", b"//", b"%", b"%00", b"%2F", b"%ff", b"%zz", b"\0", b"..", "ü".encode(), b"9" * 30]
OF_QUERIES = [
    b"labelSelector=",
    b"limit=",
    b"watch=",
    b"fieldSelector=",
    b"&",
    b"=",
    b"?",
    b"+",
    b"a in (",
]
OF_PATHS = [
    LAG.encode(),
    V1BETA1.encode(),
    b"/openapi/v3/",
    b"/readyz",
    b"/apis",
    b"namespaces",
    b"kafka_consumergroup_lag",
]
PIECES = st.sampled_from([*ODD_BYTES, *OF_QUERIES, *OF_PATHS])
TARGETS = st.lists(st.one_of(PIECES, BYTES), max_size=8).map(lambda parts: b"/" + b"".join(parts))
HEADER = st.text(st.characters(max_codepoint=255), max_size=40)


@given(TARGETS, st.sampled_from(["GET", "GET", "HEAD", "POST", "X"]), HEADER, HEADER, HEADER)
def test_whatever_is_asked_the_answer_is_no_fault_of_ours(
    target: bytes, method: str, accept: str, agent: str, etag: str
) -> None:
    answer = HOUSE.ask(method, target, accept=accept, user_agent=agent, if_none_match=etag)

    assert answer.code < 500
    assert "retry-after" not in answer.headers
    if answer.code >= 400:
        assert answer.is_status(answer.code, "")


HOUSE = House()


LONG_QUERIES = {
    "a value": "labelSelector=" + "x" * 100_000,
    "many requirements": "labelSelector=" + "a%3Db," * 20_000 + "a",
    "nothing": "&" * 100_000,
    "escaped backslashes": "fieldSelector=" + "%5C" * 30_000,
    "half operators": "fieldSelector=" + "a!" * 30_000,
    "one parameter": "x=1&" * 30_000,
}


@pytest.mark.parametrize("query", LONG_QUERIES.values(), ids=LONG_QUERIES.keys())
def test_a_very_long_query_is_answered(query: str) -> None:
    answer = House().get(f"{LAG}?{query}")

    assert answer.code in (200, 400)
    assert json.loads(answer.body)["kind"] in ("ExternalMetricValueList", "Status")


def kept_by_the_server(ask: Callable[[], None]) -> int:
    """Returns how many bytes that our own code allocated meanwhile are still in use; other threads do not count."""
    tracemalloc.start(8)
    try:
        ask()
        gc.collect()
        own = tracemalloc.Filter(inclusive=True, filename_pattern=f"{ROOT}/apiservice/*", all_frames=True)
        return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces((own,)).traces)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "count", "most"),
    [("x" * 1500, 300, 300_000), ("\N{GRINNING FACE}" * 400, 300, 300_000), ("x" * 400, 3000, 1_800_000)],
    ids=["long", "wide", "short"],
)
def test_paths_of_strangers_do_not_fill_the_memory(name: str, count: int, most: int) -> None:
    """Attributes of short paths are kept, but only of so many."""
    house = House()
    paths = [f"{NAMESPACE}/{number}{quote(name)}" for number in range(count)]
    house.get(paths[0], authorization="")

    def ask() -> None:
        assert {house.get(path, authorization="").code for path in paths} == {403}
        house.callers.reviewed.clear()

    assert kept_by_the_server(ask) < most
