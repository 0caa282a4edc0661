"""`python -m local.incidents [1 2 3]`: a stuck group, a frozen broker and a wrong CA, with the words of every tool.

docs/operate.md shows what it prints. Everything runs on 127.0.0.1 and ends with this process."""

import contextlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

from local.adapter import Adapter, adapter, installed
from local.certificates import Pair, new_authority
from local.kafka.broker import Kafka, kafka
from local.kafka.security import MECHANISM, Login
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane, control_plane
from local.manifests.shipped import NAME
from local.processes import scratch, start, wait_until
from local.prometheus import Prometheus, prometheus, shipped_alerts

GROUP, TOPIC, PLACE = "billing", "orders", "shop"
PARTITIONS, MESSAGES, COMMITTED = 6, 2000, 40
WAIT_SECONDS = 180.0
LOG_LINES = 6
FILES = "--config settings.yaml --kubeconfig kubeconfig"
TOP, EXPLAIN, DOCTOR = "top --config settings.yaml --once", f"explain {GROUP} {FILES}", f"doctor {FILES}"
WATCHED = "--after 75s"
"""For longer than a group must stand still to be stuck."""
COMMANDS = {
    "A group stops consuming": (f"{TOP} {WATCHED}", EXPLAIN, DOCTOR, f"{DOCTOR} {WATCHED}"),
    "A broker freezes": (EXPLAIN, DOCTOR, TOP),
    "A wrong CA": (EXPLAIN, DOCTOR, TOP),
}
"""Incident -> what a person runs, in a folder with both files, once the alert fires."""
HPA = f"/apis/autoscaling/v2/namespaces/{PLACE}/horizontalpodautoscalers/{GROUP}"


@dataclass(frozen=True)
class Scene:
    """The parts, and what a person at a terminal has of them."""

    folder: Path
    """With settings.yaml and kubeconfig."""
    cluster: Kafka
    plane: ControlPlane
    served: Adapter
    scraping: Prometheus
    person: Pair

    def show(self, title: str, text: str) -> None:
        print(f"\n--- {title}\n{self._placeless(text).rstrip()}", flush=True)

    def _placeless(self, text: str) -> str:
        """Without addresses of this machine."""
        assert self.cluster.security is not None
        for number, address in enumerate(self.cluster.security.bootstrap_servers.split(",")):
            text = text.replace(address, f"kafka-{number}:9093")
        return text

    def run(self, command: str) -> None:
        ended = subprocess.run(
            [str(installed()), *shlex.split(command)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        self.show(f"$ {NAME} {command} (status {ended.returncode})", ended.stdout)

    def firing(self) -> list[str]:
        found = self.scraping.query('ALERTS{alertstate="firing"}')
        return sorted(f"{each['alertname']} {each.get('group', '')}".strip() for each, _ in found)

    def is_settled(self) -> bool:
        """Whether the HPA has a value, and has done what it can."""
        status = {"conditions": [], **self.plane.get(HPA).get("status", {})}
        has_value = any((each["type"], each["status"]) == ("ScalingActive", "True") for each in status["conditions"])
        return has_value and status.get("desiredReplicas") == PARTITIONS

    def events(self) -> list[str]:
        uid = self.plane.get(HPA)["metadata"]["uid"]
        found = self.plane.get(f"/apis/events.k8s.io/v1/namespaces/{PLACE}/events")["items"]
        ours = [each for each in found if each["regarding"]["uid"] == uid and each.get("reportingController") == NAME]
        return [f"{each['type']} {each['reason']}: {each['note']}" for each in ours]

    def tools(self, title: str, alert: str) -> None:
        """Shows what every tool says of the incident, once the alert fires."""
        wait_until(lambda: any(alert in each for each in self.firing()), alert, WAIT_SECONDS)
        self.show("alerts", "\n".join(self.firing()))
        self.show("kubectl describe hpa: Events", "\n".join(self.events()))
        self.show("status page", _words(self.served.get("/status", shown=self.person)[1].decode()))
        ready = self.served.get_plain("/readyz?verbose")[1].decode().splitlines()
        self.show("readyz?verbose", "\n".join(line for line in ready if line.startswith("warn")))
        log = self.served.process.log.read_text().splitlines()
        self.show("log", "\n".join([line for line in log if " WARNING " in line][-LOG_LINES:]))
        for command in COMMANDS[title]:
            self.run(command)


def stuck_group(scene: Scene, title: str) -> None:
    """Its member is in the group and works on its first message for longer than anybody waits."""
    command = [sys.executable, "-m", "local.kafka.consumer", f"--group={GROUP}", f"--topic={TOPIC}", "--rate=0.001"]
    servers = f"--bootstrap-servers={scene.cluster.bootstrap_servers}"
    with start(
        "member", [*command, servers, "--client-id=billing-5d9c"], log=scene.served.settings.parent / "member.log"
    ):
        wait_until(lambda: any("GroupStuck" in each for each in scene.events()), "the Event", WAIT_SECONDS)
        scene.tools(title, "GroupStuck billing")


def frozen_broker(scene: Scene, title: str) -> None:
    broker = scene.cluster.brokers[-1]
    broker.freeze()
    try:
        known = len(scene.events())
        wait_until(lambda: len(scene.events()) > known, "an Event", WAIT_SECONDS)
        scene.tools(title, "GroupUnknown billing")
    finally:
        broker.thaw()


def wrong_authority(scene: Scene, title: str, ca_file: Path, wrong: Path) -> None:
    new = ca_file.with_suffix(".new")
    new.write_bytes(wrong.read_bytes())
    new.replace(ca_file)
    scene.tools(title, "CredentialsNotUsed")


def _words(page: str) -> str:
    """Returns the text of a page, a line for each block."""
    body = re.sub(r"<(style|script|svg)\b.*?</\1>", "", page.partition("<body")[2], flags=re.DOTALL)
    lines = re.sub(r"</(tr|p|h1|h2|h3|li|div|dt|dd)>", "\n", body.partition(">")[2])
    cells = re.sub(r"</t[dh]>", "  ", lines)
    text = unescape(re.sub(r"<[^>]+>", "", cells))
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def _settings(cluster: Kafka, home: Path, ca_file: Path) -> dict[str, Any]:
    secure = cluster.security
    assert secure is not None
    (home / "password").write_text(secure.login.password)
    security = {
        "protocol": "SASL_SSL",
        "mechanism": MECHANISM,
        "username": secure.login.username,
        "passwordFile": str(home / "password"),
        "caFile": str(ca_file),
    }
    main = {"name": "main", "bootstrapServers": secure.bootstrap_servers.split(","), "security": security}
    return {
        "clusters": [main],
        "collection": {"interval": "5s", "maxAge": "20s"},
        "rules": [{"group": GROUP, "topics": [TOPIC]}],
        "autoscalers": {"events": True},
        "series": {},
    }


def _hpa() -> list[dict[str, Any]]:
    metadata = {"name": GROUP, "namespace": PLACE}
    labels = {"app": GROUP}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    metric = {"name": "kafka_consumergroup_lag", "selector": {"matchLabels": {"group": GROUP, "topic": TOPIC}}}
    source = {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1k"}}
    deployment = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": GROUP},
        "minReplicas": 1,
        "maxReplicas": PARTITIONS,
        "metrics": [{"type": "External", "external": source}],
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": deployment},
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec},
    ]


def main() -> None:
    with contextlib.ExitStack() as running:
        home = running.enter_context(scratch("incidents"))
        cluster = running.enter_context(kafka(home / "kafka", brokers=3, security=Login("lag", "rabbit-hole")))
        assert cluster.security is not None
        create_topic(cluster, TOPIC, PARTITIONS)
        for partition in range(PARTITIONS):
            produce(cluster, TOPIC, MESSAGES, partition)
        commit(cluster, GROUP, {(TOPIC, partition): COMMITTED for partition in range(PARTITIONS)})
        plane = running.enter_context(control_plane(home / "kubernetes"))
        plane.apply(_hpa())
        ca_file = home / "ca.crt"
        ca_file.write_bytes(cluster.security.ca_file.read_bytes())
        settings = _settings(cluster, home, ca_file)
        served = running.enter_context(adapter(plane, home / NAME, settings, components=("events",)))
        jobs = [
            {
                "job_name": path,
                "metrics_path": path,
                "static_configs": [{"targets": [f"127.0.0.1:{served.metrics_port}"]}],
            }
            for path in ("/metrics", "/metrics/groups")
        ]
        scraping = running.enter_context(prometheus(home / "prometheus", jobs, shipped_alerts(home)))
        folder = served.settings.parent
        shutil.copy(plane.admin_kubeconfig, folder / "kubeconfig")
        scene = Scene(folder, cluster, plane, served, scraping, plane.issue("person", ["system:masters"]))
        _play(scene, ca_file, new_authority(home / "another", "another authority").pair.certificate)


def _play(scene: Scene, ca_file: Path, wrong: Path) -> None:
    makers: Sequence[Callable[[Scene, str], None]] = (
        stuck_group,
        frozen_broker,
        lambda scene, title: wrong_authority(scene, title, ca_file, wrong),
    )
    incidents = [*zip(COMMANDS, makers, strict=True)]
    for title, make in [incidents[int(number) - 1] for number in sys.argv[1:]] or incidents:
        wait_until(scene.is_settled, "the HPA to have a value", WAIT_SECONDS)
        print(f"\n=== {title}", flush=True)
        make(scene, title)


if __name__ == "__main__":
    main()
