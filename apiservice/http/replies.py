"""JSON replies with the headers that Kubernetes' clients expect."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from fastapi import Response
from starlette.types import Receive, Scope, Send

HEADERS = {"cache-control": "no-cache, private", "x-content-type-options": "nosniff"}

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


def json_reply(body: bytes, code: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Returns a reusable reply. Without a content type, Kubernetes' clients expect protobuf."""
    kind = Response if len(body) <= _PIECE else _LongResponse
    return kind(body, code, {"content-type": "application/json", **HEADERS, **(headers or {})})


async def with_headers(response: Response) -> None:
    """A dependency of FastAPI's routes."""
    response.headers.update(HEADERS)


def encoded(document: Mapping[str, Any]) -> bytes:
    """Returns compact JSON in UTF-8; invalid characters, which group ids may contain, become `?`."""
    return _compact.encode(document).encode("utf-8", "replace")


def digest_of(body: bytes) -> str:
    """Returns the form in which kube-apiserver names what it already has."""
    return hashlib.sha256(body).hexdigest()[:32].upper()
