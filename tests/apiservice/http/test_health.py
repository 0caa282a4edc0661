"""Health for probes and people, and our own metrics."""

import itertools

import pytest

from adapter.conditions import API_SERVICE, VALUES
from apiservice.auth.cluster_settings import ClusterUnreachable
from tests.support.kubernetes.fakes import LAG, FakeCallers, House, ask, conditions_of, plain_port


@pytest.mark.parametrize("target", ["/livez", "/readyz", "/healthz", "/readyz?verbose"])
def test_health_needs_no_credentials_and_no_reviews(target: str) -> None:
    house = House(checks={"certificate": True}, callers=FakeCallers(failure=ClusterUnreachable("silent")))
    answer = house.get(target, authorization="Bearer wrong")

    assert answer.code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert house.callers.reviewed == []


def test_a_failing_check_is_named_and_its_reason_is_not() -> None:
    answer = House(checks={"certificate": True, "authentication": False}).get("/readyz", authorization="")

    assert answer.code == 500
    assert answer.body.decode().splitlines() == [
        "[+]ping ok",
        "[+]certificate ok",
        "[-]authentication failed: reason withheld",
        "[+]shutdown ok",
        "info: certificate: Fine since 2026-11-21T11:48:29Z: all is well",
        "warn: authentication: NotKnownYet since 2026-11-21T11:48:29Z: not known yet",
        "readyz check failed",
    ]


def test_verbose_shows_every_condition_without_its_details() -> None:
    conditions = conditions_of({"certificate": True})
    conditions.fails(API_SERVICE, "NotRegistered", "belongs\n[+]to KEDA", details="secret")
    conditions.holds(VALUES, cluster="main", details="secret")
    app = plain_port(conditions)

    assert ask(app, "GET", "/readyz").body == b"ok"
    verbose = ask(app, "GET", "/readyz?verbose")
    assert (verbose.code, verbose.body.decode().splitlines()) == (
        200,
        [
            "[+]ping ok",
            "[+]certificate ok",
            "[+]shutdown ok",
            "info: certificate: Fine since 2026-11-21T11:48:29Z: all is well",
            "warn: api-service: NotRegistered since 2026-11-21T11:48:29Z: belongs [+]to KEDA; the log has details",
            "info: values of cluster main: Complete since 2026-11-21T11:48:29Z: everything could be read",
            "readyz check passed",
        ],
    )


def test_shutting_down_ends_readiness_and_not_life() -> None:
    house = House()
    house.stopping.set()

    codes = {path: house.get(path).code for path in ("/readyz", "/livez", "/healthz", LAG)}
    assert codes == {"/readyz": 500, "/livez": 200, "/healthz": 200, LAG: 200}


def test_our_own_metrics_are_text() -> None:
    answer = House().get("/metrics", accept="application/openmetrics-text")

    assert (answer.body, answer.headers["content-type"]) == (b"kafka_lag_adapter_up 1\n", "text/plain; version=0.0.4")


def test_a_flood_of_scrapes_writes_our_metrics_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiservice.http.health.EXPOSED_SECONDS", 3600)
    bodies = itertools.count()
    app = plain_port(exposition=lambda: (b"%d" % next(bodies), "text/plain"))

    assert [ask(app, "GET", "/metrics").body for _ in range(3)] == [b"0"] * 3


def test_the_plain_port_serves_health_and_metrics_and_nothing_else() -> None:
    app = plain_port(conditions_of({"certificate": False}))
    codes = {path: ask(app, "GET", path).code for path in ("/metrics", "/livez", "/readyz", "/apis", LAG)}

    assert codes == {"/metrics": 200, "/livez": 200, "/readyz": 500, "/apis": 404, LAG: 404}
