"""A bare FastAPI route as a process and in the control plane: the least that a Python server can cost."""

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rig.bare_route import GROUP, PATH, VERSION
from benchmarks.rig.cluster import NAMESPACE
from benchmarks.rig.load import Target
from local.adapter import Serving, new_serving
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.manifests.shipped import NAME
from local.processes import Process, free_port, start, wait_until

TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class BareRoute:
    process: Process
    port: int
    serving: Serving

    @property
    def target(self) -> Target:
        name = f"{NAME}.{NAMESPACE}.svc"
        return Target(self.port, name, str(self.serving.authority), (PATH,), PATH)


@contextlib.contextmanager
def bare_route(home: Path, body: bytes) -> Iterator[BareRoute]:
    """Runs a server whose only route returns these bytes."""
    serving, port = new_serving(home, namespace=NAMESPACE), free_port()
    constant = home / "constant.json"
    constant.write_bytes(body)
    flags = {"port": port, "certificate": serving.pair.certificate, "key": serving.pair.key, "body": constant}
    command = [
        sys.executable,
        "-m",
        "benchmarks.rig.bare_route",
        *(f"--{flag}={value}" for flag, value in flags.items()),
    ]
    with start("bare route", command, log=home / "bare-route.log") as process:
        wait_until(
            lambda: "Uvicorn running" in process.log.read_text(), "the bare route", TIMEOUT_SECONDS, alive=[process]
        )
        yield BareRoute(process, port, serving)


def register(plane: ControlPlane, route: BareRoute) -> None:
    """Makes kube-apiserver forward the route's API group, and waits until it does."""
    plane.apply(_manifests(route))
    wait_until(lambda: plane.raw(PATH)[0] == 200, "kube-apiserver to find the bare route", TIMEOUT_SECONDS)


def unregister(plane: ControlPlane, route: BareRoute) -> None:
    """After the process ends, its API group would be unavailable and delay callers that request all groups."""
    plane.delete(_manifests(route))


def _manifests(route: BareRoute) -> list[Manifest]:
    service = {"name": NAME, "namespace": NAMESPACE}
    ports = [{"name": "https", "port": route.port}]
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": service,
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": ports},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{VERSION}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "version": VERSION,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {**service, "port": route.port},
                "caBundle": route.serving.ca_bundle,
            },
        },
    ]
