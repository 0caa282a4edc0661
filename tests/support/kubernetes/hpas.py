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
                "kafka-lag-adapter/shadow": "true",
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


def expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": [*values]}
