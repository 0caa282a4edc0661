"""Two listeners in one process: HTTPS for the API, plain HTTP for probes and metrics. The only `import uvicorn`.

ASGI applications come in and are served until a signal; each request's scope carries what its peer showed in the
handshake as `scope["state"]["peer"]` (see `apiservice.peers.Chain`).
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adapter.errors import AdapterError
from apiservice.peers import Chain

logger = logging.getLogger(__name__)

Application = Callable[..., Awaitable[None]]
"""An ASGI application."""

KEEP_ALIVE_SECONDS = 100  # kube-apiserver keeps idle connections for 90 s, and the autoscaler asks every 15 s
LONGEST_HEAD = 64 * 1024  # bytes of request line and headers; a user of many groups has long ones
HEAD_SECONDS = 10.0  # between two pieces of a request's head
GRACE_SECONDS = 3.0  # how long callers that have not yet heard of the end are served
FINISH_SECONDS = 3  # for requests under way after that
DATE_SECONDS = 1.0
CLOSE_SECONDS = 1.0  # for the peer's part of closing a TLS connection


class AddressUnusable(AdapterError):
    """Nothing can listen there; the message names the address and port."""


@dataclass(frozen=True, slots=True)
class Listener:
    """An open socket, what answers on it, and with which TLS, if any."""

    socket: socket.socket
    application: Application
    tls: ssl.SSLContext | None = None


def listen(host: str, port: int) -> socket.socket:
    """Open a socket there, so that an occupied port is known before anything is started; AddressUnusable."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, dualstack_ipv6=host == "::", backlog=2048)
    except OSError as error:
        # The standard library adds the address to what the system says, in its own notation.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise AddressUnusable(f"cannot listen on {host}:{port}: {reason}") from error


Work = Callable[[], Coroutine[None, None, None]]


def serve(
    listeners: tuple[Listener, ...],
    on_started: Callable[[], None],
    on_stopping: Callable[[], None],
    background: tuple[Work, ...] = (),
) -> None:
    """Serve until SIGTERM or SIGINT, then finish what is under way: about 7 s at most. A second signal kills."""

    async def serve_until_signal() -> None:
        await serve_until(_first_signal(), listeners, on_started, on_stopping, background)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve_until_signal())


async def serve_until(
    stopping: asyncio.Event,
    listeners: tuple[Listener, ...],
    on_started: Callable[[], None],
    on_stopping: Callable[[], None],
    background: tuple[Work, ...] = (),
) -> None:
    """Serve until the event is set, then finish what is under way.

    `on_started` is called once all listeners accept, `on_stopping` at the event, both in the loop's thread.
    `background` runs beside the listeners and is cancelled at the end.
    """
    servers = [_Server(_config(listener)) for listener in listeners]
    async with asyncio.TaskGroup() as tasks:
        beside = [tasks.create_task(work()) for work in background]
        for server, listener in zip(servers, listeners, strict=True):
            tasks.create_task(server.serve(sockets=[listener.socket]))
        for server in servers:
            await server.is_accepting.wait()
        on_started()
        await stopping.wait()
        on_stopping()
        await _grace(servers)
        for server in servers:
            server.leave()
        for task in beside:
            task.cancel()


def _first_signal() -> asyncio.Event:
    """An event that the first signal sets; the next one has its usual effect."""
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def stop() -> None:
        stopping.set()
        for number in numbers:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        loop.add_signal_handler(number, stop)
    return stopping


async def _grace(servers: "list[_Server]") -> None:
    """Let callers go in peace: each gets its answer and, with it, the request to connect elsewhere next time."""
    for server in servers:
        server.ask_to_leave()
    loop = asyncio.get_running_loop()
    end = loop.time() + GRACE_SECONDS
    while loop.time() < end and any(server.is_busy for server in servers):
        await asyncio.sleep(0.05)


class _Server(uvicorn.Server):
    """A uvicorn server that says when it accepts, and leaves signals to the process."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_accepting = asyncio.Event()
        self._is_leaving = asyncio.Event()

    async def main_loop(self) -> None:
        """Once a second, for the date header. uvicorn looks ten times a second whether it should end; we tell it."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_leaving.wait(), DATE_SECONDS)

    def leave(self) -> None:
        """End the server, once what is under way is finished."""
        self.should_exit = True
        self._is_leaving.set()

    @property
    def is_busy(self) -> bool:
        """Whether anybody is connected or waits for an answer."""
        connections = self.server_state.connections
        return bool(self.server_state.tasks) or any(not each.transport.is_closing() for each in connections)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_accepting.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def ask_to_leave(self) -> None:
        """Close each connection after its next answer, also where the request is under way already."""
        self.config.encoded_headers = [*self.config.encoded_headers, (b"connection", b"close")]
        self.server_state.default_headers = [*self.server_state.default_headers, (b"connection", b"close")]
        for connection in self.server_state.connections:
            if isinstance(connection, _Protocol) and connection.cycle is not None:
                connection.cycle.keep_alive = False


class _Protocol(HttpToolsProtocol):
    """uvicorn's, with the peer's certificates in the scope, a limit for requests' heads, and an end for idle peers."""

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - passed on as they come
        super().__init__(*arguments, **named)
        self._peer: Chain = ()
        self._is_reading_head = True
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn's own
        super().connection_made(transport)
        self._peer = _chain(transport)
        self._close_if_silent(KEEP_ALIVE_SECONDS)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"]["peer"] = self._peer

    def data_received(self, data: bytes) -> None:
        if self._is_reading_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._is_reading_head and self._head_bytes:
            self._limit_head()

    def on_headers_complete(self) -> None:
        self._is_reading_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_reading_head = True
        self._head_bytes = 0
        super().on_message_complete()

    def shutdown(self) -> None:
        super().shutdown()
        if self.transport.is_closing():
            # A peer that does not read would hold up the end of the process by its part of closing TLS.
            self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

    def _limit_head(self) -> None:
        if self._head_bytes > LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The request's headers are too long.")
        else:
            self._close_if_silent(HEAD_SECONDS)

    def _close_if_silent(self, seconds: float) -> None:
        """By uvicorn's own timer for idle connections, which every further byte stops."""
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)


def _chain(transport: asyncio.Transport) -> Chain:
    """What the peer showed. Its intermediate certificates can be read since Python 3.13; before, only its own."""
    connection = transport.get_extra_info("ssl_object")
    if connection is None:
        return ()
    if hasattr(connection, "get_unverified_chain"):
        return tuple(connection.get_unverified_chain() or ())
    own = connection.getpeercert(binary_form=True)
    return (own,) if own else ()


def _config(listener: Listener) -> uvicorn.Config:
    """Nothing that uvicorn would add by itself but the date: no access log, no server name, no trust in proxies."""
    tls = listener.tls
    return uvicorn.Config(
        listener.application,
        http=_Protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        ssl_context_factory=None if tls is None else lambda _config, _default: tls,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=FINISH_SECONDS,
        access_log=False,
        log_config=None,
        log_level=logging.ERROR,  # its warnings are about what peers send, and any peer could fill the log with them
        server_header=False,
        proxy_headers=False,
    )
