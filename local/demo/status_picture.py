"""`python -m local.demo.status_picture`: the pictures of docs/status.md, light, dark and on a phone.

A real Chromium opens the page of a real adapter on a real broker through a real kube-apiserver, after five groups with
different fates and an HPA have been at work for some minutes. Everything ends with this process."""

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kafka import KafkaProducer

from local import downloads
from local.adapter import adapter
from local.browser import PHONE, Screen, browser
from local.demo import scenario
from local.demo.scenario import METRIC, PARTITIONS, Names
from local.kafka.broker import Kafka, kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane, Manifest, control_plane
from local.kubernetes.node import node
from local.manifests.shipped import NAME
from local.processes import Process, RigError, exit_on_sigterm, scratch, start

SECONDS = 200
DOCS = Path(__file__).parents[2] / "docs"
PICTURES = {
    "status.png": Screen(height=600),
    "status-dark.png": Screen(height=600, is_dark=True),
    "status-phone.png": PHONE,
}
"""Each has the whole page, but on a phone it is very long, so that one has what fits on the screen."""
STEP_SECONDS = 0.5
TOPICS = {"mails": 1, "parcels": 2, "clicks": 2, "invoices": 2}
RATES = {"mails": 20, "parcels": 30, "clicks": 6}
"""Topic -> messages a second."""
WAVE = (250, 90.0, 60)
"""Messages a second to the HPA's topic for the first seconds, and from then on."""
MEMBERS = {"mail": ("mails", 1000.0), "shipping": ("parcels", 20.0), "tracking": ("clicks", 0.001)}
"""Group -> its topic, and messages a second of its only member; the last one commits nothing before the end."""
COMMITTED = {
    "ledger": {("invoices", 0): 800, ("invoices", 1): 600},
    "tracking": {("clicks", 0): 0, ("clicks", 1): 0},
}
"""Before they work; the first one has no member."""
NOT_THERE = "reports"
"""A group that an HPA asks for and nobody knows."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m local.demo.status_picture")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="how long they work (default: %(default)s)")
    parser.add_argument("--into", type=Path, default=DOCS, metavar="FOLDER", help="default: docs")
    arguments = parser.parse_args()
    try:
        with exit_on_sigterm(), scratch("picture") as home:
            missing = downloads.main(("kafka", "control-plane"))
            return missing or _draw(home, arguments.seconds, arguments.into)
    except RigError as error:
        print(f"No picture: {error}", file=sys.stderr)
        return 1


def _draw(home: Path, seconds: int, folder: Path) -> int:
    names = Names(namespace="shop")
    with contextlib.ExitStack() as running:
        brokers = running.enter_context(kafka(home / "kafka"))
        for topic, partitions in {**TOPICS, names.topic: PARTITIONS}.items():
            create_topic(brokers, topic, partitions)
        produce(brokers, "invoices", 3000)
        for group, offsets in COMMITTED.items():
            commit(brokers, group, offsets)
        plane = running.enter_context(control_plane(home / "kubernetes"))
        running.enter_context(node(plane, home))
        running.enter_context(adapter(plane, home / NAME, scenario.settings(brokers, names)))
        for group in MEMBERS:
            running.enter_context(_member(brokers, group, home))
        plane.apply([*scenario.manifests(brokers, names), _hpa_of_nobody(names)])
        _work(brokers, names.topic, seconds)
        _photograph(plane, names, home, folder)
    return 0


def _member(brokers: Kafka, group: str, home: Path) -> Process:
    topic, rate = MEMBERS[group]
    flags = {"bootstrap-servers": brokers.bootstrap_servers, "group": group, "topic": topic, "rate": rate}
    command = [sys.executable, "-m", "local.kafka.consumer", *(f"--{name}={value}" for name, value in flags.items())]
    return start(f"a member of {group}", command, log=home / f"{group}.log")


def _work(brokers: Kafka, topic: str, seconds: int) -> None:
    """Writes messages at these rates; returns after the seconds."""
    producer = KafkaProducer(bootstrap_servers=brokers.bootstrap_servers.split(","), linger_ms=10)
    with contextlib.closing(producer):
        for passed in _steps(seconds):
            many, first_seconds, few = WAVE
            rates: Mapping[str, int] = {**RATES, topic: many if passed < first_seconds else few}
            for name, rate in rates.items():
                for _ in range(round(rate * STEP_SECONDS)):
                    producer.send(name, value=b"message")
            producer.flush(timeout=30)


def _steps(seconds: int) -> Iterator[float]:
    began = time.monotonic()
    for number in range(round(seconds / STEP_SECONDS)):
        time.sleep(max(began + number * STEP_SECONDS - time.monotonic(), 0.0))
        yield time.monotonic() - began


def _hpa_of_nobody(names: Names) -> Manifest:
    metric = {"name": METRIC, "selector": {"matchLabels": {"group": NOT_THERE}}}
    source = {"metric": metric, "target": {"type": "AverageValue", "averageValue": "500"}}
    spec: dict[str, Any] = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NOT_THERE},
        "maxReplicas": 4,
        "metrics": [{"type": "External", "external": source}],
    }
    metadata = {"name": NOT_THERE, "namespace": names.namespace}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def _photograph(plane: ControlPlane, names: Names, home: Path, folder: Path) -> None:
    headers = {"Authorization": f"Bearer {_token(plane)}"}
    with browser(home / "chromium") as opened:
        for file, screen in PICTURES.items():
            page = opened.open(f"{plane.url}{scenario.page_path(names)}", screen, headers)
            if page.complaints:
                raise RigError(f"the page complains: {page.complaints}")
            page.evaluate(f"document.querySelector('#replica').textContent = '{NAME}-6f9d8'")  # not this machine's name
            (folder / file).write_bytes(page.picture(is_whole=screen is not PHONE))
            print(folder / file)


def _token(plane: ControlPlane) -> str:
    """Of a ServiceAccount that may read metrics."""
    named = {"name": "visitor", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{NAME}-metrics-reader"}
    binding = {"roleRef": role, "subjects": [{"kind": "ServiceAccount", **named}], "metadata": {"name": "visitor"}}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}
    plane.apply([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named}, {**kind, **binding}])
    return plane.token_of("default", "visitor")


if __name__ == "__main__":
    sys.exit(main())
