"""What an HPA reads now, and what its controller makes of that, step by step, by the functions of the replay."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adapter.errors import AdapterError
from adapter.metrics.query import Metrics
from adapter.metrics.requirement import written
from adapter.overview.explanation import decimal
from adapter.verdicts.controllers import MOST_REPLICAS, Controllers
from adapter.verdicts.hpa import API_VERSION, KIND, Behavior, Hpa, HpaInvalid, Policy, ScaleDown, ScaleUp, hpa_of
from apiservice.autoscalers.autoscaler import Autoscaler, AutoscalerCondition, Source, UsedMetric

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
class ReadValue:
    """One of the HPA's metrics, and what a read of it returns now."""

    metric: str
    selector: str
    """As in `kubectl --selector`."""
    target_type: str
    target: str
    value: str
    """Empty if it is refused."""
    refusal: str


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


def line_of(autoscaler: Autoscaler, metrics: Metrics) -> HpaLine:
    read = {metric: _read(metric, metrics, autoscaler.namespace) for metric in autoscaler.metrics}
    try:
        arithmetic = simulated(autoscaler, {metric: milli for metric, (milli, _) in read.items()})
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
        values=tuple(value for _, value in read.values()),
        arithmetic=arithmetic,
        has_other_metrics=autoscaler.has_other_metrics,
        conditions=autoscaler.conditions,
    )


def _read(metric: UsedMetric, metrics: Metrics, namespace: str) -> tuple[int | None, ReadValue]:
    """Returns thousandths, and the same in words."""
    milli, refusal = None, ""
    if metric.source is Source.PODS:
        refusal = "a Pods metric has a value for each pod; the HPA's status has their mean"
    else:
        try:
            milli = sum(each.milli for each in metrics.read(metric.name, metric.selector, namespace).values)
        except AdapterError as error:
            refusal = str(error)
    value = "" if milli is None else decimal(milli)
    return milli, ReadValue(metric.name, written(metric.selector), metric.target_type, metric.target, value, refusal)


def simulated(autoscaler: Autoscaler, values: Mapping[UsedMetric, int | None]) -> Arithmetic | None:
    """Returns what follows from the values, in thousandths (None: refused); None if there is no metric to follow.

    Raises HpaInvalid if kube-apiserver would not accept the HPA."""
    metrics = [metric for metric in autoscaler.metrics if metric.source is not Source.PODS]
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
    return {"type": metric.source.value, metric.source.value.lower(): source}


def _ratio(hpa: Hpa, value: int | None, replicas: int) -> float | None:
    target = hpa.metrics[0].source.target
    if value is None:
        return None
    if target.value is not None:
        return value / target.value
    return value / (target.average_value * replicas) if replicas and target.average_value else None
