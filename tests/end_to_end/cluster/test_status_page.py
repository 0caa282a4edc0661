"""The status page of a real adapter on a real broker, opened by a real browser: through kube-apiserver, and on the
adapter's own port."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest

from local.adapter import EXTERNAL_METRICS, Adapter
from local.browser import PHONE, Browser, OpenPage
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.processes import wait_until
from tests.end_to_end.cluster.test_callers import through_kube_apiserver
from tests.support.real.groups_to_read import COMMITS, LAG, MESSAGES
from tests.support.real.open_pages import CONTRAST, ELSEWHERE, MADE_OF_NAMES, SCROLLS_SIDEWAYS

SECONDS = 120.0
RBAC = "rbac.authorization.k8s.io"
ROLES = {
    "status-tenant": [{"apiGroups": ["external.metrics.k8s.io"], "resources": ["*"], "verbs": ["get", "list"]}],
    "status-operator": [{"nonResourceURLs": ["/status", "/explain/*"], "verbs": ["get"]}],
}
LAG_OF_LEDGER = sum(MESSAGES.get(place, 0) - committed for place, committed in COMMITS["ledger"].items())
ROWS = "[...document.querySelectorAll('section:first-of-type tbody tr')].map(each => each.innerText)"


@pytest.fixture(scope="module")
def tokens(control_plane: ControlPlane, adapter: Adapter) -> Iterator[dict[str, dict[str, str]]]:
    """Role -> the headers of a ServiceAccount that has its rights in the namespace `default` and no others."""
    documents = [document for name, rules in ROLES.items() for document in bound(name, rules)]
    control_plane.apply(documents)
    found = {name: {"Authorization": f"Bearer {control_plane.token_of('default', name)}"} for name in ROLES}
    page = page_of(control_plane).removeprefix(control_plane.url)
    wait_until(lambda: allows(control_plane, adapter, page, found), "the rights to count", 2 * SECONDS)
    yield found
    control_plane.delete(documents)


def allows(plane: ControlPlane, adapter: Adapter, page: str, found: dict[str, dict[str, str]]) -> bool:
    """Whether kube-apiserver goes by both bindings, and the adapter, which keeps a refusal for 10 s."""
    through = through_kube_apiserver(plane, page, found["status-tenant"])
    return through[0] == adapter.get("/status", headers=found["status-operator"])[0] == HTTPStatus.OK


def bound(name: str, rules: list[dict[str, Any]]) -> list[Manifest]:
    named = {"name": name, "namespace": "default"}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    subjects = [{"kind": "ServiceAccount", **named}]
    is_of_namespace = "resources" in rules[0]
    binding = {
        "kind": "RoleBinding" if is_of_namespace else "ClusterRoleBinding",
        "metadata": named if is_of_namespace else {"name": name},
    }
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named},
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {"apiVersion": f"{RBAC}/v1", "roleRef": reference, "subjects": subjects, **binding},
    ]


def page_of(plane: ControlPlane, namespace: str = "default") -> str:
    return f"{plane.url}{EXTERNAL_METRICS}/namespaces/{namespace}/{LAG}?output=html"


def row_of(seen: OpenPage, group: str) -> str:
    rows: list[str] = seen.evaluate(ROWS)
    return next((" ".join(each.split()) for each in rows if f" {group} " in f" {' '.join(each.split())} "), "")


def test_through_kube_apiserver_a_tenant_sees_the_lag_of_each_group(
    chromium: Browser, control_plane: ControlPlane, tokens: dict[str, dict[str, str]]
) -> None:
    seen = chromium.open(page_of(control_plane), headers=tokens["status-tenant"])

    assert f" {LAG_OF_LEDGER:,} " in row_of(seen, "ledger")
    assert "caught up" in row_of(seen, "idle")
    assert seen.complaints == []
    # It asks for itself again after 30 s.
    assert {*seen.requests} - {"data:,"} == {page_of(control_plane)}
    assert (seen.evaluate(MADE_OF_NAMES), seen.evaluate(ELSEWHERE)) == ([], [])


def test_the_name_of_a_group_leads_to_its_explanation(
    chromium: Browser, control_plane: ControlPlane, tokens: dict[str, dict[str, str]]
) -> None:
    headers = tokens["status-tenant"]
    seen = chromium.open(page_of(control_plane), headers=headers)
    links = {each.rpartition("/")[2]: each for each in seen.evaluate("[...document.links].map(each => each.href)")}

    for name, group in {"ledger": "ledger", "Mail%20Service%2Feu": "Mail Service/eu"}.items():
        explained = chromium.open(links[name], headers=headers)
        assert f"Group {group} in cluster main has a lag of" in explained.evaluate("document.body.innerText")


def test_the_lag_of_each_group_is_followed_from_minute_to_minute(control_plane: ControlPlane, adapter: Adapter) -> None:
    del adapter

    def page() -> str:
        return control_plane.raw(page_of(control_plane).removeprefix(control_plane.url))[1].decode()

    wait_until(lambda: f"lag: at most {LAG_OF_LEDGER:,} in" in page(), "a look of a minute ago", 2 * SECONDS)


def test_on_its_own_port_the_adapter_shows_the_hpas_of_all_namespaces_and_what_they_got(
    chromium: Browser,
    control_plane: ControlPlane,
    adapter: Adapter,
    tokens: dict[str, dict[str, str]],
    namespace: str,
) -> None:
    control_plane.apply([hpa_on_ledger(namespace)])
    url, hpa = f"https://127.0.0.1:{adapter.port}/status", f"{namespace}/status-ledger"

    def seen() -> OpenPage:
        return chromium.open(url, PHONE, tokens["status-operator"])

    # The HPA controller says within 2 s that the target does not exist, and the watch of HPAs sees it.
    wait_until(lambda: f"{hpa} Deployment/nobody" in words(seen()), "the HPA to be seen", SECONDS)
    wait_until(lambda: "AbleToScale False: FailedGetScale" in words(seen()), "the HPA's condition", SECONDS)
    last = seen()
    assert f"{LAG} group=ledger target AverageValue 4k {LAG_OF_LEDGER}" in words(last)
    assert hpa in row_of(last, "ledger")
    assert not last.evaluate(SCROLLS_SIDEWAYS)
    assert last.evaluate(CONTRAST)["texts"] >= 4.5
    assert last.complaints == []


def words(seen: OpenPage) -> str:
    return " ".join(seen.evaluate("document.body.innerText").split())


def hpa_on_ledger(namespace: str) -> Manifest:
    metric = {"name": LAG, "selector": {"matchLabels": {"group": "ledger"}}}
    source = {"metric": metric, "target": {"type": "AverageValue", "averageValue": "4k"}}
    spec: dict[str, Any] = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nobody"},
        "maxReplicas": 3,
        "metrics": [{"type": "External", "external": source}],
    }
    metadata = {"name": "status-ledger", "namespace": namespace}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def test_who_may_not_read_gets_a_status_and_no_page(
    adapter: Adapter, tokens: dict[str, dict[str, str]], namespace: str
) -> None:
    tenant, operator = tokens["status-tenant"], tokens["status-operator"]
    own = f"{EXTERNAL_METRICS}/namespaces/{namespace}/{LAG}?output=html"

    refused = [adapter.get("/status", headers=tenant), adapter.get(own, headers=tenant)]
    refused += [adapter.get(own, headers=operator), adapter.get("/status")]
    assert [(code, b"ledger" in body) for code, body in refused] == [(403, False)] * 4
    assert adapter.get("/status", headers=operator)[0] == 200
