"""One connection: uvicorn's protocol with size limits and deadlines for requests."""

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass
from typing import Any, Literal

import uvicorn
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from apiservice.auth.client_certificates import Chain
from apiservice.http.connections import Connections

KEEP_ALIVE_SECONDS = 100  # kube-apiserver keeps idle connections for 90 s; the autoscaler reads every 15 s
LONGEST_REQUEST = 64 * 1024  # bytes with headers and body; users in many groups have long headers
LONGEST_OF_STRANGERS = 16 * 1024  # bytes, as long as nothing proves who the peer is
LONGEST_PATH = 8 * 1024  # bytes, escaped
MOST_HEADERS = 200  # without a client certificate; only kube-apiserver, which has one, sends a user's groups
PIECE = 4096  # bytes parsed between two checks of the limits
CONNECTION_BYTES = 128 * 1024  # of memory; 52 KB with TLS, up to 200 KB with a long chain of client certificates
DROP_UNSENT = struct.pack("ii", 1, 0)  # linger for 0 s
CLOSE_SECONDS = 1.0  # for the peer's part of closing TLS when the process ends


@dataclass(frozen=True, slots=True)
class Limits:
    """Deadlines of a listener's peers, in seconds, and how much their connections take."""

    handshake: float = 10.0
    first_request: float = 30.0
    """From the connection to the end of the first request's head."""
    head: float = 30.0
    """From the first byte of a request to the end of its head."""
    body: float = 30.0
    """From there to the end of its body."""
    reading: float = 30.0
    """For a peer that stopped reading to continue."""
    closing: float = 10.0
    """For the peer's part of closing a connection."""
    idle: int = KEEP_ALIVE_SECONDS
    """From an answer to the next request."""
    strangers: int = 20 * 2**20
    """Bytes of memory for the connections of unauthenticated callers."""
    known: int = 1000
    """Connections of authenticated callers that stay open after an answer."""


class PeerProtocol(HttpToolsProtocol):
    """Adds certificates, size limits, and deadlines for incomplete requests, which uvicorn's timer does not cover."""

    arrival: asyncio.Task[None]

    def __init__(
        self, connections: Connections, limits: Limits, config: uvicorn.Config, server_state: uvicorn.server.ServerState
    ) -> None:
        super().__init__(config, server_state, {})
        self._kept_connections = connections
        self._limits = limits
        self._peer: Chain = ()
        self._stage: Literal["head", "body"] | None = "head"
        self._request_bytes = 0
        self._answering: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._reading_deadline: asyncio.TimerHandle | None = None
        self._refusal = "Invalid HTTP request received."

    # Called by the server and the application

    def abort(self) -> None:
        """Closes the connection at once, even during its handshake."""
        if self.transport is None:
            self.arrival.cancel()
        else:
            with contextlib.suppress(AttributeError, OSError):  # no socket any more, or a closed one
                # Otherwise the kernel keeps what a peer does not read for minutes after.
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, DROP_UNSENT)
            self.transport.abort()

    def recognise(self) -> None:
        """Marks the caller as authenticated; closes the connection after the answer if there are too many."""
        if not self._kept_connections.recognise(self) and self.cycle is not None:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        super().shutdown()
        if self.transport.is_closing():
            # A peer that does not read must not delay the end of the process.
            self._set_deadline(CLOSE_SECONDS)

    # Called by the transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn's own
        super().connection_made(transport)
        self._peer = _chain(transport)
        if self.scheme == "https":
            # What arrives while reading is paused waits here, encrypted.
            transport.set_read_buffer_limits(LONGEST_OF_STRANGERS)  # type: ignore[attr-defined]  # of asyncio's for TLS
        self._set_deadline(self._limits.first_request)

    def connection_lost(self, exc: Exception | None) -> None:
        self._kept_connections.remove(self)
        self._stop_deadline()
        self.resume_writing()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        if self._answering is not None:
            self._answering.cancel()
        # These are reference cycles that strangers could create faster than the collector frees them.
        self.scope = self.cycle = self._answering = None  # type: ignore[assignment]  # as before the first request

    def data_received(self, data: bytes) -> None:
        for begin in range(0, len(data), PIECE):
            self._feed(data[begin : begin + PIECE])
            if self.transport.is_closing() or self.flow.read_paused:
                return
        if self._deadline is None and (self._stage is not None or self.cycle.response_complete):
            # A request has begun, or bytes between two requests stopped uvicorn's timer.
            seconds = self._limits.body if self._stage == "body" else self._limits.head
            self._set_deadline(seconds)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._hold()
        self._reading_deadline = self.loop.call_later(self._limits.reading, self.abort)

    def resume_writing(self) -> None:
        if self._reading_deadline is not None:
            self._reading_deadline.cancel()
            self._reading_deadline = None
        super().resume_writing()

    # Called by the parser

    def on_message_begin(self) -> None:
        if self._is_answering:
            raise ValueError("Kubernetes clients wait for the answer before the next request")
        super().on_message_begin()
        self._stage = "head"
        self.scope["state"] = {"peer": self._peer, "connection": self}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Ignores the trailer of a body, in which a user could repeat the front proxy's identity headers."""
        if self._stage == "head":
            if len(self.headers) == MOST_HEADERS and not self._peer:
                self._refuse("The request has too many headers.")
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_deadline()
        if len(self.url.partition(b"?")[0]) > LONGEST_PATH:
            self._refuse("The request's path is too long.")
        super().on_headers_complete()
        self._stage = "body"

    def on_body(self, body: bytes) -> None:
        """Keeps nothing: no request has a body that matters."""

    def on_message_complete(self) -> None:
        self._stop_deadline()
        self._stage = None
        self._request_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._set_deadline(self._limits.reading)

    # Private

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Nobody needs an answer once the connection is lost, and strangers could make thousands of requests wait."""

        async def answer(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI has no types
            self._answering = None if cycle.disconnected else asyncio.current_task()
            with contextlib.suppress(asyncio.CancelledError):
                await app(scope, receive, send)

        super()._start_asgi_task(cycle, answer)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words for all that its parser refuses
        """Closes the connection, after the answer to a request in progress."""
        if self._is_answering:
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if self._stage == "body":
            self.transport.close()
        else:
            super().send_400_response(self._refusal)
        self._set_deadline(self._limits.closing)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._set_deadline(self._limits.closing)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _feed(self, piece: bytes) -> None:
        self._request_bytes += len(piece)
        self._hold()
        is_trusted = self._peer or self._kept_connections.is_known(self)
        if self._request_bytes > (LONGEST_REQUEST if is_trusted else LONGEST_OF_STRANGERS):
            self._refusal = "The request is too long."
            self.send_400_response("")
        else:
            super().data_received(piece)

    def _hold(self) -> None:
        size = CONNECTION_BYTES + self._request_bytes + self.transport.get_write_buffer_size()
        self._kept_connections.hold(self, size)

    def _refuse(self, reason: str) -> None:
        """Called in the parser, which treats a request as invalid if anything is raised."""
        self._refusal = reason
        raise ValueError(reason)

    def _set_deadline(self, seconds: float) -> None:
        """Aborts the connection after this time; replaces the previous deadline."""
        self._stop_deadline()
        self._deadline = self.loop.call_later(seconds, self.abort)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _chain(transport: asyncio.Transport) -> Chain:
    """Returns the peer's chain. Before Python 3.13 only its own certificate is available."""
    connection = transport.get_extra_info("ssl_object")
    # Without a peer certificate, get_unverified_chain() of Python 3.13 raises AttributeError.
    own = connection.getpeercert(binary_form=True) if connection is not None else None
    if not own:
        return ()
    return tuple(connection.get_unverified_chain()) if hasattr(connection, "get_unverified_chain") else (own,)
