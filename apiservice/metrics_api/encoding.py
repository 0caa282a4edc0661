"""Encodes metric values, quantities, times and warnings for Kubernetes' clients."""

import re
from collections.abc import Iterable, Mapping, Sequence

from adapter.clock import utc_text
from adapter.lag.totals import LARGEST
from adapter.metrics.aggregation import MetricValue
from apiservice.api_group import ApiGroup
from apiservice.http.replies import encoded
from apiservice.metrics_api.label_selector import Selector


def quantity(milli: int) -> str:
    """Returns a whole number or, as Kubernetes writes it, thousandths; at least 0 and at most what an HPA can count."""
    whole, thousandths = divmod(min(max(milli, 0), 1000 * LARGEST), 1000)
    return f"{milli}m" if thousandths else str(whole)


def metric_values(group: ApiGroup, metric: str, values: Iterable[MetricValue]) -> bytes:
    """Returns the group's list of values, without `window`, because offsets are read at one moment."""
    return _list(
        group,
        (
            {"metricName": metric, "metricLabels": labels, "timestamp": utc_text(at), "value": quantity(milli)}
            for labels, milli, at in values
        ),
    )


def object_values(
    group: ApiGroup, metric: str, selector: Selector | None, values: Iterable[tuple[Mapping[str, str], MetricValue]]
) -> bytes:
    """Returns the list of objects' values, each with a reference to its object; `selector` is that of the request."""
    naming = (
        {"metric": {"name": metric, "selector": selector}}
        if group.has_metric_field
        else {"metricName": metric, "selector": selector}
    )
    return _list(
        group,
        (
            {"describedObject": described, **naming, "timestamp": utc_text(at), "value": quantity(milli)}
            for described, (_, milli, at) in values
        ),
    )


def _list(group: ApiGroup, items: Iterable[Mapping[str, object]]) -> bytes:
    """Encodes items one by one: a single call of the JSON module would block all other threads."""
    head = encoded({"kind": group.list_kind, "apiVersion": group.group_version, "metadata": {}})
    return head[:-1] + b',"items":[' + b",".join(map(encoded, items)) + b"]}"


_MOST_CHARACTERS_OF_ONE = 256
_MOST_CHARACTERS = 4096
_UNPRINTABLE = re.compile(r"[^ -~]")


def warning_header(warnings: Sequence[str]) -> str:
    """Returns one `Warning` header short enough for proxies; kubectl shows each warning on its own line.

    Characters outside ASCII become `?`, because Go's client drops headers that it cannot read."""
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
