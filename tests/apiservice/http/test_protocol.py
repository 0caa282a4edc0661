from dataclasses import replace
from errno import ECONNRESET
from pathlib import Path
from socket import SO_ERROR, SOL_SOCKET

import pytest

from apiservice.http.protocol import LONGEST_OF_STRANGERS, LONGEST_PATH, LONGEST_REQUEST, MOST_HEADERS, PIECE, Limits
from local.processes import wait_until
from tests.support.kubernetes.authorities import Issued
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

CLOSING = REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


def padded(request: bytes, length: int) -> bytes:
    """The request with a header that makes it this long."""
    return request[:-2] + b"X: " + b"x" * (length - len(request) - len(b"X: \r\n")) + b"\r\n\r\n"


def test_a_head_without_end_is_refused(running: Running) -> None:
    endless = padded(REQUEST, LONGEST_OF_STRANGERS + PIECE).removesuffix(b"\r\n\r\n")

    assert raw(running.plain, endless).startswith(b"HTTP/1.1 400")


def test_a_request_of_a_stranger_is_short(running: Running) -> None:
    assert raw(running.plain, padded(CLOSING, LONGEST_OF_STRANGERS)).startswith(b"HTTP/1.1 200")
    refused = raw(running.plain, padded(CLOSING, LONGEST_OF_STRANGERS + 1))
    assert refused.startswith(b"HTTP/1.1 400")
    assert refused.endswith(b"The request is too long.")
    # The connection may be reset before its peer has read why.
    assert not raw(running.plain, padded(CLOSING, 10 * LONGEST_OF_STRANGERS)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("shown", [PROXY, None])
def test_a_request_of_a_known_caller_may_be_longer(running: Running, shown: Issued | None) -> None:
    connection = running.connect(shown)
    if shown is None:
        assert get(connection, "/known")[0] == 200
    connection.request("GET", "/", headers={"X": "x" * (LONGEST_REQUEST - 1000)})
    assert connection.getresponse().read()
    connection.request("GET", "/", headers={"X": "x" * LONGEST_REQUEST})

    assert connection.getresponse().status == 400


def test_a_long_path_is_refused(running: Running) -> None:
    refused = raw(running.plain, b"GET /" + b"a" * LONGEST_PATH + b" HTTP/1.1\r\nHost: x\r\n\r\n")

    assert refused.startswith(b"HTTP/1.1 400")
    assert refused.endswith(b"The request's path is too long.")


def test_many_headers_are_for_peers_with_a_certificate(running: Running) -> None:
    most = MOST_HEADERS - 2  # beside Host and Connection
    assert raw(running.plain, CLOSING[:-2] + b"a:b\r\n" * most + b"\r\n").startswith(b"HTTP/1.1 200")

    refused = raw(running.plain, CLOSING[:-2] + b"a:b\r\n" * (most + 1) + b"\r\n")
    assert refused.endswith(b"The request has too many headers.")


@pytest.mark.parametrize("rest", [REQUEST, b"no HTTP at all", b"\r\n" * LONGEST_OF_STRANGERS])
def test_only_one_request_is_answered_at_a_time(running: Running, rest: bytes) -> None:
    """The rest arrives before the answer; it is neither parsed nor kept, and the answer is whole."""
    answer = raw(running.plain, REQUEST.replace(b"GET /", b"GET /interrupted") + rest)

    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"\r\nconnection: close\r\n\r\n[]")


def test_a_trailer_is_no_header(running: Running) -> None:
    """It arrives after the headers with which the front proxy names the user."""
    trailer = b"0\r\nX-Remote-Group: system:masters\r\n\r\n"
    chunked = REQUEST.replace(b"GET /", b"GET /headers")[:-2] + b"Transfer-Encoding: chunked\r\n\r\n"

    with connected(running.plain, chunked + trailer) as connection:
        assert b'["host", "transfer-encoding"]' in connection.recv(1000)
        connection.sendall(CLOSING)
        assert connection.recv(12) == b"HTTP/1.1 200"


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


def test_a_peer_that_reads_no_answer_is_cut_off_and_the_kernel_keeps_none_of_it(tmp_path: Path) -> None:
    request = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n"
    with serving(tmp_path, replace(PATIENT, reading=0.2)) as running, connected(running.plain, request) as peer:
        # The application waits for the peer, or for its connection to be gone.
        assert running.application.ended.wait(SECONDS)
        wait_until(lambda: peer.getsockopt(SOL_SOCKET, SO_ERROR) == ECONNRESET, "a reset connection", SECONDS)


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


def test_a_long_body_is_not_read_to_its_end(running: Running) -> None:
    head = REQUEST[:-2] + b"Content-Length: %d\r\n\r\n" % (3 * LONGEST_REQUEST)
    with connected(running.plain, head) as connection:
        assert connection.recv(12) == b"HTTP/1.1 200"
        assert is_cut_off(connection, b"x" * PIECE)
