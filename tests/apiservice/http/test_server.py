import asyncio
import contextlib
import gc
import http.client
import json
import logging
import resource
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import uvloop

from apiservice.http import server
from apiservice.http.protocol import KEEP_ALIVE_SECONDS, LONGEST_HEAD, MOST_PIPELINED, Limits
from apiservice.http.server import AddressUnusable, Listener, allow_open_files, listen, serve_until
from apiservice.tls.certificates import PairFiles, ServingTls
from tests.support.kubernetes.authorities import SERVER, Authority, Issued, authentication, client_context

SERVERS, PROXIES, CLIENTS = Authority("serving-ca"), Authority("front-proxy-ca"), Authority("kubernetes")
PROXY = PROXIES.issue("front-proxy-client")
HOUR = 3600
PATIENT = Limits(handshake=HOUR, first_request=HOUR, head=HOUR, body=HOUR, reading=HOUR, closing=HOUR, idle=HOUR)
"""No deadline ends during a test, unless the test shortens it."""
SECONDS = 60.0
"""For anything that happens at once on a machine that is not busy."""


@dataclass
class Application:
    """Answers how long each peer's certificates are; `/slow` when `gate` opens, `/known` to callers it recognises,
    `/large` with many bytes.
    """

    begun: threading.Event = field(default_factory=threading.Event)
    gate: threading.Event = field(default_factory=threading.Event)
    sent: threading.Event = field(default_factory=threading.Event)

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI has no types
        if scope["path"] == "/slow":
            self.begun.set()
            while not self.gate.is_set():
                await asyncio.sleep(0.01)
        if scope["path"] == "/known":
            scope["state"]["connection"].recognise()
        body = json.dumps([len(part) for part in scope["state"]["peer"]]).encode()
        pieces = [bytes(32 * 2**20)] * 2 if scope["path"] == "/large" else [body]
        headers = [(b"content-length", str(sum(map(len, pieces))).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in pieces[:-1]:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": pieces[-1]})
        self.sent.set()


@dataclass
class Running:
    """A server in a thread, with its two ports."""

    secure: int
    plain: int
    tls: ServingTls
    application: Application
    folder: Path
    stop: Callable[[], object]
    thread: threading.Thread
    connections: contextlib.ExitStack

    def connect(self, shown: Issued | None = None) -> http.client.HTTPConnection:
        """A connection over TLS that ends with the test."""
        context = client_context(self.folder, shown)
        return self._kept(http.client.HTTPSConnection("127.0.0.1", self.secure, timeout=5, context=context))

    def connect_plain(self) -> http.client.HTTPConnection:
        return self._kept(http.client.HTTPConnection("127.0.0.1", self.plain, timeout=SECONDS))

    def _kept(self, connection: http.client.HTTPConnection) -> http.client.HTTPConnection:
        return self.connections.enter_context(contextlib.closing(connection))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path, Limits()) as started:
        yield started


@contextlib.contextmanager
def serving(tmp_path: Path, limits: Limits) -> Iterator[Running]:
    tls = ServingTls(PairFiles(*SERVERS.issue("x", usages=(SERVER,), dns_names=("localhost",)).write(tmp_path, "tls")))
    tls.trust(authentication(PROXIES, CLIENTS))
    sockets, application, started = (listen("127.0.0.1", 0), listen("127.0.0.1", 0)), Application(), threading.Event()
    listeners = (
        Listener(sockets[0], application, tls.context, limits),
        Listener(sockets[1], application, None, limits),
    )
    stops: list[Callable[[], object]] = []

    async def serve() -> None:
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        stops.append(lambda: loop.call_soon_threadsafe(stopping.set))
        await serve_until(stopping, listeners, started.set, lambda: None)

    thread = threading.Thread(target=lambda: uvloop.run(serve()))
    thread.start()
    assert started.wait(SECONDS)
    secure, plain = (opened.getsockname()[1] for opened in sockets)
    try:
        with contextlib.ExitStack() as connections:
            yield Running(secure, plain, tls, application, tmp_path, stops[0], thread, connections)
    finally:
        application.gate.set()
        if thread.is_alive():
            stops[0]()
        thread.join(SECONDS)
        assert not thread.is_alive()


def is_closed(connection: socket.socket, seconds: float = SECONDS) -> bool:
    """Whether the server closes the connection, which sends nothing more, within this time."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    end = time.monotonic() + seconds
    while poll.poll(1000 * max(0.0, end - time.monotonic())):
        try:
            if not connection.recv(65536):
                return True
        except ConnectionError:
            return True
    return False


def is_cut_off(connection: socket.socket, piece: bytes, seconds: float = SECONDS) -> bool:
    """Whether the server closes the connection within this time though a piece is sent again and again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(ConnectionError):
            connection.sendall(piece)
        if is_closed(connection, 0.02):
            return True
    return False


@contextlib.contextmanager
def connected(port: int, content: bytes = b"") -> Iterator[socket.socket]:
    """A connection without TLS on which this was sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(content)
        yield connection


def get(connection: http.client.HTTPConnection, path: str = "/") -> tuple[int, bytes]:
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, response.read()


def raw(port: int, content: bytes) -> bytes:
    """Whatever comes back for these bytes over plain HTTP, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(content)
        with contextlib.suppress(ConnectionResetError):
            return b"".join(iter(lambda: connection.recv(65536), b""))
    return b""


def test_each_request_carries_its_peers_certificate(running: Running) -> None:
    for shown, lengths in ((PROXY, [len(PROXY.der)]), (None, [])):
        connection = running.connect(shown)
        for _ in range(2):
            assert get(connection) == (200, json.dumps(lengths).encode())
        connection.close()


def test_plain_http_carries_no_certificate(running: Running) -> None:
    assert get(running.connect_plain()) == (200, b"[]")


def test_a_removed_ca_is_refused_and_a_new_one_taken_without_restart(running: Running) -> None:
    renewed = Authority("front-proxy-ca")
    running.tls.trust(authentication(renewed, CLIENTS))

    with pytest.raises((ssl.SSLError, ConnectionError)):
        get(running.connect(PROXY))
    assert get(running.connect(renewed.issue("front-proxy-client")))[0] == 200


def test_an_idle_connection_outlives_the_aggregators_own_patience() -> None:
    assert KEEP_ALIVE_SECONDS >= 95


def test_answers_name_no_server(running: Running) -> None:
    answer = raw(running.plain, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").lower()

    assert answer.startswith(b"http/1.1 200")
    assert b"\r\nserver:" not in answer


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


REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


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


def test_the_stranger_that_came_first_goes_for_one_too_many(tmp_path: Path) -> None:
    with serving(tmp_path, replace(PATIENT, strangers=3)) as running, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connected(running.plain)) for _ in range(5)]

        assert all(is_closed(connection) for connection in idle[:2])
        idle[4].sendall(REQUEST)
        assert idle[4].recv(12) == b"HTTP/1.1 200"


def test_connections_without_a_handshake_count_too(tmp_path: Path) -> None:
    with serving(tmp_path, replace(PATIENT, strangers=3)) as running, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connected(running.secure)) for _ in range(5)]

        assert all(is_closed(connection) for connection in silent[:2])
        assert get(running.connect(PROXY))[0] == 200


def test_strangers_close_no_connection_of_a_known_caller(tmp_path: Path) -> None:
    with serving(tmp_path, replace(PATIENT, strangers=3)) as running, contextlib.ExitStack() as stack:
        known = running.connect(PROXY)
        assert get(known, "/known")[0] == 200
        kept = known.sock
        strangers = [stack.enter_context(connected(running.secure)) for _ in range(10)]
        assert is_closed(strangers[0])

        assert get(known)[0] == 200
        assert known.sock is kept


def test_known_callers_beyond_the_bound_are_answered_and_not_kept(tmp_path: Path) -> None:
    with serving(tmp_path, replace(PATIENT, known=1)) as running:
        first, second = running.connect(PROXY), running.connect(PROXY)
        assert get(first, "/known")[0] == 200
        second.request("GET", "/known")
        answer = second.getresponse()

        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert get(first, "/known")[0] == 200
        first.close()
        assert is_kept_at_last(running)


def is_kept_at_last(running: Running, seconds: float = SECONDS) -> bool:
    """Whether a new caller's connection is kept once the server has seen that another one is gone."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection = running.connect(PROXY)
        connection.request("GET", "/known")
        answer = connection.getresponse()
        if answer.read() and answer.headers["connection"] is None:
            return True
    return False


def test_closed_connections_are_freed_at_once(running: Running) -> None:
    """Strangers could otherwise make garbage faster than it is collected."""
    requests = (
        REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * 1000,
        b"no HTTP at all\r\n\r\n",
    )
    gc.collect()
    gc.disable()
    try:
        for request in requests:
            assert raw(running.plain, request).startswith(b"HTTP/1.1 ")
        end = time.monotonic() + SECONDS
        while any(type(each).__name__ == "PeerProtocol" for each in gc.get_objects()):
            assert time.monotonic() < end, "closed connections are still in memory"
            time.sleep(0.05)
    finally:
        gc.enable()


def test_a_handshake_under_way_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with serving(tmp_path, PATIENT) as running, connected(running.secure):
        assert get(running.connect_plain())[0] == 200
        running.stop()

        assert wait_for_end(running)


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


def test_peers_that_misbehave_leave_no_line_in_the_log(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    raw(running.plain, b"\x16\x03\x01 no HTTP at all\r\n\r\n")
    raw(running.secure, b"GET / HTTP/1.1\r\n\r\n")
    upgrade = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    with socket.create_connection(("127.0.0.1", running.plain), timeout=SECONDS) as connection:
        connection.sendall(upgrade)
        assert connection.recv(12) == b"HTTP/1.1 200"
    aborted = running.connect(PROXY)
    aborted.request("GET", "/slow")
    assert running.application.begun.wait(SECONDS)
    aborted.close()
    running.application.gate.set()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        get(running.connect(Authority("stranger").issue("stranger")))
    assert get(running.connect(PROXY))[0] == 200

    assert caplog.messages == []


def test_at_the_end_a_request_under_way_is_finished_and_its_connection_closed(running: Running) -> None:
    connection = running.connect(PROXY)
    connection.request("GET", "/slow")
    assert running.application.begun.wait(SECONDS)
    running.stop()
    assert not wait_for_end(running, 0.5)

    running.application.gate.set()

    response = connection.getresponse()
    assert (response.status, response.headers["connection"]) == (200, "close")
    assert wait_for_end(running)


def test_idle_connections_are_closed_at_the_end(tmp_path: Path) -> None:
    with serving(tmp_path, PATIENT) as running:
        idle = [running.connect(PROXY), running.connect_plain()]
        for connection in idle:
            assert get(connection)[0] == 200
        running.stop()

        # These peers never read again, so none of them does its part of closing TLS.
        assert wait_for_end(running)


def test_callers_are_still_served_for_a_while_after_the_signal(running: Running) -> None:
    """The address stays in kube-apiserver's lists until the news of the pod's end has gone round."""
    keeping = running.connect(PROXY)
    assert get(keeping)[0] == 200
    running.stop()

    late = running.connect(PROXY)
    late.request("GET", "/")
    response = late.getresponse()

    assert (response.status, response.headers["connection"]) == (200, "close")


def test_without_connections_there_is_nothing_to_wait_for(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "GRACE_SECONDS", HOUR)
    running.stop()

    assert wait_for_end(running)


def test_a_low_soft_limit_of_open_files_is_raised() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, limits[1]))
        allow_open_files(2048)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (2048, limits[1])

        allow_open_files(1500)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (2048, limits[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_an_occupied_port_is_named() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(AddressUnusable, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            listen("127.0.0.1", port)


def wait_for_end(running: Running, seconds: float = SECONDS) -> bool:
    running.thread.join(seconds)
    return not running.thread.is_alive()
