"""One HPA that uses our metrics, as a frozen value made of the JSON of autoscaling/v2.

There may be thousands of HPAs, so texts that most of them share are kept once."""

import json
import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Any

from adapter.metrics.definitions import SERVED
from adapter.metrics.requirement import Operator, Requirement
from adapter.metrics.selection import named
from apiservice.autoscalers.annotations import ANNOTATIONS, ASLEEP_SINCE, MAX_REPLICAS, SCALE_TO_ZERO, SHADOW

LONGEST = 16 * 1024
"""Characters of what is kept of an HPA, as JSON. Most have about 2,000."""
MOST_NAMES = 20
"""Groups, topics and others that an HPA may name: 5,000 HPAs that name more would take all memory."""
_warn_once = lru_cache(5000)(logging.getLogger(__name__).warning)  # an HPA's status changes every few seconds
NAMES_NO_GROUP = "a selector of the HPA names no group, so it covers the groups of others"
_IGNORED = "HPA %s/%s is ignored: its selectors have more than %d values, or it has more than %d characters as JSON"
_KEPT = {ASLEEP_SINCE, SCALE_TO_ZERO, MAX_REPLICAS, SHADOW}
_NO_ANNOTATIONS: Mapping[str, str] = MappingProxyType({})
_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.ABSENT,
}

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScaleTarget:
    """What the HPA scales."""

    api_version: str
    kind: str
    name: str


class Source(StrEnum):
    """The types of metrics that we serve, as an HPA names them."""

    EXTERNAL = "External"
    OBJECT = "Object"
    """A custom metric with any object as its handle: the same value as the external one."""
    PODS = "Pods"
    """A custom metric of each pod."""


ALL_SOURCES = frozenset(Source)


@dataclass(frozen=True, slots=True)
class UsedMetric:
    source: Source
    name: str
    """As written in the HPA; Kubernetes reads external metrics in lower case."""
    selector: tuple[Requirement, ...]
    target_type: str
    """`Value` or `AverageValue`."""
    target: str
    """A quantity such as `1k`."""

    @property
    def names_group(self) -> bool:
        """Whether the selector names groups; a named metric has its own."""
        return self.name.lower() not in SERVED or named(self.selector, "group") is not None


@dataclass(frozen=True, slots=True)
class AutoscalerCondition:
    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Autoscaler:
    namespace: str
    name: str
    target: ScaleTarget
    metrics: tuple[UsedMetric, ...]
    """Ours alone."""
    minimum: int
    maximum: int
    behavior: str
    """The field `behavior` as JSON."""
    current_replicas: int
    desired_replicas: int
    last_scale_time: str
    """RFC 3339; empty: never."""
    conditions: tuple[AutoscalerCondition, ...]
    annotations: Mapping[str, str]
    """Those with our prefix."""
    has_other_metrics: bool = False
    """Whether it also uses metrics that this adapter does not serve, or that cannot be read."""
    uid: str = ""
    version: str = ""
    """The resource version; empty without annotations of ours: nothing is written to such an HPA."""
    maximum_owners: tuple[str, ...] = ()
    """The field managers that set `maxReplicas`; empty, too, without annotations of ours."""

    @property
    def place(self) -> tuple[str, str]:
        return self.namespace, self.name


def autoscaler_of(hpa: Json, names: Collection[str], sources: Collection[Source] = ALL_SOURCES) -> Autoscaler | None:
    """Returns None if the HPA uses no metric of `names`, which are in lower case, or if it is too large and logged.

    One whose target sleeps, or that asks for what it cannot get, is returned all the same.
    `sources` has the types of metrics that this adapter serves."""
    metadata, spec, status = hpa["metadata"], hpa["spec"], hpa.get("status") or {}
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k.startswith(ANNOTATIONS)}
    metrics, target = tuple(_metrics(spec, names, sources)), spec["scaleTargetRef"]
    if not metrics and _KEPT.isdisjoint(annotations):
        return None
    named = sum(len(one.values) for metric in metrics for one in metric.selector)
    if named > MOST_NAMES or len(json.dumps((spec, status, annotations))) > LONGEST:
        _warn_once(_IGNORED, metadata["namespace"], metadata["name"], MOST_NAMES, LONGEST)
        return None
    return Autoscaler(
        intern(metadata["namespace"]),
        intern(metadata["name"]),
        ScaleTarget(intern(target.get("apiVersion", "")), intern(target["kind"]), intern(target["name"])),
        metrics,
        spec.get("minReplicas", 1),
        spec["maxReplicas"],
        intern(json.dumps(spec.get("behavior") or {})),
        status.get("currentReplicas", 0),
        status.get("desiredReplicas", 0),
        status.get("lastScaleTime") or "",
        _shared(
            tuple(
                AutoscalerCondition(each["type"], each["status"], each.get("reason", ""), each.get("message", ""))
                for each in status.get("conditions") or ()
            )
        ),
        annotations or _NO_ANNOTATIONS,
        len(metrics) < len(spec["metrics"]),
        metadata.get("uid", ""),
        metadata.get("resourceVersion", "") if annotations else "",
        _shared_names(tuple(_maximum_owners(metadata))) if annotations else (),
    )


@lru_cache(maxsize=1000)
def _shared(conditions: tuple[AutoscalerCondition, ...]) -> tuple[AutoscalerCondition, ...]:
    """Returns an equal value that is kept already, if there is one."""
    return conditions


@lru_cache(maxsize=1000)
def _shared_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """As `_shared`."""
    return names


def _maximum_owners(metadata: Json) -> Iterator[str]:
    for each in metadata.get("managedFields") or ():
        if "f:maxReplicas" in ((each.get("fieldsV1") or {}).get("f:spec") or {}):
            yield each.get("manager") or "an unnamed manager"


def _metrics(spec: Json, names: Collection[str], sources: Collection[Source]) -> Iterator[UsedMetric]:
    by_type = {source.value: source for source in sources}
    for each in spec.get("metrics") or ():
        source = by_type.get(each["type"])
        if source is None or each[source.lower()]["metric"]["name"].lower() not in names:
            continue
        metric, target = each[source.lower()]["metric"], each[source.lower()]["target"]
        selector = selector_of(metric.get("selector") or {})
        if selector is not None:
            quantity = target.get("value") or target.get("averageValue") or ""
            yield UsedMetric(source, intern(metric["name"]), selector, intern(target["type"]), intern(quantity))


def selector_of(selector: Json) -> tuple[Requirement, ...] | None:
    """Returns None for an unknown operator: kube-apiserver accepts it, but the HPA controller cannot read by it."""
    labels, expressions = selector.get("matchLabels") or {}, selector.get("matchExpressions") or ()
    if not all(each["operator"] in _OPERATORS for each in expressions):
        return None
    return (
        *(Requirement(intern(key), Operator.EQUALS, (value,)) for key, value in labels.items()),
        *(
            Requirement(intern(each["key"]), _OPERATORS[each["operator"]], tuple(each.get("values") or ()))
            for each in expressions
        ),
    )
