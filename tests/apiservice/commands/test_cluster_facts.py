"""What is asked of kube-apiserver about the adapter's pods, which say and claim what they like."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from apiservice.cluster_api import connection
from apiservice.commands import cluster_facts
from apiservice.commands.cluster_facts import Cluster
from apiservice.doctor.facts import Replica
from apiservice.registration.api_service import Service
from tests.support.kubernetes.fake_cluster import kubeconfig_text
from tests.support.kubernetes.fakes import GATE_SECONDS

NAMESPACE = "/api/v1/namespaces/lag"
PODS = f"{NAMESPACE}/pods"
SERVICE = {"spec": {"selector": {"app": "lag"}}}
GOOD = b"[+]ping ok\nreadyz check passed\n"


def pod(name: str, phase: str = "Running", path: str = "/readyz", **metadata: str) -> dict[str, Any]:
    probe = {"httpGet": {"scheme": "HTTPS", "path": path, "port": "https"}}
    container = {"readinessProbe": probe, "ports": [{"name": "https", "containerPort": 6443}]}
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [container]},
        "status": {"phase": phase, "conditions": conditions},
    }


@dataclass
class World:
    kubeconfig: Path
    pods: list[dict[str, Any]] = field(default_factory=list)
    says: bytes = GOOD
    together: threading.Barrier = field(default_factory=lambda: threading.Barrier(1))
    """No pod answers before so many are asked."""
    asked: list[str] = field(default_factory=list)
    """The paths of what pods were asked."""

    def reply(self, path: str) -> bytes:
        bare = path.partition("?")[0]
        documents = {f"{NAMESPACE}/services/lag": SERVICE, PODS: {"items": self.pods}, "/version": {"gitVersion": "v1"}}
        if bare in documents:
            return json.dumps(documents[bare]).encode()
        if "/services/" in bare or bare.startswith("/apis/") or "/configmaps/" in bare:
            return b""
        self.asked.append(path)
        self.together.wait(GATE_SECONDS)
        return self.says

    @property
    def replicas(self) -> tuple[Replica, ...] | str:
        return Cluster(self.kubeconfig).facts(Service("lag", "lag", 443), (), installs=False).replicas


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Asked with the patience of a busy machine."""
    defaults = {**(connection.send.__kwdefaults__ or {}), "timeout_seconds": GATE_SECONDS}
    monkeypatch.setattr(connection.send, "__kwdefaults__", defaults)
    running = World(tmp_path / "kubeconfig")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = running.reply(self.path)
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), name="kube-apiserver").start()
        running.kubeconfig.write_text(kubeconfig_text(server.server_port))
        yield running
        server.shutdown()


def test_a_pod_is_asked_what_kubelet_asks_it(world: World) -> None:
    world.pods = [pod("a")]

    assert world.replicas == (Replica("a", True, GOOD.decode()),)
    assert world.asked == [f"{PODS}/https:a:6443/proxy/readyz?verbose=true"]


def test_all_pods_are_asked_at_once_and_shown_in_their_order(world: World) -> None:
    world.together = threading.Barrier(3)
    names = [f"adapter-{number}" for number in range(3)]
    world.pods = [*map(pod, names)]

    assert world.replicas == tuple(Replica(name, True, GOOD.decode()) for name in names)


def test_pods_that_have_ended_or_end_are_left_out(world: World) -> None:
    """Evicted ones remain, and the Service leaves them out as well."""
    ending = pod("b", deletionTimestamp="2026-11-28T10:00:00Z")
    world.pods = [pod("evicted", "Failed"), pod("done", "Succeeded"), ending, pod("a")]

    assert world.replicas == (Replica("a", True, GOOD.decode()),)


def test_a_probe_leads_to_no_other_path_than_one_of_its_pod(world: World) -> None:
    world.pods = [pod("a", path="/../../../../other/pods/x")]

    assert isinstance(world.replicas, tuple)
    assert [path.startswith(f"{PODS}/https:a:6443/proxy/") for path in world.asked] == [True]


def test_of_a_pod_that_says_too_much_no_more_than_the_beginning_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_facts, "MOST_BYTES", 100)
    world.pods, world.says = [pod("a")], b"x" * 1000 + GOOD

    assert world.replicas == (Replica("a", True, problem="the Kubernetes API server answered 200: OK"),)
