"""Five groups with different fates and two HPAs at work: a real adapter on a real broker and a real control plane.

The demos that make pictures look at it after some minutes. Everything ends with the context."""

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka import KafkaProducer

from local.adapter import Adapter, adapter
from local.demo import scenario
from local.demo.scenario import METRIC, PARTITIONS, Names
from local.kafka.broker import Kafka, kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane, Manifest, control_plane
from local.kubernetes.node import node
from local.manifests.shipped import NAME
from local.processes import Process, start

NAMES = Names(namespace="shop")
STEP_SECONDS = 0.5
TOPICS = {"mails": 1, "parcels": 2, "clicks": 2, "invoices": 2}
RATES = {"mails": 20, "parcels": 30, "clicks": 6}
"""Topic -> messages a second."""
WAVE = (250, 90.0, 60, 400.0)
"""Messages a second to the HPA's topic for the first seconds of each wave, and from then on; how long a wave is."""
MEMBERS = {"mail": ("mails", 1000.0), "shipping": ("parcels", 20.0), "tracking": ("clicks", 0.001)}
"""Group -> its topic, and messages a second of its only member; the last one commits nothing before the end."""
COMMITTED = {
    "ledger": {("invoices", 0): 800, ("invoices", 1): 600},
    "tracking": {("clicks", 0): 0, ("clicks", 1): 0},
}
"""Before they work; the first one has no member."""
NOT_THERE = "reports"
"""A group that an HPA asks for and nobody knows."""


@dataclass(frozen=True, slots=True)
class Shop:
    brokers: Kafka
    plane: ControlPlane
    adapter: Adapter

    def work(self, seconds: float) -> None:
        """Writes messages at these rates; returns after the seconds."""
        producer = KafkaProducer(bootstrap_servers=self.brokers.bootstrap_servers.split(","), linger_ms=10)
        with contextlib.closing(producer):
            for passed in _steps(seconds):
                many, first_seconds, few, period = WAVE
                rates: Mapping[str, int] = {**RATES, NAMES.topic: many if passed % period < first_seconds else few}
                for name, rate in rates.items():
                    for _ in range(round(rate * STEP_SECONDS)):
                        producer.send(name, value=b"message")
                producer.flush(timeout=30)


@contextlib.contextmanager
def shop(home: Path, more_settings: Mapping[str, Any] | None = None) -> Iterator[Shop]:
    """Opens it; nothing is written before it works. Raises RigError."""
    with contextlib.ExitStack() as running:
        brokers = running.enter_context(kafka(home / "kafka"))
        for topic, partitions in {**TOPICS, NAMES.topic: PARTITIONS}.items():
            create_topic(brokers, topic, partitions)
        produce(brokers, "invoices", 3000)
        for group, offsets in COMMITTED.items():
            commit(brokers, group, offsets)
        plane = running.enter_context(control_plane(home / "kubernetes"))
        running.enter_context(node(plane, home))
        settings = scenario.settings(brokers, NAMES) | dict(more_settings or {})
        serving = running.enter_context(adapter(plane, home / NAME, settings))
        for group in MEMBERS:
            running.enter_context(_member(brokers, group, home))
        plane.apply([*scenario.manifests(brokers, NAMES), _hpa_of_nobody()])
        yield Shop(brokers, plane, serving)


def _member(brokers: Kafka, group: str, home: Path) -> Process:
    topic, rate = MEMBERS[group]
    flags = {"bootstrap-servers": brokers.bootstrap_servers, "group": group, "topic": topic, "rate": rate}
    command = [sys.executable, "-m", "local.kafka.consumer", *(f"--{name}={value}" for name, value in flags.items())]
    return start(f"a member of {group}", command, log=home / f"{group}.log")


def _steps(seconds: float) -> Iterator[float]:
    began = time.monotonic()
    for number in range(round(seconds / STEP_SECONDS)):
        time.sleep(max(began + number * STEP_SECONDS - time.monotonic(), 0.0))
        yield time.monotonic() - began


def _hpa_of_nobody() -> Manifest:
    metric = {"name": METRIC, "selector": {"matchLabels": {"group": NOT_THERE}}}
    source = {"metric": metric, "target": {"type": "AverageValue", "averageValue": "500"}}
    spec: dict[str, Any] = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NOT_THERE},
        "maxReplicas": 4,
        "metrics": [{"type": "External", "external": source}],
    }
    metadata = {"name": NOT_THERE, "namespace": NAMES.namespace}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}
