"""Two listeners in one process: HTTPS for the API, plain HTTP for probes and metrics. The only `import uvicorn`.

ASGI applications come in and are served until a signal; each request's scope carries what its peer showed in the
handshake as `scope["state"]["peer"]` (see `apiservice.auth.client_certificates.Chain`).
"""

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from enum import Enum

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adapter.errors import AdapterError
from apiservice.auth.client_certificates import Chain
from apiservice.http.connections import Connections

logger = logging.getLogger(__name__)

Application = Callable[..., Awaitable[None]]
"""An ASGI application."""

KEEP_ALIVE_SECONDS = 100  # kube-apiserver keeps idle connections for 90 s, and the autoscaler asks every 15 s
LONGEST_HEAD = 64 * 1024  # bytes of request line and headers; a user of many groups has long ones
LONGEST_PATH = 8 * 1024  # bytes, as escaped
MOST_HEADERS = 200  # of a peer without client certificate: only kube-apiserver, which shows one, sends a user's groups
MOST_PIPELINED = 8  # requests that wait for the answer to an earlier one; clients of Kubernetes send none
PIECE = 4096  # bytes that are parsed before the limits are checked again
GRACE_SECONDS = 3.0  # how long callers that have not yet heard of the end are served
FINISH_SECONDS = 3  # for requests under way after that
DATE_SECONDS = 1.0
CLOSE_SECONDS = 1.0  # for the peer's part of closing a TLS connection, once the process ends
OPEN_FILES = 8192  # for the connections of both listeners, those to brokers, and files
RETRY_SECONDS = 0.1  # after a connection that could not be accepted


class AddressUnusable(AdapterError):
    """Nothing can listen there; the message names the address and port."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long peers of a listener may take, in seconds, and how many of them may be connected."""

    handshake: float = 10.0
    first_request: float = 30.0
    """From the connection until the head of its first request is complete."""
    head: float = 30.0
    """From the first byte of a request until its head is complete."""
    body: float = 30.0
    """From there until its body is complete."""
    reading: float = 30.0
    """Until a peer reads on that left an answer unread."""
    closing: float = 10.0
    """For the peer's part of closing a connection."""
    idle: int = KEEP_ALIVE_SECONDS
    """From an answer until the next request."""
    strangers: int = 500
    """Connections whose caller has not proved who they are, each of some 35 KB."""
    known: int = 1000
    """Connections of known callers that stay open after an answer."""


@dataclass(frozen=True, slots=True)
class Listener:
    """An open socket, what answers on it, with which TLS, if any, and what its peers may take."""

    socket: socket.socket
    application: Application
    tls: ssl.SSLContext | None = None
    limits: Limits = Limits()


def listen(host: str, port: int) -> socket.socket:
    """Open a socket there, so that an occupied port is known before anything is started; AddressUnusable."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, dualstack_ipv6=host == "::", backlog=2048)
    except OSError as error:
        # The standard library adds the address to what the system says, in its own notation.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise AddressUnusable(f"cannot listen on {host}:{port}: {reason}") from error


def allow_open_files(wanted: int = OPEN_FILES) -> None:
    """Raise the soft limit, as strangers could use up the 1,024 files that many systems allow; the hard limit stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    possible = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < possible:
        resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))


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

    allow_open_files()
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
    servers = [_Server(listener) for listener in listeners]
    async with asyncio.TaskGroup() as tasks:
        beside = [tasks.create_task(work()) for work in background]
        for server in servers:
            tasks.create_task(server.serve())
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
    """A uvicorn server with bounds and deadlines for its connections, which leaves signals to the process."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(_config(listener))
        self.is_accepting = asyncio.Event()
        self._listener = listener
        self._connections = Connections(listener.limits.strangers, listener.limits.known)
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - as uvicorn calls it
        """Instead of uvicorn's own, which bounds neither handshakes nor connections."""
        await self.lifespan.startup()
        self.servers = []
        self.started = True
        self._listener.socket.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())
        self.is_accepting.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - as uvicorn calls it
        self._accepting.cancel()
        await asyncio.wait((self._accepting,))
        await super().shutdown([self._listener.socket])

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                peer, _ = await loop.sock_accept(self._listener.socket)
            except OSError:  # no file descriptor is left, or the peer went away at once
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._take(peer)

    def _take(self, peer: socket.socket) -> None:
        protocol = _Protocol(self._connections, self._listener.limits, self.config, self.server_state)
        protocol.arrival = asyncio.create_task(self._welcome(peer, protocol))
        self._connections.add(protocol)

    async def _welcome(self, peer: socket.socket, protocol: "_Protocol") -> None:
        """Make the connection and, with TLS, its handshake; whatever goes wrong in it is the peer's."""
        limits, tls = self._listener.limits, self._listener.tls
        timeouts = (
            {} if tls is None else {"ssl_handshake_timeout": limits.handshake, "ssl_shutdown_timeout": limits.closing}
        )
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: protocol, peer, ssl=tls, **timeouts)
        except OSError:
            self._connections.remove(protocol)

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


class _Stage(Enum):
    """What a peer has begun to send."""

    HEAD = "head"
    BODY = "body"


class _RequestRefused(Exception):
    """Raised within the parser, to which it means that the request is invalid."""


class _Protocol(HttpToolsProtocol):
    """uvicorn's, with the peer's certificates in the scope, limits for what it sends, and deadlines.

    uvicorn's own timer runs between an answer and the next byte only. `_deadline` runs whenever the peer must send more
    for a request to be complete.
    """

    arrival: asyncio.Task[None]

    def __init__(
        self, connections: Connections, limits: Limits, config: uvicorn.Config, server_state: uvicorn.server.ServerState
    ) -> None:
        super().__init__(config, server_state, {})
        self._kept_connections = connections
        self._limits = limits
        self._peer: Chain = ()
        self._stage: _Stage | None = _Stage.HEAD
        self._piece = 0
        """Bytes of the piece that is parsed, as far as they may belong to the next head."""
        self._head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._reading_deadline: asyncio.TimerHandle | None = None
        self._refusal = "Invalid HTTP request received."

    # What the server and the application ask

    def abort(self) -> None:
        """Close the connection now, also within its handshake."""
        if self.transport is None:
            self.arrival.cancel()
        else:
            self.transport.abort()

    def recognise(self) -> None:
        """The caller of the request is known: keep the connection as one of theirs, or close it after the answer."""
        if not self._kept_connections.recognise(self) and self.cycle is not None:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        super().shutdown()
        if self.transport.is_closing():
            # A peer that does not read would hold up the end of the process by its part of closing TLS.
            self._set_deadline(CLOSE_SECONDS)

    # What the transport reports

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn's own
        super().connection_made(transport)
        self._peer = _chain(transport)
        self._set_deadline(self._limits.first_request)

    def connection_lost(self, exc: Exception | None) -> None:
        self._kept_connections.remove(self)
        self._stop_deadline()
        self.resume_writing()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        # They lead back here, and strangers could leave such circles faster than they are collected.
        self.scope = self.cycle = None  # type: ignore[assignment]  # as before the first request

    def data_received(self, data: bytes) -> None:
        if len(data) <= PIECE:
            self._feed(data)
        else:
            for begin in range(0, len(data), PIECE):
                self._feed(data[begin : begin + PIECE])
                if self.transport.is_closing():
                    return
        if self._deadline is None and (self._stage is not None or self.cycle.response_complete):
            # A request has begun, or what came between two requests has stopped uvicorn's timer.
            seconds = self._limits.body if self._stage is _Stage.BODY else self._limits.head
            self._set_deadline(seconds)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading_deadline = self.loop.call_later(self._limits.reading, self.transport.abort)

    def resume_writing(self) -> None:
        if self._reading_deadline is not None:
            self._reading_deadline.cancel()
            self._reading_deadline = None
        super().resume_writing()

    # What the parser reports

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._stage = _Stage.HEAD
        self._head_bytes = self._piece
        self.scope["state"] = {"peer": self._peer, "connection": self}

    def on_headers_complete(self) -> None:
        self._stop_deadline()
        self._stage = _Stage.BODY
        if self._head_bytes > PIECE or self.pipeline:
            self._check_head()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._stop_deadline()
        self._stage = None
        self._piece = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._set_deadline(self._limits.reading)

    # Ours

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words for all that its parser refuses
        super().send_400_response(self._refusal)
        self._set_deadline(self._limits.closing)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._set_deadline(self._limits.closing)

    def _feed(self, piece: bytes) -> None:
        self._piece = len(piece)
        if self._stage is _Stage.HEAD:
            self._head_bytes += self._piece
        super().data_received(piece)
        if self._stage is _Stage.HEAD and not self.transport.is_closing():
            self._limit_head()

    def _limit_head(self) -> None:
        """Refuse a head that is too long already, though its end has not come."""
        has_too_many = not self._peer and len(self.headers or ()) > MOST_HEADERS
        if self._head_bytes > LONGEST_HEAD or has_too_many:
            self._refusal = "The request's head is too long."
            self.send_400_response("")

    def _check_head(self) -> None:
        """Stop the parser if the head is complete and too long, or too many requests wait for their turn."""
        head = len(self.url) + sum(len(name) + len(value) + len(": \r\n") for name, value in self.headers)
        sizes = {
            "path": (len(self.url.partition(b"?")[0]), LONGEST_PATH),
            "head": (head, LONGEST_HEAD),
            "queue of requests": (len(self.pipeline), MOST_PIPELINED),
        }
        for what, (size, most) in sizes.items():
            if size > most:
                self._refusal = f"The request's {what} is too long."
                raise _RequestRefused(self._refusal)

    def _set_deadline(self, seconds: float) -> None:
        """Abort the connection after this time, instead of after what was set before."""
        self._stop_deadline()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


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
        timeout_keep_alive=listener.limits.idle,
        timeout_graceful_shutdown=FINISH_SECONDS,
        access_log=False,
        log_config=None,
        log_level=logging.ERROR,  # its warnings are about what peers send, and any peer could fill the log with them
        server_header=False,
        proxy_headers=False,
    )
