"""The two groups, which read the same topic: their consumers, their HPAs, and the adapter's settings for them."""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from adapter.columns import Seconds
from adapter.verdicts.simulation.consumers import Messages
from local.kafka.broker import Kafka
from local.kubernetes.control_plane import Manifest
from local.manifests.check import MANIFESTS

NAMESPACE = "promise"
TOPIC = "orders"
PARTITIONS = 16
"""At the peak, two for each consumer, as in a published comparison. Two are then far from being all that a consumer can
read: otherwise a percent more or less would decide between one consumer and two for these."""
BY_LAG, BY_PROMISE = "by-lag", "by-promise"
GROUPS = (BY_LAG, BY_PROMISE)
CAPACITY = 20.0
"""Messages per second of one consumer."""
LEAST_RATE, MOST_RATE = 20.0, 120.0
"""Messages per second, where the load of that comparison has them in thousands per minute."""
LEVEL_SECONDS, WAVE_SECONDS = 80, 300
"""For the first, the load stays at its least, until rates are known."""
MAX_WAIT = 30
LAG_PER_REPLICA = 200
"""Ten seconds of one consumer's work, as KEDA's examples have it."""
REPLICAS = 2
"""At the start."""
START_SECONDS = 20
"""Of a consumer, as in a cluster that pulls its image."""
SYNC_SECONDS, INTERVAL_SECONDS = 15, 2
REPOSITORY = Path(__file__).resolve().parents[2]


def rates() -> Messages:
    """Returns the messages of each second."""
    level = np.full(LEVEL_SECONDS, LEAST_RATE)
    turns: Seconds = np.arange(WAVE_SECONDS) / WAVE_SECONDS * 2 * math.pi
    middle, reach = (MOST_RATE + LEAST_RATE) / 2, (MOST_RATE - LEAST_RATE) / 2
    return np.concatenate([level, middle - reach * np.cos(turns)])


def settings(kafka: Kafka) -> dict[str, Any]:
    return {
        "clusters": [{"name": "main", "bootstrapServers": kafka.bootstrap_servers.split(",")}],
        "collection": {"interval": f"{INTERVAL_SECONDS}s", "maxAge": "20s"},
        "rules": [
            {"group": BY_LAG, "topics": [TOPIC]},
            promise(),
        ],
    }


def promise() -> dict[str, Any]:
    """Returns the rule of docs/demand.md with these names."""
    objective = {"maxWait": f"{MAX_WAIT}s", "capacityHint": CAPACITY}
    return {"group": BY_PROMISE, "topics": [TOPIC], "objective": objective}


def deployments(kafka: Kafka, records: Path) -> list[Manifest]:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    return [namespace, *(_deployment(kafka, group, records / group) for group in GROUPS)]


def hpas() -> list[Manifest]:
    """Returns one on the lag, and the example for a promise with these names."""
    return [hpa(BY_LAG), hpa(BY_PROMISE)]


def hpa(group: str) -> Manifest:
    example = yaml.safe_load((MANIFESTS / "example-hpa-required.yaml").read_text())
    spec = example["spec"]
    metric = spec["metrics"][0]["external"]
    metric["metric"]["selector"]["matchLabels"] = {"group": group}
    if group == BY_LAG:
        metric["metric"]["name"] = "kafka_consumergroup_lag"
        metric["target"]["averageValue"] = str(LAG_PER_REPLICA)
    spec["scaleTargetRef"]["name"] = group
    return {**example, "metadata": {"name": group, "namespace": NAMESPACE}, "spec": spec}


def _deployment(kafka: Kafka, group: str, records: Path) -> Manifest:
    records.mkdir(parents=True, exist_ok=True)
    flags: dict[str, object] = {
        "bootstrap-servers": kafka.bootstrap_servers,
        "group": group,
        "topic": TOPIC,
        "rate": CAPACITY,
    }
    flags |= {"start-seconds": START_SECONDS, "waits": records}
    command = [sys.executable, "-m", "local.kafka.consumer", *(f"--{name}={value}" for name, value in flags.items())]
    consumer = {
        "name": "consumer",
        "image": "none",  # the node runs the command on this machine
        "command": command,
        "env": [
            {"name": "PYTHONPATH", "value": str(REPOSITORY)},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
    }
    labels = {"app": group}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": group, "namespace": NAMESPACE},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [consumer]}},
        },
    }
