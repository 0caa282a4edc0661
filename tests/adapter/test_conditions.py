"""A condition is one definition; the log, readiness and the gauge show it."""

import logging
from functools import partial
from threading import Thread

import pytest

from adapter.conditions import Conditions, Definition
from adapter.errors import one_line
from adapter.telemetry import Telemetry
from tests.adapter.test_telemetry import samples_of
from tests.support.kubernetes.fakes import ask, plain_port

TEAPOT = Definition("teapot", "Hot", "tea can be made")


def test_a_new_condition_is_seen_in_the_log_in_readiness_and_in_the_gauge(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    telemetry = Telemetry()
    app = plain_port(telemetry.conditions)

    def shown(status: str) -> float:
        return samples_of(telemetry)["kafka_lag_adapter_condition", frozenset({"teapot", "", status})]

    telemetry.conditions.expect(TEAPOT)
    assert ask(app, "GET", "/readyz").code == 500
    assert (shown("unknown"), shown("false")) == (1, 0)

    for _ in range(2):
        telemetry.conditions.fails(TEAPOT, "Cold", "there is no fire", details="the broker's words")
    assert ask(app, "GET", "/readyz").code == 200, "it is known, so the process is ready"
    verbose = ask(app, "GET", "/readyz?verbose").body.decode()
    assert "\nwarn: teapot: Cold since " in verbose
    assert ": there is no fire; the log has details\n" in verbose
    assert (shown("false"), shown("true")) == (1, 0)

    telemetry.conditions.holds(TEAPOT)
    assert (shown("false"), shown("true")) == (0, 1)
    assert caplog.messages == ["teapot: Cold: there is no fire: the broker's words", "teapot: Hot: tea can be made"]


def test_what_readiness_shows_is_already_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    conditions = Conditions()
    seen_while_logging: list[tuple[str, ...]] = []

    def note(_record: logging.LogRecord) -> bool:
        seen_while_logging.append(tuple(each.reason for each in conditions.current))
        return True

    monkeypatch.setattr(logging.getLogger("adapter.conditions"), "filters", [note])
    conditions.fails(TEAPOT, "Cold", "there is no fire")
    conditions.fails(TEAPOT, "Stolen", "there is no pot")

    assert seen_while_logging == [(), ("Cold",)]
    assert [each.reason for each in conditions.current] == ["Stolen"]


WORDS = "it\ud83d failed\r\n\x1b[31m[+]listening ok\u202e\u2028\x00"


def test_words_of_other_servers_are_printable_and_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    telemetry = Telemetry()
    fails, holds = telemetry.conditions.fails, telemetry.conditions.holds
    for report in (partial(fails, TEAPOT, "Cold"), partial(holds, TEAPOT)):
        report(WORDS, details=WORDS)

        verbose = ask(plain_port(telemetry.conditions), "GET", "/readyz?verbose").body.decode()
        assert ": it failed [31m[+]listening ok" in verbose.splitlines()[2]
        assert len(verbose.splitlines()) == 4
        assert caplog.messages[-1].endswith(": it failed [31m[+]listening ok: it failed [31m[+]listening ok")


def test_a_log_line_about_a_cluster_is_printable_and_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    Conditions().fails(TEAPOT, "Cold", "no fire", cluster="tea\n\udcff")

    assert caplog.messages == ["teapot of cluster tea: Cold: no fire"]


def test_of_the_words_of_other_servers_only_the_first_are_taken() -> None:
    assert one_line("no fire " * 1_000_000) == ("no fire " * 512).strip()


def test_a_condition_has_changed_when_its_status_or_reason_last_did() -> None:
    now = iter(range(10))
    conditions = Conditions(lambda: next(now))
    times = []
    for reason, message in (("Cold", "no fire"), ("Cold", "no wood"), ("Stolen", "no wood")):
        conditions.fails(TEAPOT, reason, message)
        times.append(conditions.current[0].changed_at)

    assert times == [0, 0, 2]


def test_a_change_that_is_being_logged_does_not_bring_back_a_condition_that_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conditions = Conditions()
    forgetting = Thread(target=conditions.forget, kwargs={"cluster": "main"})

    def forget(_record: logging.LogRecord) -> bool:
        forgetting.start()
        # It has to wait for the change, so this is how long a forgotten condition has time to come back.
        forgetting.join(0.1)
        return True

    monkeypatch.setattr(logging.getLogger("adapter.conditions"), "filters", [forget])
    conditions.fails(TEAPOT, "Cold", "there is no fire", cluster="main")
    forgetting.join(30)

    assert conditions.current == ()
