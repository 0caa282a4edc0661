import asyncio
import contextlib
import http.client
import json
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvloop

from apiservice.certificates import PairFiles, ServingTls
from apiservice.server import KEEP_ALIVE_SECONDS, LONGEST_HEAD, AddressUnusable, Listener, listen, serve_until
from tests.authorities import SERVER, Authority, Issued, authentication, client_context

SERVERS, PROXIES, CLIENTS = Authority("serving-ca"), Authority("front-proxy-ca"), Authority("kubernetes")
PROXY = PROXIES.issue("front-proxy-client")


@dataclass
class Application:
    """Tells how long each peer's certificates are; `/slow` answers when `gate` opens, `/broken` not at all."""

    begun: threading.Event = field(default_factory=threading.Event)
    gate: threading.Event = field(default_factory=threading.Event)

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI has no types
        if scope["path"] == "/slow":
            self.begun.set()
            while not self.gate.is_set():
                await asyncio.sleep(0.01)
        body = json.dumps([len(part) for part in scope["state"]["peer"]]).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


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
        return self._kept(http.client.HTTPConnection("127.0.0.1", self.plain, timeout=5))

    def _kept(self, connection: http.client.HTTPConnection) -> http.client.HTTPConnection:
        return self.connections.enter_context(contextlib.closing(connection))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    tls = ServingTls(PairFiles(*SERVERS.issue("x", usages=(SERVER,), dns_names=("localhost",)).write(tmp_path, "tls")))
    tls.trust(authentication(PROXIES, CLIENTS))
    sockets, application, started = (listen("127.0.0.1", 0), listen("127.0.0.1", 0)), Application(), threading.Event()
    listeners = (Listener(sockets[0], application, tls.context), Listener(sockets[1], application))
    stops: list[Callable[[], object]] = []

    async def serve() -> None:
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        stops.append(lambda: loop.call_soon_threadsafe(stopping.set))
        await serve_until(stopping, listeners, started.set, lambda: None)

    thread = threading.Thread(target=lambda: uvloop.run(serve()))
    thread.start()
    assert started.wait(5)
    secure, plain = (opened.getsockname()[1] for opened in sockets)
    with contextlib.ExitStack() as connections:
        yield Running(secure, plain, tls, application, tmp_path, stops[0], thread, connections)
    application.gate.set()
    if thread.is_alive():
        stops[0]()
    thread.join(10)
    assert not thread.is_alive()


def get(connection: http.client.HTTPConnection, path: str = "/") -> tuple[int, bytes]:
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, response.read()


def raw(port: int, content: bytes) -> bytes:
    """Whatever comes back for these bytes over plain HTTP, until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
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


def test_a_head_of_many_groups_is_served(running: Running) -> None:
    groups = b"".join(b"X-Remote-Group: oidc:department-%d\r\n" % number for number in range(1000))
    head = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + groups + b"\r\n"

    assert raw(running.plain, head).startswith(b"HTTP/1.1 200")


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
    with socket.create_connection(("127.0.0.1", running.plain), timeout=5) as connection:
        connection.sendall(upgrade)
        assert connection.recv(12) == b"HTTP/1.1 200"
    aborted = running.connect(PROXY)
    aborted.request("GET", "/slow")
    assert running.application.begun.wait(5)
    aborted.close()
    running.application.gate.set()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        get(running.connect(Authority("stranger").issue("stranger")))
    assert get(running.connect(PROXY))[0] == 200

    assert caplog.messages == []


def test_at_the_end_a_request_under_way_is_finished_and_its_connection_closed(running: Running) -> None:
    connection = running.connect(PROXY)
    connection.request("GET", "/slow")
    assert running.application.begun.wait(5)
    running.stop()
    assert not wait_for_end(running, 0.5)

    running.application.gate.set()

    response = connection.getresponse()
    assert (response.status, response.headers["connection"]) == (200, "close")
    assert wait_for_end(running, 5)


def test_idle_connections_are_closed_at_the_end(running: Running) -> None:
    idle = [running.connect(PROXY), running.connect_plain()]
    for connection in idle:
        assert get(connection)[0] == 200
    running.stop()

    # These peers never read again, so none of them does its part of closing TLS.
    assert wait_for_end(running, 8)


def test_callers_are_still_served_for_a_while_after_the_signal(running: Running) -> None:
    """The address stays in kube-apiserver's lists until the news of the pod's end has gone round."""
    keeping = running.connect(PROXY)
    assert get(keeping)[0] == 200
    running.stop()

    late = running.connect(PROXY)
    late.request("GET", "/")
    response = late.getresponse()

    assert (response.status, response.headers["connection"]) == (200, "close")


def test_nobody_connected_means_nothing_to_wait_for(running: Running) -> None:
    running.stop()

    assert wait_for_end(running, 1.5)


def test_an_occupied_port_is_named() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(AddressUnusable, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            listen("127.0.0.1", port)


def wait_for_end(running: Running, seconds: float) -> bool:
    running.thread.join(seconds)
    return not running.thread.is_alive()
