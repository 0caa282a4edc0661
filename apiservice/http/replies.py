"""JSON and text replies with the headers that Kubernetes' clients expect."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

Endpoint = Callable[[Request], Awaitable[Response]]
"""Answers GET requests of one path."""

_COMMON_HEADERS = {"cache-control": "no-cache, private", "x-content-type-options": "nosniff"}


_PIECE = 64 * 1024
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class _LongResponse(Response):
    """Sent in pieces, because encryption and slow readers take time for each."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI calls it
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for begin in range(0, len(self.body), _PIECE):
            end = begin + _PIECE
            await send({"type": "http.response.body", "body": self.body[begin:end], "more_body": end < len(self.body)})
            await asyncio.sleep(0)


def _response(body: str | bytes, code: int, headers: Mapping[str, str] | None = None) -> Response:
    return (Response if len(body) <= _PIECE else _LongResponse)(body, code, headers)


def json_reply(body: bytes, code: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Returns a reusable reply. Without a content type, Kubernetes' clients expect protobuf."""
    return _response(body, code, {"content-type": "application/json", **_COMMON_HEADERS, **(headers or {})})


def text_reply(body: str | bytes, code: int = 200, content_type: str = "text/plain; charset=utf-8") -> Response:
    return _response(body, code, {"content-type": content_type, **_COMMON_HEADERS})


def encoded(document: Mapping[str, Any]) -> bytes:
    """Returns compact JSON in UTF-8; invalid characters, which group ids may contain, become `?`."""
    return _compact.encode(document).encode("utf-8", "replace")


def etag_of(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32].upper()}"'


def pretty(response: Response) -> Response:
    """Returns the same reply indented, without its ETag."""
    body = json.dumps(json.loads(bytes(response.body)), ensure_ascii=False, indent=2).encode() + b"\n"
    copy = _response(body, response.status_code)
    own = [(name, value) for name, value in response.raw_headers if name not in (b"content-length", b"etag")]
    copy.raw_headers = [*own, (b"content-length", b"%d" % len(body))]
    return copy
