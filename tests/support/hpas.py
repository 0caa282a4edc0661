"""HPAs of autoscaling/v2 as they stand in a file, made of the few numbers that a test is about."""

from collections.abc import Mapping
from typing import Any

from adapter.verdicts.hpa import Hpa, hpa_of

Json = Mapping[str, Any]


def target(*, value: object = None, average: object = None) -> Json:
    """One of both."""
    return {"type": "Value", "value": value} if average is None else {"type": "AverageValue", "averageValue": average}


def external(*, value: object = None, average: object = None, name: str = "lag") -> Json:
    """An External metric."""
    return {
        "type": "External",
        "external": {"metric": {"name": name}, "target": target(value=value, average=average)},
    }


def document(*metrics: Json, least: int = 1, most: int = 1000, behavior: Json | None = None) -> dict[str, Any]:
    """The whole object; an External metric with averageValue 1 unless others are given."""
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "billing"},
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": [*metrics] or [external(average="1")],
        "behavior": behavior,
    }
    metadata = {"name": "billing", "namespace": "payments"}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def hpa(*metrics: Json, least: int = 1, most: int = 1000, behavior: Json | None = None) -> Hpa:
    return hpa_of(document(*metrics, least=least, most=most, behavior=behavior))


def rules(*policies: str, window: int | None = 0, select: str | None = None, tolerance: object = None) -> Json:
    """One direction of `behavior`; a policy as `Pods 4 15`: type, value, period in seconds."""
    parts = [policy.split() for policy in policies]
    listed = [{"type": kind, "value": int(value), "periodSeconds": int(period)} for kind, value, period in parts]
    return {
        "policies": listed or None,
        "stabilizationWindowSeconds": window,
        "selectPolicy": select,
        "tolerance": tolerance,
    }
