"""A server with two listeners in a thread, and clients that may misbehave."""

import asyncio
import contextlib
import http.client
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from apiservice.http.protocol import Limits
from apiservice.http.server import Listener, Stages, listen, serve_until
from apiservice.tls.certificates import PairFiles, ServingTls
from tests.support.kubernetes.authorities import SERVER, Authority, Issued, authentication, client_context

SERVERS, PROXIES, CLIENTS = Authority("serving-ca"), Authority("front-proxy-ca"), Authority("kubernetes")
PROXY = PROXIES.issue("front-proxy-client")
HOUR = 3600
PATIENT = Limits(handshake=HOUR, first_request=HOUR, head=HOUR, body=HOUR, reading=HOUR, closing=HOUR, idle=HOUR)
"""No deadline ends during a test, unless the test shortens it."""
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SECONDS = 60.0
"""For anything that happens at once on a machine that is not busy."""


@dataclass
class Application:
    """Answers how long each peer's certificates are; `/slow` when `gate` opens, `/interrupted` once the server has
    stopped reading the connection, `/known` to callers it recognises, `/large` with many bytes, `/headers` with the
    names of the request's headers.
    """

    begun: threading.Event = field(default_factory=threading.Event)
    gate: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when it has answered a request, or need not."""

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI has no types
        try:
            await self._answer(scope, send)
        finally:
            self.ended.set()

    async def _answer(self, scope: Any, send: Any) -> None:  # noqa: ANN401 - as above
        if scope["path"] == "/slow":
            self.begun.set()
            while not self.gate.is_set():
                await asyncio.sleep(0.01)
        if scope["path"] == "/interrupted":
            while not scope["state"]["connection"].flow.read_paused:
                await asyncio.sleep(0.01)
        if scope["path"] == "/known":
            scope["state"]["connection"].recognise()
        body = json.dumps([len(part) for part in scope["state"]["peer"]]).encode()
        if scope["path"] == "/headers":
            body = json.dumps([name.decode() for name, _ in scope["headers"]]).encode()
        pieces = [bytes(32 * 2**20)] * 2 if scope["path"] == "/large" else [body]
        headers = [(b"content-length", str(sum(map(len, pieces))).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in pieces[:-1]:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": pieces[-1]})


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
        return self._kept(http.client.HTTPSConnection("127.0.0.1", self.secure, timeout=SECONDS, context=context))

    def connect_plain(self) -> http.client.HTTPConnection:
        return self._kept(http.client.HTTPConnection("127.0.0.1", self.plain, timeout=SECONDS))

    def _kept(self, connection: http.client.HTTPConnection) -> http.client.HTTPConnection:
        return self.connections.enter_context(contextlib.closing(connection))


@contextlib.contextmanager
def serving(tmp_path: Path, limits: Limits, drain_seconds: float = 0.0) -> Iterator[Running]:
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
        await serve_until(stopping, listeners, Stages(started.set, drain_seconds=drain_seconds))

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


def wait_for_end(running: Running, seconds: float = SECONDS) -> bool:
    running.thread.join(seconds)
    return not running.thread.is_alive()
