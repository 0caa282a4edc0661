"""Wire shapes: metric values, quantities, times, warnings and JSON documents as Kubernetes' clients decode them."""

import asyncio
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from fastapi import Response
from starlette.types import Receive, Scope, Send

from adapter.folding import MetricValue

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"

_LARGEST = 9_223_372_036_854_775
"""The autoscaler counts thousandths in 64 bits: anything above wraps around there."""

_COMMON_HEADERS = {"cache-control": "no-cache, private", "x-content-type-options": "nosniff"}


_PIECE = 64 * 1024


class _LongResponse(Response):
    """Sent piece by piece: TLS takes its time for each, and so does a client that reads slowly."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI calls it
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for begin in range(0, len(self.body), _PIECE):
            end = begin + _PIECE
            await send({"type": "http.response.body", "body": self.body[begin:end], "more_body": end < len(self.body)})
            await asyncio.sleep(0)


def _response(body: str | bytes, code: int, headers: Mapping[str, str] | None = None) -> Response:
    return (Response if len(body) <= _PIECE else _LongResponse)(body, code, headers)


def json_reply(body: bytes, code: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer that may be sent any number of times. Without the content type, Kubernetes' clients expect protobuf."""
    return _response(body, code, {"content-type": "application/json", **_COMMON_HEADERS, **(headers or {})})


def text_reply(body: str | bytes, code: int = 200, content_type: str = "text/plain; charset=utf-8") -> Response:
    """An answer for people and probes."""
    return _response(body, code, {"content-type": content_type, **_COMMON_HEADERS})


def encoded(document: Mapping[str, Any]) -> bytes:
    """The document as compact JSON in UTF-8; what is no text (a group id may be any bytes) becomes `?`."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def etag_of(body: bytes) -> str:
    """A strong ETag of these bytes."""
    return f'"{hashlib.sha256(body).hexdigest()[:32].upper()}"'


def pretty(response: Response) -> Response:
    """The same JSON answer, indented for people; without its ETag, which is that of other bytes."""
    body = json.dumps(json.loads(bytes(response.body)), ensure_ascii=False, indent=2).encode() + b"\n"
    copy = _response(body, response.status_code)
    own = [(name, value) for name, value in response.raw_headers if name not in (b"content-length", b"etag")]
    copy.raw_headers = [*own, (b"content-length", b"%d" % len(body))]
    return copy


def quantity(value: int) -> str:
    """The number as a plain integer, which every parser of quantities reads.

    Never below zero, and never above what the autoscaler can count.
    """
    return str(min(max(value, 0), _LARGEST))


@lru_cache(maxsize=4096)
def _utc_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().removesuffix("+00:00") + "Z"


def utc_time(epoch_seconds: float) -> str:
    """RFC 3339, whole seconds, UTC: `2026-11-21T11:48:29Z`."""
    return _utc_second(int(epoch_seconds // 1))


@dataclass(frozen=True, slots=True)
class _Form:
    """How a list of values is written; each `%s` takes JSON."""

    head: bytes
    item: str
    labels: str
    label: str
    next_label: str
    next_item: bytes
    tail: bytes


_HEAD = {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}}
_COMPACT = _Form(
    head=encoded(_HEAD)[:-1] + b',"items":[',
    item='{"metricName":%s,"metricLabels":%s,"timestamp":"%s","value":"%s"}',
    labels="{%s}",
    label="%s:%s",
    next_label=",",
    next_item=b",",
    tail=b"]}",
)
_INDENTED = _Form(
    head=json.dumps(_HEAD, indent=2).encode()[:-2] + b',\n  "items": [\n    ',
    item='{\n      "metricName": %s,\n      "metricLabels": %s,\n      "timestamp": "%s",\n      "value": "%s"\n    }',
    labels="{\n        %s\n      }",
    label="%s: %s",
    next_label=",\n        ",
    next_item=b",\n    ",
    tail=b"\n  ]\n}\n",
)


def external_metric_values(metric: str, values: Iterable[MetricValue], *, indented: bool = False) -> bytes:
    """An `ExternalMetricValueList` of at least one value; `window` is left out, as an offset is read at one moment.

    Written item by item: the JSON module would do all of them in one call, in which no other thread can run.
    """
    form = _INDENTED if indented else _COMPACT
    templates: dict[tuple[str, ...], str] = {}
    items: list[bytes] = []
    for labels, value, measured_at in values:
        keys = tuple(labels)
        if keys not in templates:
            templates[keys] = _template(form, metric, keys)
        texts = map(encode_basestring, labels.values())
        item = templates[keys] % (*texts, utc_time(measured_at), quantity(value))
        items.append(item.encode("utf-8", "replace"))
    return form.head + form.next_item.join(items) + form.tail


def _template(form: _Form, metric: str, keys: Sequence[str]) -> str:
    """An item with a place for each label, for its time and its quantity: nearly all items have the same labels."""
    fixed = [encode_basestring(text).replace("%", "%%") for text in (metric, *keys)]
    labels = form.next_label.join(form.label % (key, "%s") for key in fixed[1:])
    return form.item % (fixed[0], form.labels % labels if keys else "{}", "%s", "%s")


_MOST_CHARACTERS_OF_ONE = 256
_MOST_CHARACTERS = 4096
_UNPRINTABLE = re.compile(r"[^ -~]")


def warning_header(warnings: Sequence[str]) -> str:
    """The warnings as one `Warning` header, short enough for every proxy on its way; kubectl shows each on a line.

    Letters outside ASCII become `?`: Go's client drops a header that it cannot read.
    """
    texts: list[str] = []
    room = _MOST_CHARACTERS
    for warning in warnings:
        text = _quotable(warning)
        room -= len(text)
        if room < 0:
            texts.append(f"{len(warnings) - len(texts)} more warnings are left out")
            break
        texts.append(text)
    return ", ".join(f'299 - "{text}"' for text in texts)


def _quotable(warning: str) -> str:
    ascii_only = _UNPRINTABLE.sub("?", warning)
    if len(ascii_only) > _MOST_CHARACTERS_OF_ONE:
        ascii_only = ascii_only[: _MOST_CHARACTERS_OF_ONE - 3] + "..."
    return ascii_only.replace("\\", "\\\\").replace('"', '\\"')
