"""The route of both ports for the series of groups: written in a thread, piece by piece, as fast as they are read."""

import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import sleep

from fastapi import APIRouter, Request, Response
from starlette.types import Receive, Scope, Send

from adapter import clock
from adapter.repeating import be_nice
from apiservice.http.replies import HEADERS
from apiservice.http.status import PathUnknown, TooManyReaders
from apiservice.work_thread import WorkThread

MOST_AT_ONCE = 4
"""Readers; each keeps the views that it reads in memory."""
FAST = 1
"""The level of compression."""
LEAST_SENT = 32 * 1024
"""Bytes: each piece that is sent costs the event loop a tenth of a millisecond."""
REST = 2.0
"""How much longer than it works the thread rests: while it works, each read waits for the interpreter several times."""
LONGEST_REST_SECONDS = 0.02
GZIP = 31
"""What zlib calls the format."""

Pieces = Callable[[], Iterator[bytes] | None]
"""Returns the text in pieces; None: there are no series."""


class GroupSeriesRoute:
    """`content_type` is that of the text."""

    def __init__(self, pieces: Pieces, content_type: str) -> None:
        self._pieces = pieces
        self._headers = {**HEADERS, "content-type": content_type, "vary": "accept-encoding"}
        self.thread = WorkThread("group-series", be_nice)
        self.readers = 0
        self.router = APIRouter()
        self.router.add_api_route("/metrics/groups", self._answer, methods=["GET"], response_class=Response)

    async def _answer(self, request: Request) -> Response:
        pieces = self._pieces()
        if pieces is None:
            raise PathUnknown
        pieces = _rested(pieces)
        if self.readers >= MOST_AT_ONCE:
            raise TooManyReaders(f"{MOST_AT_ONCE} others read the series of groups at the moment")
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return _Pieces(self, pieces, self._headers)
        return _Pieces(self, _compressed(pieces), {**self._headers, "content-encoding": "gzip"})

    async def send(self, pieces: Iterator[bytes], send: Send) -> None:
        """Sends the body; the connection's protocol cancels it when the reader is gone."""
        self.readers += 1
        try:
            while piece := await self.thread.result(partial(next, pieces, b"")):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            self.readers -= 1
        await send({"type": "http.response.body", "body": b""})


class _Pieces(Response):
    """starlette's response in pieces would listen for the reader's end, which the protocol does for all."""

    def __init__(self, route: GroupSeriesRoute, pieces: Iterator[bytes], headers: Mapping[str, str]) -> None:
        super().__init__(headers=headers)
        del self.headers["content-length"]
        self._route, self._pieces = route, pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI calls it
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await self._route.send(self._pieces, send)


def _rested(pieces: Iterator[bytes]) -> Iterator[bytes]:
    while piece := _next(pieces):
        yield piece


def _next(pieces: Iterator[bytes]) -> bytes:
    began = clock.monotonic()
    piece = next(pieces, b"")
    sleep(min(REST * (clock.monotonic() - began), LONGEST_REST_SECONDS))
    return piece


def _compressed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    packer, waiting = zlib.compressobj(FAST, wbits=GZIP), bytearray()
    for piece in pieces:
        waiting += packer.compress(piece)
        if len(waiting) >= LEAST_SENT:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting) + packer.flush()
