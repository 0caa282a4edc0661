from dataclasses import replace
from pathlib import Path

import pytest

from apiservice.http.protocol import LONGEST_HEAD, MOST_PIPELINED, Limits
from tests.support.kubernetes.listeners import (
    PATIENT,
    PROXY,
    REQUEST,
    SECONDS,
    Running,
    connected,
    get,
    is_closed,
    is_cut_off,
    raw,
    serving,
    wait_for_end,
)


def test_a_head_without_end_is_refused(running: Running) -> None:
    endless = b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * (LONGEST_HEAD + 1)

    assert raw(running.plain, endless).startswith(b"HTTP/1.1 400")


def test_a_whole_head_beyond_the_limit_is_refused(running: Running) -> None:
    groups = b"".join(b"X-Remote-Group: %0100d\r\n" % number for number in range(150))
    head = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + groups + b"X: "

    assert raw(running.plain, head + b"x" * (LONGEST_HEAD // 2) + b"\r\n\r\n").startswith(b"HTTP/1.1 200")
    refused = raw(running.plain, head + b"x" * (LONGEST_HEAD - len(groups)) + b"\r\n\r\n")
    assert refused.startswith(b"HTTP/1.1 400")
    assert refused.endswith(b"The request's head is too long.")
    # The connection may be reset before its peer has read why.
    assert not raw(running.plain, head + b"x" * (2 * LONGEST_HEAD) + b"\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_a_long_head_after_another_request_is_refused(running: Running) -> None:
    first = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    second = b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * (LONGEST_HEAD + 1) + b"\r\n\r\n"

    assert b"The request's head is too long." in raw(running.plain, first + second)


def test_a_long_path_is_refused(running: Running) -> None:
    refused = raw(running.plain, b"GET /" + b"%61" * 10_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")

    assert refused.startswith(b"HTTP/1.1 400")
    assert refused.endswith(b"The request's path is too long.")


def test_many_headers_are_for_peers_with_a_certificate(running: Running) -> None:
    head = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a:b\r\n" * 10_000 + b"\r\n"

    assert raw(running.plain, head).startswith(b"HTTP/1.1 400")


def test_requests_that_are_not_waited_for_are_bounded(running: Running) -> None:
    refused = raw(running.plain, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 200)

    assert refused.count(b"HTTP/1.1 200") <= MOST_PIPELINED + 1
    assert b"The request's queue of requests is too long." in refused


# How long a connection may take


def test_a_peer_that_begins_no_handshake_is_cut_off(tmp_path: Path) -> None:
    with serving(tmp_path, replace(PATIENT, handshake=0.2)) as running, connected(running.secure) as silent:
        assert is_closed(silent)


def test_a_peer_that_sends_no_request_is_cut_off(tmp_path: Path) -> None:
    with serving(tmp_path, replace(PATIENT, first_request=0.2)) as running, connected(running.plain) as silent:
        assert is_closed(silent)


@pytest.mark.parametrize("begin", [b"GET / HTTP/1.1\r\nX: ", b"\r\n"])
def test_a_first_request_has_its_deadline_however_it_is_sent(tmp_path: Path, begin: bytes) -> None:
    with serving(tmp_path, replace(PATIENT, first_request=0.3)) as running, connected(running.plain, begin) as slow:
        assert is_cut_off(slow, begin[-1:])


@pytest.mark.parametrize("begin", [b"GET / HTTP/1.1\r\nX: ", b"\r\n"])
def test_a_later_head_has_its_deadline_however_it_is_sent(tmp_path: Path, begin: bytes) -> None:
    with serving(tmp_path, replace(PATIENT, head=0.3)) as running, connected(running.plain, REQUEST) as slow:
        assert slow.recv(12) == b"HTTP/1.1 200"
        slow.sendall(begin)
        assert is_cut_off(slow, begin[-1:])


def test_a_body_that_never_ends_is_cut_off(tmp_path: Path) -> None:
    head = b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    with serving(tmp_path, replace(PATIENT, body=0.3)) as running, connected(running.plain, head) as slow:
        assert slow.recv(12) == b"HTTP/1.1 200"
        assert is_cut_off(slow, b"x")


def test_a_peer_that_reads_no_answer_is_cut_off(tmp_path: Path) -> None:
    request = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n"
    with serving(tmp_path, replace(PATIENT, reading=0.2)) as running, connected(running.plain, request):
        # The application waits for the peer, or for its connection to be gone.
        assert running.application.sent.wait(SECONDS)


def test_an_idle_connection_is_closed_after_its_time(tmp_path: Path) -> None:
    with serving(tmp_path, replace(PATIENT, idle=1)) as running, connected(running.plain, REQUEST) as idle:
        assert idle.recv(12) == b"HTTP/1.1 200"
        assert is_closed(idle)


def test_deadlines_are_over_once_they_are_met(tmp_path: Path) -> None:
    """A later request has deadlines of its own, and an answer has none."""
    limits = Limits(handshake=4.0, first_request=4.0, head=4.0, body=4.0, reading=4.0)
    with serving(tmp_path, limits) as running:
        connection = running.connect(PROXY)
        assert get(connection)[0] == 200
        connection.request("GET", "/slow", body=b"x" * 1000)
        assert not wait_for_end(running, 4.5)
        running.application.gate.set()
        assert connection.getresponse().read()
        assert not wait_for_end(running, 4.5)
        assert get(connection)[0] == 200


# How many connections there may be


def test_a_head_of_many_groups_is_served(running: Running) -> None:
    connection = running.connect(PROXY)
    connection.putrequest("GET", "/")
    for number in range(1000):
        connection.putheader("X-Remote-Group", f"oidc:department-{number}")
    connection.endheaders()

    assert connection.getresponse().status == 200


def test_a_long_body_does_not_count_as_head(running: Running) -> None:
    connection = running.connect_plain()
    connection.request("POST", "/", body=b"x" * (3 * LONGEST_HEAD))
    assert connection.getresponse().read() == b"[]"
    assert get(connection)[0] == 200
