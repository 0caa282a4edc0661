"""What an HPA reads now, and what its controller makes of that, step by step, by the functions of the replay."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adapter.errors import AdapterError
from adapter.metrics.problems import Refused
from adapter.metrics.query import Metrics
from adapter.metrics.requirement import written
from adapter.overview.explanation import decimal
from adapter.verdicts.controllers import MOST_REPLICAS, Controllers
from adapter.verdicts.hpa import API_VERSION, KIND, Behavior, Hpa, HpaInvalid, Policy, ScaleDown, ScaleUp, hpa_of
from apiservice.autoscalers.autoscaler import Autoscaler, AutoscalerCondition, Source, UsedMetric
from apiservice.pods.values import PodQuery, PodsOf, values_of_pods

SCALED_TO_ZERO = "ScaledToZero"
"""The condition by which the controller remembers that it took the last replica away itself."""
_NO_LIMIT = (Policy(type="Pods", value=MOST_REPLICAS, period_seconds=15),)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Numbers of replicas, each after one more step. A controller that has just started decides so: one that runs also
    remembers what it recommended and changed before."""

    ratio: float | None
    """The first metric's value over its target; None if it is not known, or there are no replicas."""
    asked: int
    """By the metrics and the tolerance alone."""
    by_policies: int
    by_range: int
    """Within `minReplicas` and `maxReplicas`."""
    desired: int
    """With the stabilization windows: the decision."""


@dataclass(frozen=True, slots=True)
class HpaValue:
    """What an HPA reads by one of its metrics."""

    milli: int | None
    """The sum of all items, in thousandths; None: it is refused."""
    refusal: str = ""
    reason: str = ""
    """A word in CamelCase for the refusal."""
    pods: int | None = None
    """How many pods have a value, of a Pods metric."""


@dataclass(frozen=True, slots=True)
class ReadValue:
    """One of the HPA's metrics, and what a read of it returns now, in words."""

    metric: str
    selector: str
    """As in `kubectl --selector`."""
    target_type: str
    target: str
    value: str
    """Empty if it is refused."""
    refusal: str
    pods: int | None = None
    """How many pods have a part of the value, of a Pods metric."""


@dataclass(frozen=True, slots=True)
class HpaLine:
    namespace: str
    name: str
    scales: str
    minimum: int
    maximum: int
    current: int
    desired: int
    """By its status, like `current`."""
    values: tuple[ReadValue, ...]
    arithmetic: Arithmetic | None
    """None if it cannot be followed."""
    has_other_metrics: bool
    conditions: tuple[AutoscalerCondition, ...]


def line_of(autoscaler: Autoscaler, metrics: Metrics, pods_in: PodsOf = lambda _: None) -> HpaLine:
    read = {metric: value_of(metric, autoscaler.namespace, metrics, pods_in) for metric in autoscaler.metrics}
    try:
        followed = {metric: value.milli for metric, value in read.items() if _is_followed(value, autoscaler)}
        arithmetic = simulated(autoscaler, followed)
    except HpaInvalid:
        arithmetic = None
    target = autoscaler.target
    return HpaLine(
        namespace=autoscaler.namespace,
        name=autoscaler.name,
        scales=f"{target.kind}/{target.name}",
        minimum=autoscaler.minimum,
        maximum=autoscaler.maximum,
        current=autoscaler.current_replicas,
        desired=autoscaler.desired_replicas,
        values=tuple(_in_words(metric, value) for metric, value in read.items()),
        arithmetic=arithmetic,
        has_other_metrics=autoscaler.has_other_metrics,
        conditions=autoscaler.conditions,
    )


def value_of(metric: UsedMetric, namespace: str, metrics: Metrics, pods_in: PodsOf) -> HpaValue:
    """`namespace` is that of the HPA, and `pods_in` returns its pods.

    An HPA counts the pods of its target alone. Here, the value of a Pods metric covers all pods of the namespace in
    which members of the group run: which of them are the target's is not known."""
    try:
        if metric.source is Source.PODS:
            members = metrics.read_members(metric.name, metric.selector, namespace)
            values = list(values_of_pods(PodQuery(namespace, "", ()), members, pods_in).values())
            return HpaValue(sum(each.milli for each in values), pods=len(values))
        is_listed = metric.source is Source.EXTERNAL
        reading = metrics.read(metric.name, metric.selector, namespace, may_list=is_listed)
    except AdapterError as error:
        problems = error.problems if isinstance(error, Refused) else ()
        return HpaValue(None, str(error), problems[0].reason if problems else "ValueRefused")
    return HpaValue(sum(each.milli for each in reading.values))


def _is_followed(value: HpaValue, autoscaler: Autoscaler) -> bool:
    """The controller makes assumptions about pods without a value, by their age and their readiness, which are not
    known here. Where each pod has one, it divides by their number, as for an external metric."""
    return value.pods in {None, autoscaler.current_replicas}


def _in_words(metric: UsedMetric, value: HpaValue) -> ReadValue:
    number = "" if value.milli is None else decimal(value.milli)
    selector = written(metric.selector)
    return ReadValue(metric.name, selector, metric.target_type, metric.target, number, value.refusal, value.pods)


def simulated(autoscaler: Autoscaler, values: Mapping[UsedMetric, int | None]) -> Arithmetic | None:
    """Returns what follows from the values, in thousandths (None: refused); None if there is no metric to follow.

    Metrics that `values` lacks are left out. Raises HpaInvalid if kube-apiserver would not accept the HPA."""
    metrics = [metric for metric in autoscaler.metrics if metric in values]
    if not metrics:
        return None
    steps = _steps(hpa_of(_document(autoscaler, metrics)), autoscaler.current_replicas)
    controllers = Controllers(steps)
    controllers.scaled_to_zero[:] = any(
        each.type == SCALED_TO_ZERO and each.status == "True" for each in autoscaler.conditions
    )
    read = [values[metric] for metric in metrics]
    column = np.array([math.nan if value is None else float(value) for value in read])
    now = np.full(len(steps), autoscaler.current_replicas, dtype=np.int64)
    counts = controllers.sync(0.0, np.repeat(column[:, None], len(steps), axis=1), now, now, now).tolist()
    return Arithmetic(_ratio(steps[0], read[0], autoscaler.current_replicas), *counts)


def _steps(hpa: Hpa, replicas: int) -> list[Hpa]:
    """Returns the HPA without anything but its metrics, with its policies, with its range too, and as it is."""
    own = hpa.behavior or _without_behavior(replicas)
    up, down = own.scale_up, own.scale_down
    free_up = ScaleUp(policies=_NO_LIMIT, tolerance=up.tolerance)
    free_down = ScaleDown(policies=_NO_LIMIT, tolerance=down.tolerance, stabilization_window_seconds=0)
    now_up = up.model_copy(update={"stabilization_window_seconds": 0})
    now_down = down.model_copy(update={"stabilization_window_seconds": 0})
    anything = {"min_replicas": 0, "max_replicas": MOST_REPLICAS}
    free, policies = Behavior(scale_up=free_up, scale_down=free_down), Behavior(scale_up=now_up, scale_down=now_down)
    return [
        hpa.model_copy(update={**anything, "behavior": free}),
        hpa.model_copy(update={**anything, "behavior": policies}),
        hpa.model_copy(update={"behavior": policies}),
        hpa,
    ]


def _without_behavior(replicas: int) -> Behavior:
    """Without `behavior`, the controller at most doubles the replicas, or makes them 4, and removes any number."""
    added = Policy(type="Pods", value=max(replicas, 4 - replicas), period_seconds=15)
    return Behavior(scale_up=ScaleUp(policies=(added,)), scale_down=ScaleDown(policies=_NO_LIMIT))


def _document(autoscaler: Autoscaler, metrics: Sequence[UsedMetric]) -> dict[str, Any]:
    spec = {
        "minReplicas": autoscaler.minimum,
        "maxReplicas": autoscaler.maximum,
        "metrics": [_metric(metric) for metric in metrics],
        "behavior": json.loads(autoscaler.behavior) or None,
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "spec": spec}


def _metric(metric: UsedMetric) -> dict[str, Any]:
    field = "value" if metric.target_type == "Value" else "averageValue"
    source = {"metric": {"name": metric.name}, "target": {"type": metric.target_type, field: metric.target}}
    # The mean over pods, each with a value, is an average value.
    kind = Source.EXTERNAL if metric.source is Source.PODS else metric.source
    return {"type": kind.value, kind.value.lower(): source}


def _ratio(hpa: Hpa, value: int | None, replicas: int) -> float | None:
    target = hpa.metrics[0].source.target
    if value is None:
        return None
    if target.value is not None:
        return value / target.value
    return value / (target.average_value * replicas) if replicas and target.average_value else None
