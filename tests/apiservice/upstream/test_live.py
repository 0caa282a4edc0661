"""Reads that are passed on to another server of external metrics, by real TLS connections."""

import asyncio
import json
import socket
import threading
from pathlib import Path

import pytest

from adapter.errors import AdapterError
from apiservice.api_group import EXTERNAL
from apiservice.http.read_paths import Read
from apiservice.http.status import BadRequest, MethodNotAllowed, PathUnknown
from apiservice.upstream import client, live
from apiservice.upstream.circuit import FAILURES, FORGET_SECONDS, PAUSE_SECONDS
from local.processes import wait_until
from tests.support.kubernetes.authorities import Authority
from tests.support.kubernetes.beside import NAME, THEIRS, Beside, reads
from tests.support.kubernetes.fakes import LAG, V1BETA1, FakeCallers, FakeMetrics, House
from tests.support.kubernetes.other_server import HOST, VALUES, Answer, OtherServer


def test_the_reply_passes_as_it_is_without_its_headers(beside: Beside) -> None:
    response = beside.answer()

    assert response.body == VALUES
    assert response.headers["content-type"] == "application/json"
    assert "retry-after" not in response.headers


def test_an_empty_list_passes_as_well(beside: Beside) -> None:
    beside.other.answer = Answer(body=b'{"kind":"ExternalMetricValueList","items":null}')

    assert beside.read() == beside.other.answer.body


def test_only_namespace_metric_and_selector_are_passed_on(beside: Beside) -> None:
    selector = "queue=a%20b,c%20in%20(d,e),!f%2Fg%2B"
    beside.read("Queue@team:x", f"labelSelector={selector}&limit=1&pretty=true&timeoutSeconds=9")
    target, headers = beside.other.asked[-1]

    path, _, query = target.partition("?")
    assert path == f"{V1BETA1}/namespaces/shop/queue%40team%3Ax", "in lower case, as in the access review"
    assert query == "labelSelector=queue%3Da%20b%2Cc%20in%20%28d%2Ce%29%2C%21f%2Fg%2B"
    assert headers["authorization"] == "Bearer first"
    assert headers.keys() == {"accept", "accept-encoding", "authorization", "host", "user-agent"}


def test_the_newest_token_is_used(beside: Beside) -> None:
    beside.read()
    beside.tokens.append("Bearer second")
    beside.read()

    assert beside.other.asked[-1][1]["authorization"] == "Bearer second"


@pytest.mark.parametrize(
    ("namespace", "metric", "query", "error"),
    [
        ("..", "queue", "", PathUnknown),
        ("shop", "..", "", PathUnknown),
        ("shop", "status", "", PathUnknown),
        ("shop", "STATUS", "", PathUnknown),
        ("shop", "queue", "watch=1", MethodNotAllowed),
        ("shop", "queue", "fieldSelector=a%3Db", BadRequest),
        ("shop", "queue", "labelSelector=a&labelSelector=b", BadRequest),
    ],
)
def test_what_is_no_read_is_refused_without_asking(
    beside: Beside, namespace: str, metric: str, query: str, error: type[AdapterError]
) -> None:
    with pytest.raises(error):
        beside.read(metric, query, namespace)

    assert reads(beside) == 0


@pytest.mark.parametrize("code", [400, 403, 404, 429, 500, 504])
def test_a_status_passes_with_its_code(beside: Beside, code: int) -> None:
    beside.other.answer = Answer(code, json.dumps({"kind": "Status", "message": "no", "code": code}).encode())
    response = beside.answer()

    assert (response.status_code, response.body) == (code, beside.other.answer.body)


LARGE = b'{"kind":"ExternalMetricValueList","items":[' + b" " * client.MOST_BYTES + b"]}"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(body=b"<html>"), "sent no reply of the metrics API (status 200)"),
        (Answer(body=b"[" * 100_000), "sent no reply of the metrics API (status 200)"),
        (Answer(body=b'{"kind":"Status"}'), "sent no reply of the metrics API (status 200)"),
        (Answer(body=b'{"kind":"ExternalMetricValueList","items":[1]}'), "sent no reply of the metrics API"),
        (Answer(500, b"broken"), "sent no reply of the metrics API (status 500)"),
        (Answer(799, b'{"kind":"Status","code":799}'), "sent no reply of the metrics API (status 799)"),
        (Answer(503, VALUES), "sent no reply of the metrics API (status 503)"),
        (Answer(body=LARGE), "sent more than 1024 KiB"),
        (Answer(body=VALUES, length=1000), "closed the connection"),
        (Answer(403, b'{"kind":"Status","message":"who is first?"}'), "repeats the token of this adapter"),
        (Answer(401, b'{"kind":"Status","code":401}'), "does not accept the token of this adapter's ServiceAccount"),
    ],
)
def test_a_reply_of_another_kind_is_refused_with_the_reason(beside: Beside, answer: Answer, words: str) -> None:
    beside.other.answer = answer

    assert beside.refusal().startswith(words)


def test_a_redirection_is_not_followed_so_the_token_goes_nowhere_else(beside: Beside, tmp_path: Path) -> None:
    with OtherServer(tmp_path, beside.authority) as elsewhere:
        beside.other.answer = Answer(302, b"", {"Location": f"https://{HOST}:{elsewhere.port}/"})

        assert beside.refusal() == "sent no reply of the metrics API (status 302)"
        assert elsewhere.asked == []


def test_a_server_that_cannot_be_verified_gets_no_token(beside: Beside, tmp_path: Path) -> None:
    with OtherServer(tmp_path, Authority("strangers-ca")) as impostor:
        beside.settings = beside.settings_with(port=impostor.port)
        assert beside.refusal() == "has a certificate of an authority that is not trusted here (caFile)"
        assert impostor.asked == []
    with OtherServer(tmp_path, beside.authority, host="another.others.svc") as impostor:
        beside.settings = beside.settings_with(port=impostor.port)
        assert f"does not cover the host name {HOST}" in beside.refusal()
        assert impostor.asked == []


def test_a_server_that_cannot_be_reached_is_reported_as_that(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    beside.settings = beside.settings_with(port=port)
    assert beside.refusal() == "cannot be reached: Connection refused"

    def unknown(*_: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert beside.refusal() == "cannot be found: its name does not resolve"


def test_a_connection_that_the_server_has_closed_meanwhile_is_no_failure(beside: Beside) -> None:
    beside.other.answer = Answer(hangs_up=True)

    assert [beside.read() for _ in range(5)] == [VALUES] * 5


def test_a_server_that_does_not_answer_is_asked_again_by_one_read_at_a_time(
    beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(client, "ANSWER_SECONDS", 0.2)
    beside.other.answer = frozen = Answer(gate=threading.Event())
    assert [beside.refusal() for _ in range(FAILURES)] == ["does not answer in time"] * FAILURES
    assert beside.upstream.problem == f"{NAME} does not answer in time"

    # What was given up may reach the server later, so the read that is not sent has a name of its own.
    assert beside.refusal("unasked") == f"does not answer in time; it is asked again every {PAUSE_SECONDS:g} s"
    beside.clock.seconds += PAUSE_SECONDS
    assert beside.refusal() == "does not answer in time"
    assert "it is asked again" in beside.refusal()

    assert frozen.gate is not None
    frozen.gate.set()
    beside.other.answer = Answer()
    monkeypatch.setattr(live, "ANSWER_SECONDS", 60)
    monkeypatch.setattr(client, "ANSWER_SECONDS", 60)
    beside.clock.seconds += PAUSE_SECONDS
    assert [beside.read() for _ in range(2)] == [VALUES] * 2
    assert not any("unasked" in target for target, _ in beside.other.asked)


def test_a_thread_that_still_waits_for_the_server_is_seen_at_the_end(
    beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "ANSWER_SECONDS", 0.2)
    beside.other.answer = Answer(gate=(gate := threading.Event()))
    assert beside.refusal() == "does not answer in time"
    beside.upstreams.stop(60)
    assert beside.upstreams.is_hanging
    gate.set()

    wait_until(lambda: not beside.upstreams.is_hanging, "the end of its threads", 60)


def test_a_metric_that_fails_while_others_are_answered_leaves_them_available(beside: Beside) -> None:
    beside.other.answer = Answer(gate=(gate := threading.Event()), length=1000)

    async def read_both() -> list[object]:
        failing = [
            asyncio.create_task(beside.upstream.answer(EXTERNAL, Read("shop", "slow"), b"")) for _ in range(FAILURES)
        ]
        while reads(beside) < FAILURES:
            await asyncio.sleep(0.01)
        beside.other.answer = Answer()
        await beside.upstream.answer(EXTERNAL, Read("shop", "queue"), b"")
        beside.other.answer = Answer(length=1000)
        gate.set()
        return await asyncio.gather(*failing, return_exceptions=True)

    assert {str(error) for error in asyncio.run(read_both())} == {f"{NAME} closed the connection"}
    beside.other.answer = Answer()
    assert beside.read() == VALUES


def test_a_failure_of_long_ago_is_no_state_of_the_server(beside: Beside) -> None:
    beside.upstream.list_metrics()
    beside.other.answer = Answer(length=1000)
    for _ in range(FAILURES):
        beside.refusal()
    circuit = beside.upstream._circuit
    assert circuit.problem
    beside.clock.seconds += FORGET_SECONDS

    assert circuit.problem == ""


def test_the_upstream_follows_the_settings(beside: Beside) -> None:
    first = beside.upstream
    beside.settings = beside.settings_with()
    assert beside.upstream is first
    beside.settings = beside.settings_with(port=9)
    assert beside.upstream is not first
    beside.settings = None
    assert beside.upstreams.current is None


def test_our_metrics_are_never_asked_of_the_upstream(beside: Beside) -> None:
    house = House(metrics=FakeMetrics({}), upstreams=(beside.upstreams,))
    answer = house.get(LAG)

    assert answer.is_status(404, "no metric kafka_consumergroup_lag is served here")
    assert reads(beside) == 0


def test_others_metrics_are_asked_of_the_upstream_once_the_caller_may_read_them(beside: Beside) -> None:
    beside.other.answer = Answer()
    refusing = House(callers=FakeCallers(allowed=frozenset()), upstreams=(beside.upstreams,))
    assert refusing.get(THEIRS).code == 403
    assert reads(beside) == 0

    house = House(upstreams=(beside.upstreams,))
    assert (house.get(THEIRS).code, house.get(THEIRS).body) == (200, VALUES)
    assert house.counted == [("upstream", 200)] * 2


def test_what_another_adapter_asks_for_is_not_passed_on_in_a_circle(beside: Beside) -> None:
    answer = House(upstreams=(beside.upstreams,)).get(THEIRS, user_agent="kafka-lag-adapter")

    assert answer.is_status(404, "no metric queue is served here")
    assert reads(beside) == 0
