"""Wire shapes: metric values, quantities, times, warnings and JSON documents as Kubernetes' clients decode them."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from fastapi import Response

from adapter.folding import MetricValue

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"

_SUFFIXES = ("", "k", "M", "G", "T", "P", "E")
_LARGEST = 9_223_372_036_854_775
"""The autoscaler counts thousandths in 64 bits: anything above wraps around there."""

_COMMON_HEADERS = {"cache-control": "no-cache, private", "x-content-type-options": "nosniff"}


def json_reply(body: bytes, code: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer that may be sent any number of times. Without the content type, Kubernetes' clients expect protobuf."""
    return Response(body, code, {"content-type": "application/json", **_COMMON_HEADERS, **(headers or {})})


def text_reply(body: str | bytes, code: int = 200, content_type: str = "text/plain; charset=utf-8") -> Response:
    """An answer for people and probes."""
    return Response(body, code, {"content-type": content_type, **_COMMON_HEADERS})


def encoded(document: Mapping[str, Any]) -> bytes:
    """The document as compact JSON in UTF-8; what is no text (a group id may be any bytes) becomes `?`."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def etag_of(body: bytes) -> str:
    """A strong ETag of these bytes."""
    return f'"{hashlib.sha256(body).hexdigest()[:32].upper()}"'


def pretty(response: Response) -> Response:
    """The same JSON answer, indented for people; without its ETag, which is that of other bytes."""
    body = json.dumps(json.loads(bytes(response.body)), ensure_ascii=False, indent=2).encode() + b"\n"
    copy = Response(body, response.status_code)
    own = [(name, value) for name, value in response.raw_headers if name not in (b"content-length", b"etag")]
    copy.raw_headers = [*own, (b"content-length", b"%d" % len(body))]
    return copy


def quantity(value: int) -> str:
    """The number as `resource.Quantity` writes it, thousands as a suffix: 1500 is `1500`, 2000 is `2k`.

    Never below zero, and never above what the autoscaler can count.
    """
    rest, thousands = min(max(value, 0), _LARGEST), 0
    while rest and rest % 1000 == 0 and thousands < len(_SUFFIXES) - 1:
        rest, thousands = rest // 1000, thousands + 1
    return f"{rest}{_SUFFIXES[thousands]}"


@lru_cache(maxsize=4096)
def _utc_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().removesuffix("+00:00") + "Z"


def utc_time(epoch_seconds: float) -> str:
    """RFC 3339, whole seconds, UTC: `2026-11-21T11:48:29Z`."""
    return _utc_second(int(epoch_seconds // 1))


def external_metric_values(metric: str, values: Iterable[MetricValue]) -> bytes:
    """An `ExternalMetricValueList`; `window` is left out, as an offset is read at one moment."""
    items = [
        {
            "metricName": metric,
            "metricLabels": dict(value.labels),
            "timestamp": utc_time(value.measured_at),
            "value": quantity(value.value),
        }
        for value in values
    ]
    kind = {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/{VERSION}"}
    return encoded({**kind, "metadata": {}, "items": items})


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
