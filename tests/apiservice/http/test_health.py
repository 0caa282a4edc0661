"""Health for probes and people, and our own metrics."""

import itertools

import pytest

from apiservice.app import create_metrics_app
from apiservice.auth.caller import ReviewUnavailable
from apiservice.http.health import Readiness
from tests.support.kubernetes.fakes import LAG, FakeCallers, House, ask


@pytest.mark.parametrize(
    "target", ["/livez", "/readyz", "/healthz", "/readyz/ping", "/readyz/certificate", "/livez?verbose"]
)
def test_health_needs_no_credentials_and_no_reviews(target: str) -> None:
    house = House(checks={"certificate": True}, callers=FakeCallers(failure=ReviewUnavailable("silent")))
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
        "readyz check failed",
    ]


def test_verbose_lists_every_check() -> None:
    answer = House(checks={"certificate": True}).get("/readyz?verbose")

    assert answer.body == b"[+]ping ok\n[+]certificate ok\n[+]shutdown ok\nreadyz check passed\n"


def test_a_remark_is_shown_when_asked_for_and_makes_nobody_unready() -> None:
    remarks = {"api-service": lambda: "belongs\n[+]to KEDA", "nothing": lambda: ""}
    app = create_metrics_app(Readiness({}, remarks), lambda: (b"", "text/plain"))

    assert ask(app, "GET", "/readyz").body == b"ok"
    verbose = ask(app, "GET", "/readyz?verbose")
    assert (verbose.code, verbose.body) == (
        200,
        b"[+]ping ok\n[+]shutdown ok\nwarn: api-service: belongs [+]to KEDA\nreadyz check passed\n",
    )


def test_an_excluded_check_does_not_count() -> None:
    house = House(checks={"certificate": False})

    assert house.get("/readyz?exclude=certificate").body == b"ok"
    assert house.get("/readyz?exclude=shutdown").code == 500
    lines = house.get("/readyz?verbose&exclude=certificate&exclude=kafka").body.decode()
    assert "[+]certificate excluded: ok" in lines
    assert 'no matches for "kafka"' in lines


def test_a_single_check_has_its_own_path() -> None:
    house = House(checks={"certificate": False})

    assert (house.get("/readyz/certificate").code, house.get("/readyz/ping").body) == (500, b"ok")


def test_shutting_down_ends_readiness_and_not_life() -> None:
    house = House()
    house.readiness.shut_down()

    codes = {path: house.get(path).code for path in ("/readyz", "/livez", "/healthz", LAG)}
    assert codes == {"/readyz": 500, "/livez": 200, "/healthz": 200, LAG: 200}


def test_our_own_metrics_are_text() -> None:
    answer = House().get("/metrics", accept="application/openmetrics-text")

    assert (answer.body, answer.headers["content-type"]) == (b"kafka_lag_adapter_up 1\n", "text/plain; version=0.0.4")


def test_a_flood_of_scrapes_writes_our_metrics_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiservice.app.EXPOSED_SECONDS", 3600)
    bodies = itertools.count()
    app = create_metrics_app(Readiness({}), lambda: (b"%d" % next(bodies), "text/plain"))

    assert [ask(app, "GET", "/metrics").body for _ in range(3)] == [b"0"] * 3


def test_the_plain_port_serves_health_and_metrics_and_nothing_else() -> None:
    app = create_metrics_app(Readiness({"certificate": lambda: False}), lambda: (b"up 1\n", "text/plain"))
    codes = {path: ask(app, "GET", path).code for path in ("/metrics", "/livez", "/readyz", "/apis", LAG)}

    assert codes == {"/metrics": 200, "/livez": 200, "/readyz": 500, "/apis": 404, LAG: 404}
