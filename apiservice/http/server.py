"""Two listeners in one process: HTTPS for the API, plain HTTP for probes and metrics.

Each request's scope has the peer's certificates in `scope["state"]["peer"]`."""

import asyncio
import contextlib
import logging
import resource
import signal
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

import uvicorn
import uvloop

from adapter.errors import AdapterError
from apiservice.http.connections import Connections
from apiservice.http.protocol import CONNECTION_BYTES, Limits, PeerProtocol

logger = logging.getLogger(__name__)

Application = Callable[..., Awaitable[None]]

GRACE_SECONDS = 3.0  # from the signal, for connected callers to have an answer with which their connection closes
FINISH_SECONDS = 3  # for requests in progress after that
OPEN_FILES = 8192  # for both listeners' connections, brokers and files
KERNEL_BUFFERS = {socket.SO_RCVBUF: 32 * 1024, socket.SO_SNDBUF: 64 * 1024}
"""Bytes of a connection; Linux doubles them. With less to send, packets of 64 KB, as on loopback, wait 40 ms each."""
RETRY_SECONDS = 0.1  # after a connection could not be accepted


@dataclass(frozen=True, slots=True)
class Listener:
    """An open socket, its application, what returns the TLS context of a new connection, and limits."""

    socket: socket.socket
    application: Application
    tls: Callable[[], ssl.SSLContext] | None = None
    limits: Limits = field(default_factory=Limits)


def listen(host: str, port: int) -> socket.socket:
    """Opens the socket, so that an occupied port is reported before anything starts; raises AdapterError.

    `::` means both families, and IPv4 alone on a machine without IPv6."""
    if host == "::" and not socket.has_dualstack_ipv6():
        host = "0.0.0.0"  # noqa: S104 - what `::` means there
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        opened = socket.create_server((host, port), family=family, dualstack_ipv6=host == "::", backlog=2048)
    except OSError as error:
        # Python's own message repeats the address in its own notation.
        reason = str(error.strerror).partition(" (while")[0]
        raise AdapterError(f"cannot listen on {place_of(host, port)}: {reason}") from error
    for option, size in KERNEL_BUFFERS.items():
        opened.setsockopt(socket.SOL_SOCKET, option, size)
    return opened


def place_of(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def allow_open_files(wanted: int = OPEN_FILES) -> None:
    """Raises the soft limit: strangers could use up the 1,024 files that many systems allow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    possible = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < possible:
        resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))


@dataclass(frozen=True, slots=True)
class Stages:
    """What to call when the listeners accept, at the signal, and when no new callers are expected any more."""

    on_started: Callable[[], None]
    on_stopping: Callable[[], None] = lambda: None
    on_drained: Callable[[], None] = lambda: None
    drain_seconds: float = 0.0
    """From the signal until then: the time that others need to learn that this process is not ready."""
    asked_to_end: threading.Event = field(default_factory=threading.Event)
    """Set if a signal came before the listeners accept."""


def serve(listeners: tuple[Listener, ...], stages: Stages) -> None:
    """Serves until SIGTERM or SIGINT, drains, and finishes requests, which takes at most about 7 s more.

    A second signal kills."""

    async def serve_until_signal() -> None:
        await serve_until(_first_signal(stages.asked_to_end), listeners, stages)

    allow_open_files()
    uvloop.run(serve_until_signal())


async def serve_until(stopping: asyncio.Event, listeners: tuple[Listener, ...], stages: Stages) -> None:
    """Serves until the event is set, drains, and finishes requests in progress."""
    servers = [_Server(listener) for listener in listeners]
    async with asyncio.TaskGroup() as tasks:
        for server in servers:
            tasks.create_task(server.serve())
        for server in servers:
            await server.is_accepting.wait()
        stages.on_started()
        await stopping.wait()
        stages.on_stopping()
        for server in servers:
            server.ask_to_leave()
        await asyncio.sleep(stages.drain_seconds)
        stages.on_drained()
        await _grace(servers, GRACE_SECONDS - stages.drain_seconds)
        for server in servers:
            server.should_exit = True


def _first_signal(asked_to_end: threading.Event) -> asyncio.Event:
    """Returns an event that the first signal sets, or has set; the second one has its default effect."""
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def stop() -> None:
        stopping.set()
        for number in numbers:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        loop.add_signal_handler(number, stop)
    if asked_to_end.is_set():
        stop()
    return stopping


async def _grace(servers: "list[_Server]", seconds: float) -> None:
    """Waits until each client has had an answer with `Connection: close`, or until the grace period ends."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while loop.time() < end and any(server.is_busy for server in servers):
        await asyncio.sleep(0.05)


class _Server(uvicorn.Server):
    """A uvicorn server with limits and deadlines for connections; the process handles signals."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(_config(listener))
        self.is_accepting = asyncio.Event()
        self._listener = listener
        self._connections = Connections(listener.limits.strangers, listener.limits.known)

    @property
    def is_busy(self) -> bool:
        connections = self.server_state.connections
        return bool(self.server_state.tasks) or any(not each.transport.is_closing() for each in connections)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - as uvicorn calls it
        """Replaces uvicorn's method, which bounds neither handshakes nor connections."""
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
            except OSError:  # out of file descriptors, or the peer has left
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._take(peer)

    def _take(self, peer: socket.socket) -> None:
        protocol = PeerProtocol(self._connections, self._listener.limits, self.config, self.server_state)
        protocol.arrival = asyncio.create_task(self._welcome(peer, protocol))
        self._connections.hold(protocol, CONNECTION_BYTES)

    async def _welcome(self, peer: socket.socket, protocol: "PeerProtocol") -> None:
        """Accepts the connection and its TLS handshake; failures are the peer's."""
        limits, tls = self._listener.limits, self._listener.tls
        timeouts = {"ssl_handshake_timeout": limits.handshake, "ssl_shutdown_timeout": limits.closing} if tls else {}
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: protocol, peer, ssl=tls and tls(), **timeouts)
        except (OSError, asyncio.CancelledError):
            self._connections.remove(protocol)
            # It refers back to the protocol, and strangers could create more than the collector frees.
            protocol.parser = None  # type: ignore[assignment]  # as after a connection

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def ask_to_leave(self) -> None:
        """Closes each connection after its next answer."""
        self.config.encoded_headers = [*self.config.encoded_headers, (b"connection", b"close")]
        self.server_state.default_headers = [*self.server_state.default_headers, (b"connection", b"close")]
        for connection in self.server_state.connections:
            if isinstance(connection, PeerProtocol) and connection.cycle is not None:
                connection.cycle.keep_alive = False


def _config(listener: Listener) -> uvicorn.Config:
    """Configures uvicorn without access log, server name or trust in proxies."""
    return uvicorn.Config(
        listener.application,
        http=PeerProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        timeout_keep_alive=listener.limits.idle,
        timeout_graceful_shutdown=FINISH_SECONDS,
        access_log=False,
        log_config=None,
        log_level=logging.ERROR,  # its warnings are about peers' input, with which any peer could fill the log
        server_header=False,
        proxy_headers=False,
    )
