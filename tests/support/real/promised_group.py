"""A group whose rule has only a promise, its consumers and the load that they get."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import yaml
from kafka import KafkaProducer

from apiservice.autoscalers.annotations import SHADOW, SHADOW_GROUP
from local.kafka.broker import Kafka
from local.kafka.tools import create_topic
from local.kubernetes.control_plane import Manifest
from local.manifests.check import MANIFESTS

GROUP = TOPIC = "promised"
ON_CPU = "on-cpu"
PARTITIONS = 4
CAPACITY = 20
"""Messages per second of one consumer."""
RATE = 60
"""Messages per second: 15 in each partition, so that each needs a consumer of its own."""
MAX_WAIT_SECONDS = 30
LONGEST_LOAD_SECONDS = 400.0
"""Longer than a test waits while it comes."""
RULE = {"group": GROUP, "topics": [TOPIC], "objective": {"maxWait": "30s", "capacityHint": CAPACITY}}
REPOSITORY = Path(__file__).resolve().parents[3]


def prepare(cluster: Kafka) -> None:
    create_topic(cluster, TOPIC, PARTITIONS)


def deployment(cluster: Kafka, namespace: str, waits: Path) -> Manifest:
    flags = {"bootstrap-servers": cluster.bootstrap_servers, "group": GROUP, "topic": TOPIC, "rate": CAPACITY}
    command = [sys.executable, "-m", "local.kafka.consumer", *(f"--{name}={value}" for name, value in flags.items())]
    environment = [{"name": "PYTHONPATH", "value": str(REPOSITORY)}]
    consumer = {"name": "consumer", "image": "none", "command": [*command, f"--waits={waits}"], "env": environment}
    labels = {"app": GROUP}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": GROUP, "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [consumer]}},
        },
    }


def example_hpa(namespace: str) -> Manifest:
    """The shipped example with these names, and with a window for which a test can wait."""
    example = yaml.safe_load((MANIFESTS / "example-hpa-required.yaml").read_text())
    example["metadata"] = {"name": GROUP, "namespace": namespace}
    example["spec"]["scaleTargetRef"]["name"] = GROUP
    example["spec"]["metrics"][0]["external"]["metric"]["selector"]["matchLabels"]["group"] = GROUP
    example["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 10
    return dict(example)


def hpa_on_cpu(namespace: str) -> Manifest:
    """One that reads nothing of the adapter, and asks for a shadow; nothing reports the CPU of its target."""
    annotations = {SHADOW: "true", SHADOW_GROUP: GROUP}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "another"}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": ON_CPU, "namespace": namespace, "annotations": annotations},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9, "metrics": [metric]},
    }


@contextmanager
def load(cluster: Kafka) -> Iterator[None]:
    """Messages come at a steady rate, in turns to all partitions, for a limited time."""
    ending = threading.Event()
    thread = threading.Thread(target=_write, args=(cluster, ending), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def _write(cluster: Kafka, ending: threading.Event) -> None:
    begin, written = time.monotonic(), 0
    with closing(KafkaProducer(bootstrap_servers=cluster.bootstrap_servers.split(","))) as producer:
        while time.monotonic() - begin < LONGEST_LOAD_SECONDS and not ending.wait(0.1):
            for number in range(written, int((time.monotonic() - begin) * RATE)):
                producer.send(TOPIC, b"message", partition=number % PARTITIONS)
                written = number + 1


def waits(folder: Path, since: float) -> list[float]:
    """Returns for how long each message waited that was written since then, in seconds since the epoch."""
    lines = (line.split() for file in folder.iterdir() for line in file.read_text().splitlines())
    times = ((float(line[2]), float(line[3])) for line in lines if len(line) == 4)
    return [committed - written for written, committed in times if written >= since]
