"""An adapter beside another server of external metrics, on a real kube-apiserver, and what the tests ask of both."""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from local.adapter import EXTERNAL_METRICS, Adapter, external_name
from local.downloads import command_line_tools
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.kubernetes.other_adapter import NAME as OTHER
from local.kubernetes.other_adapter import OURS, OtherAdapter
from local.manifests.check import MANIFESTS, read
from local.manifests.shipped import NAME
from local.processes import wait_until
from tests.support.real.programs import MAIN, PATIENT_CALLS

PLACE, THEIR_PLACE = "beside", "others"
WAIT_SECONDS = 180.0
ANSWER_SECONDS = 12.0
PROGRAM = f"""
{PATIENT_CALLS}
import socket
from adapter.reload import settings_watch
from apiservice.registration import keeper
from apiservice.upstream import circuit, client, live

found = socket.getaddrinfo  # there is no DNS for Services here
socket.getaddrinfo = lambda host, *rest, **more: found(
    "127.0.0.1" if str(host).endswith(".svc") else host, *rest, **more
)
settings_watch.LOOK_SECONDS = 0.3
keeper.ROUND_SECONDS, live.LIST_SECONDS, circuit.PAUSE_SECONDS = 0.3, 0.5, 1.0
client.ANSWER_SECONDS = client.CONNECT_SECONDS = live.ANSWER_SECONDS = {ANSWER_SECONDS}
{MAIN}
"""
BINDING = MANIFESTS / "upstream" / "cluster-role-binding-reads-upstream.yaml"


def path(metric: str, selector: str = "") -> str:
    return f"{EXTERNAL_METRICS}/namespaces/default/{metric}{f'?labelSelector={selector}' if selector else ''}"


SELECTED = "queue%3Djobs%2Ckind%20in%20%28a%2Cb%29%2C%21c%2Cscaledobject.keda.sh%2Fname%3Djobs"
THEIRS = path("queue-depth%40others%3Ajobs", SELECTED)
READ = path(OURS, "group%3Dbeside")


@dataclass(frozen=True)
class Cluster:
    plane: ControlPlane
    other: OtherAdapter
    adapter: Adapter

    def remark(self, check: str = "upstream") -> str:
        status, body = self.adapter.get_plain("/readyz?verbose")
        assert status == 200, body
        found = re.search(rf"^warn: {check}: (.*)$", body.decode(), re.MULTILINE)
        return found[1] if found else ""

    def wait_for_remark(self, words: str, check: str = "upstream") -> None:
        def is_there() -> bool:
            remark = self.remark(check)
            return words in remark if words else not remark

        wait_until(is_there, f"the remark {words!r}", WAIT_SECONDS, alive=[self.adapter.process])

    def listed(self) -> list[str]:
        """As kube-apiserver returns it."""
        return [resource["name"] for resource in self.plane.get(EXTERNAL_METRICS)["resources"]]

    def wait_for(self, target: str, code: int, words: str = "") -> None:
        def is_so() -> bool:
            status, body = self.plane.raw(target)
            return status == code and words in body.decode()

        wait_until(is_so, f"{code} with {words!r}", WAIT_SECONDS, alive=[self.adapter.process])

    def statuses(self) -> list[str]:
        """Of the condition `upstream`."""
        return re.findall(r'_condition{cluster="",condition="upstream",status="(\w+)"} 1.0', self.metrics())

    def metrics(self) -> str:
        return self.adapter.get_plain("/metrics")[1].decode()


def status_of(answer: tuple[int, bytes]) -> tuple[int, str]:
    return answer[0], str(json.loads(answer[1])["message"])


def values(answer: tuple[int, bytes]) -> list[tuple[str, str]]:
    assert answer[0] == 200, answer
    return [(item["metricName"], item["value"]) for item in json.loads(answer[1])["items"]]


def held_by(other: OtherAdapter) -> Manifest:
    """The APIService that leads to the other server."""
    shipped = read(MANIFESTS / "api-service" / "api-service-external.yaml")
    place = {"name": OTHER, "namespace": THEIR_PLACE, "port": other.port}
    spec = {**shipped["spec"], "service": place, "caBundle": other.ca_bundle}
    return {**shipped, "metadata": {"name": shipped["metadata"]["name"]}, "spec": spec}


def namespace_of(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def led_to(port: int, document: Manifest) -> Manifest:
    is_service = document["kind"] == "Service" and document["metadata"]["name"] == NAME
    return {**document, "spec": external_name(port)} if is_service else document


def commands(plane: ControlPlane, begin: str, port: int, folder: Path) -> None:
    """Runs the block of docs/install.md that begins so, with the names of this test."""
    page = (MANIFESTS.parent / "docs" / "install.md").read_text()
    (block,) = re.findall(rf"^ *{begin}.*?(?=^ *```)", page, re.MULTILINE | re.DOTALL)
    block = re.sub(r"kubectl (-n|--namespace) kafka-lag-adapter", rf"kubectl \1 {PLACE}", block)
    block = block.replace("create namespace kafka-lag-adapter", f"create namespace {PLACE}")
    block = block.replace('"namespace":"kafka-lag-adapter"', f'"namespace":"{PLACE}"')
    block = block.replace('"port":443', f'"port":{port}')
    environment = {
        "PATH": f"{command_line_tools()}:/usr/bin:/bin",
        "KUBECONFIG": str(plane.admin_kubeconfig),
        "HOME": str(plane.home),
    }
    subprocess.run(["bash", "-o", "pipefail", "-ec", block], env=environment, cwd=folder, check=True)


def consumer(name: str) -> Manifest:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "worker", "image": "none"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": PLACE},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def autoscaler(name: str, metric: str, **labels: str) -> Manifest:
    wanted = {"name": metric, "selector": {"matchLabels": labels}}
    external = {"metric": wanted, "target": {"type": "AverageValue", "averageValue": "2"}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": PLACE},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": 9,
            "metrics": [{"type": "External", "external": external}],
        },
    }


def state(cluster: Cluster, name: str) -> tuple[str, int, tuple[str, str]]:
    """Which metric the HPA has read, the replicas that follow, and whether and since when it can scale."""
    path = f"/apis/autoscaling/v2/namespaces/{PLACE}/horizontalpodautoscalers/{name}"
    status = cluster.plane.get(path).get("status", {})
    read = [each["external"]["metric"]["name"] for each in status.get("currentMetrics") or [] if "external" in each]
    active = [each for each in status.get("conditions") or [] if each["type"] == "ScalingActive"]
    since = next(((each["status"], each["lastTransitionTime"]) for each in active), ("", ""))
    return "".join(read), status.get("desiredReplicas", 0), since
