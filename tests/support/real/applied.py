"""One pod of a Deployment that was applied to the real kube-apiserver, with the container's arguments: as a process, or
in the image (`tests.support.real.in_image`).

There is no kubelet and no kube-proxy. So what the pod mounts is written into folders, and the Service is changed to one
that leads to this machine."""

import base64
import contextlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.adapter import Adapter, external_name, new_serving
from local.downloads import command_line_tools
from local.kubernetes.control_plane import ControlPlane
from local.manifests.check import MANIFESTS
from local.manifests.shipped import NAME
from local.processes import Process, free_port, start, wait_until
from tests.support.real.mounted import Mounted
from tests.support.real.programs import MAIN, PATIENT_CALLS

CONFIGURATION = "/etc/kafka-lag-adapter"
"""Every ConfigMap and Secret is mounted below this folder, and the settings name their files by it."""
MERGE = "application/merge-patch+json"
HASTY = (
    f"{PATIENT_CALLS}from apiservice.registration import keeper; from apiservice.tls import managed; "
    f"keeper.ROUND_SECONDS, managed.SPREAD_SECONDS = 0.3, 2.0; {MAIN}"
)
"""The installed command, which looks at the APIService more often."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod's specification, and a folder of this machine for what it mounts and logs."""

    plane: ControlPlane
    namespace: str
    spec: dict[str, Any]
    home: Path

    @property
    def container(self) -> dict[str, Any]:
        found: dict[str, Any] = self.spec["containers"][0]
        return found

    def contents(self) -> Iterator[tuple[str, dict[str, Any], dict[str, str]]]:
        """Yields path, volume and files of each ConfigMap and Secret that the container mounts, as they are now."""
        volumes = {volume["name"]: volume for volume in self.spec["volumes"]}
        for mount in self.container["volumeMounts"]:
            if mount["mountPath"].startswith(CONFIGURATION):
                yield mount["mountPath"], volumes[mount["name"]], self._contents(volumes[mount["name"]])

    def _contents(self, volume: dict[str, Any]) -> dict[str, str]:
        """Raises RigError if the object is not there and the pod would wait for it."""
        if "configMap" in volume:
            data = self._data("configmaps", volume["configMap"]["name"], is_optional=False)
            return dict(data)
        secret = volume["secret"]
        data = self._data("secrets", secret["secretName"], is_optional=secret.get("optional", False))
        return {key: base64.b64decode(content).decode() for key, content in data.items()}

    def _data(self, kind: str, name: str, *, is_optional: bool) -> dict[str, str]:
        path = f"/api/v1/namespaces/{self.namespace}/{kind}/{name}"
        if is_optional and self.plane.raw(path)[0] == 404:
            return {}
        return self.plane.get(path).get("data") or {}


Runner = Callable[[Pod, Sequence[str]], AbstractContextManager[Process]]
"""Runs the pod's container with these arguments."""


@contextlib.contextmanager
def as_process(pod: Pod, arguments: Sequence[str]) -> Iterator[Process]:
    """Runs the installed command. Folders stand in for what is mounted, and a kubeconfig for the account's token."""

    def here(text: str) -> str:
        return text.replace(CONFIGURATION, f"{pod.home}{CONFIGURATION}")

    for path, _, contents in pod.contents():
        Mounted(Path(here(path)), {key: here(text) for key, text in contents.items()})
    kubeconfig = pod.plane.kubeconfig_for_service_account(pod.namespace, pod.spec["serviceAccountName"])
    command = [sys.executable, "-c", HASTY, *map(here, arguments), f"--kubeconfig={kubeconfig}"]
    with start("pod", command, log=pod.home / "adapter.log") as running:
        yield running


def remount(plane: ControlPlane, home: Path, namespace: str, name: str) -> None:
    """Writes what the process of `as_process` mounts as it is now, as the kubelet does for a running pod."""
    spec = plane.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}")["spec"]["template"]["spec"]
    for path, _, contents in Pod(plane, namespace, spec, home).contents():
        for file, text in contents.items():
            mounted = Path(f"{home}{path}", file).resolve()
            new = mounted.with_suffix(".new")
            new.write_text(text.replace(CONFIGURATION, f"{home}{CONFIGURATION}"))
            new.replace(mounted)


@contextlib.contextmanager
def pod_of(plane: ControlPlane, home: Path, namespace: str, name: str, run: Runner = as_process) -> Iterator[Adapter]:
    """Runs one pod of this Deployment and waits until it is ready. Raises RigError if it ends."""
    spec = plane.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}")["spec"]["template"]["spec"]
    pod = Pod(plane, namespace, spec, home)
    port, metrics_port = free_port(), free_port()
    service = {"spec": {**external_name(port), "clusterIP": None, "clusterIPs": None, "selector": None}}
    plane.ask("PATCH", f"/api/v1/namespaces/{namespace}/services/{name}", service, content_type=MERGE)
    arguments = pod.container["args"]
    flags = dict(each.removeprefix("--").split("=", 1) for each in arguments if "=" in each)
    of_this_machine = {
        "bind-address": "127.0.0.1",
        "metrics-bind-address": "127.0.0.1",
        "secure-port": port,
        "metrics-port": metrics_port,
        "service": f"{namespace}/{flags['service']}:{port}",
        "last-commits-config-map": f"{namespace}/{flags['last-commits-config-map']}",
    }
    overrides = [f"--{flag}={value}" for flag, value in of_this_machine.items()]
    with run(pod, [*arguments, *overrides]) as running:
        started = Adapter(running, port, metrics_port, Path(flags["config"]), new_serving(home / "unused"))
        wait_until(started.is_ready, "the pod to be ready", 180, alive=[running])
        yield started


def remark_of(replica: Adapter) -> str:
    """Returns what `/readyz?verbose` says about the APIService."""
    status, body = replica.get_plain("/readyz?verbose")
    assert status == 200, body
    found = re.search(r"^warn: api-service: (.*)$", body.decode(), re.MULTILINE)
    return found[1] if found else ""


def hand_over(plane: ControlPlane, namespace: str, port: int) -> None:
    """Points the APIService to the adapter by the command of docs/install.md, with the names of a test."""
    page = (MANIFESTS.parent / "docs" / "install.md").read_text()
    (command,) = re.findall(r"^CA=.*?(?=^```)", page, re.MULTILINE | re.DOTALL)
    command = command.replace(f"kubectl -n {NAME}", f"kubectl -n {namespace}")
    command = command.replace(f'"namespace":"{NAME}"', f'"namespace":"{namespace}"')
    command = command.replace('"port":443', f'"port":{port}')
    environment = {
        "PATH": f"{command_line_tools()}:/usr/bin:/bin",
        "KUBECONFIG": str(plane.admin_kubeconfig),
        "HOME": str(plane.home),  # where kubectl has its cache
    }
    ended = subprocess.run(["bash", "-ec", command], env=environment, capture_output=True, text=True, check=False)
    assert "patched" in ended.stdout, ended.stderr
