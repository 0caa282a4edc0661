"""Pure: the HPAs that use our metrics for a single group -> the document of them that the history keeps.

A report compares them with others. HPAs that also use other metrics, that are about several groups, or whose namespace
may not read the group are left out: nobody can say what they would have done."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from adapter.clock import utc_text
from adapter.history.notes import Note
from adapter.metrics.query import Served
from adapter.metrics.requirement import Operator, Requirement
from adapter.metrics.selection import named
from apiservice.autoscalers.autoscaler import Autoscaler, Source, UsedMetric

Json = dict[str, Any]
_OPERATORS = {
    Operator.IN: "In",
    Operator.NOT_IN: "NotIn",
    Operator.EXISTS: "Exists",
    Operator.ABSENT: "DoesNotExist",
}


class Settled(Protocol):
    """What follows from the settings."""

    def served(self, metric: str) -> Served | None:
        """Returns what we serve by this name."""

    def may_name(self, group: str, namespace: str) -> bool:
        """Whether the group may be read from the namespace."""

    def promised_seconds(self, served: Served, requirements: Sequence[Requirement]) -> float | None:
        """Returns how long a message may wait by the promise that a value keeps; None: it keeps none."""


def record_of(hpas: Iterable[Autoscaler], clusters: Iterable[str], settled: Settled, now: float) -> Note:
    """`clusters` are those of the settings; `now` is in seconds since the epoch."""
    entries = [entry for hpa in hpas if (entry := _entry(hpa, settled)) is not None]
    entries.sort(key=lambda entry: (entry["namespace"], entry["name"]))
    head = {"clusters": sorted(clusters)}
    lasting = [{key: value for key, value in entry.items() if key != "currentReplicas"} for entry in entries]
    text = json.dumps({"seenAt": utc_text(now), **head, "autoscalers": entries})
    return Note(text, json.dumps({**head, "autoscalers": lasting}), is_empty=not entries)


def _entry(hpa: Autoscaler, settled: Settled) -> Json | None:
    served = [settled.served(metric.name) for metric in hpa.metrics]
    if hpa.has_other_metrics or not served or any(metric.source is Source.PODS for metric in hpa.metrics):
        return None
    known = [each for each in served if each is not None]
    asked = [(*each.requirements(), *metric.selector) for each, metric in zip(known, hpa.metrics, strict=False)]
    groups, clusters, topics = ({named(one, key) for one in asked} for key in ("group", "cluster", "topic"))
    if len(known) < len(served) or len(groups) != 1 or len(clusters) != 1 or len(topics) != 1:
        return None
    group, cluster = _only(groups.pop()), _only(clusters.pop())
    if group is None or not settled.may_name(group, hpa.namespace):
        return None
    promises = {
        settled.promised_seconds(*of) for of in zip(known, (each.selector for each in hpa.metrics), strict=True)
    }
    return {
        "cluster": cluster,
        "group": group,
        "topics": sorted(topics.pop() or ()),
        "values": [each.definition.name for each in known],
        "maxWaitSeconds": promises.pop() if len(promises) == 1 else None,
        "namespace": hpa.namespace,
        "name": hpa.name,
        "currentReplicas": hpa.current_replicas,
        "spec": _spec(hpa),
    }


def _only(names: frozenset[str] | None) -> str | None:
    return next(iter(names)) if names is not None and len(names) == 1 else None


def _spec(hpa: Autoscaler) -> Json:
    """Returns it with the names of autoscaling/v2."""
    target, behavior = hpa.target, json.loads(hpa.behavior)
    return {
        "scaleTargetRef": {"apiVersion": target.api_version, "kind": target.kind, "name": target.name},
        "minReplicas": hpa.minimum,
        "maxReplicas": hpa.maximum,
        "metrics": [_metric(each) for each in hpa.metrics],
        **({"behavior": behavior} if behavior else {}),
    }


def _metric(metric: UsedMetric) -> Json:
    labels = {each.key: next(iter(each.values)) for each in metric.selector if each.operator is Operator.EQUALS}
    expressions = list(_expressions(metric.selector))
    selector = {
        **({"matchLabels": labels} if labels else {}),
        **({"matchExpressions": expressions} if expressions else {}),
    }
    key = "value" if metric.target_type == "Value" else "averageValue"
    source = {
        "metric": {"name": metric.name, **({"selector": selector} if selector else {})},
        "target": {"type": metric.target_type, key: metric.target},
    }
    return {"type": metric.source.value, metric.source.lower(): source}


def _expressions(selector: Iterable[Requirement]) -> Iterator[Json]:
    for each in selector:
        if each.operator is not Operator.EQUALS:
            values = {"values": sorted(each.values)} if each.values else {}
            yield {"key": each.key, "operator": _OPERATORS[each.operator], **values}
