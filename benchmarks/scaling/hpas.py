"""Pure: HPAs of one external metric, as objects of autoscaling/v2."""

from collections.abc import Mapping
from typing import Any

from adapter.verdicts.hpa import API_VERSION, KIND, Hpa, hpa_of

Json = Mapping[str, Any]


def hpa(target: Json, behavior: Json | None = None, *, least: int = 1, most: int) -> Hpa:
    metric = {"type": "External", "external": {"metric": {"name": "value"}, "target": target}}
    spec = {"minReplicas": least, "maxReplicas": most, "metrics": [metric], "behavior": behavior}
    return hpa_of({"apiVersion": API_VERSION, "kind": KIND, "spec": spec})


def average(amount: float) -> Json:
    return {"type": "AverageValue", "averageValue": _milli(amount)}


def value(amount: float) -> Json:
    return {"type": "Value", "value": _milli(amount)}


def down_after(seconds: int) -> Json:
    return {"scaleDown": {"stabilizationWindowSeconds": seconds}}


def _milli(amount: float) -> str:
    return f"{max(round(1000 * amount), 1)}m"
