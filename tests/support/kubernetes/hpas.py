"""HPAs of autoscaling/v2 as kube-apiserver returns them."""

from typing import Any

Json = dict[str, Any]
LAG = "kafka_consumergroup_lag"


def hpa(name: str = "consumer", *metrics: Json, namespace: str = "shop", **status: object) -> Json:
    return {
        "metadata": {
            "namespace": namespace,
            "name": name,
            "annotations": {
                "kafka-lag-adapter/cooldown": "1m",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            },
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 0,
            "maxReplicas": 9,
            "metrics": [*metrics],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
        },
        "status": {"currentReplicas": 1, "desiredReplicas": 2, "currentMetrics": None, **status},
    }


def external(metric: str = LAG, *expressions: Json, **labels: str) -> Json:
    selector = {"matchLabels": labels, "matchExpressions": [*expressions]}
    target = {"type": "AverageValue", "averageValue": "1k"}
    return {"type": "External", "external": {"metric": {"name": metric, "selector": selector}, "target": target}}


def custom(source: str, metric: Json) -> Json:
    """The same metric, which `external` returned, as an Object or Pods metric."""
    of_object = {"describedObject": {"apiVersion": "v1", "kind": "Service", "name": "kafka"}}
    return {"type": source, source.lower(): {**metric["external"], **(of_object if source == "Object" else {})}}


def expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": [*values]}
