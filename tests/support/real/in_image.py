"""Containers of pods in the built images, with volumes as a kubelet mounts them."""

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.images.built import Image
from local.images.container import Container, User, empty_volume, running
from local.processes import Process
from tests.support.real.applied import Pod, Runner
from tests.support.real.mounted import Mounted

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
NO_VOLUMES: Mapping[str, Path] = {}


@dataclass(frozen=True, slots=True)
class Reached:
    """How a pod reaches kube-apiserver: by a name of this machine, and with the CA of a certificate for it."""

    host: str
    authority: str


def in_image(
    image: Image,
    user: User,
    volumes: Mapping[str, Path] = NO_VOLUMES,
    environment: Mapping[str, str] | None = None,
    reached: Reached | None = None,
) -> Runner:
    """Returns what runs a pod of the adapter; `volumes` are the folders of its claims, by volume."""

    @contextlib.contextmanager
    def run(pod: Pod, arguments: Sequence[str]) -> Iterator[Process]:
        server = reached or Reached("127.0.0.1", pod.plane.cluster_ca.read_text())
        mounted = {ACCOUNT: _account(pod, user, server.authority)}
        for path, volume, contents in pod.contents():
            folder = pod.home / "mounted" / path.strip("/")
            Mounted(folder, contents)
            mounted[path] = _owned(folder, user, volume.get("secret", {}).get("defaultMode", 0o644))
        mounted |= writable(pod.spec, pod.container, pod.home, user, volumes)
        address = {"KUBERNETES_SERVICE_HOST": server.host, "KUBERNETES_SERVICE_PORT": str(pod.plane.port)}
        variables = {**address, **(environment or {})}
        aliases = [reached.host] if reached else []
        container = Container(image, pod.container, user, arguments, mounted, variables, aliases)
        with running(container, pod.home / "container") as process:
            yield process

    return run


def writable(
    spec: Mapping[str, Any], container: Mapping[str, Any], home: Path, user: User, claims: Mapping[str, Path]
) -> dict[str, Path]:
    """Returns the folders of the pod's emptyDirs and claims, by path in the container."""
    empty = {volume["name"] for volume in spec["volumes"] if "emptyDir" in volume}
    found = {}
    for mount in container["volumeMounts"]:
        name = mount["name"]
        if name in empty:
            found[mount["mountPath"]] = empty_volume(home / "empty" / name, user)
        elif name in claims:
            found[mount["mountPath"]] = claims[name]
    return found


def _account(pod: Pod, user: User, authority: str) -> Path:
    folder = pod.home / "mounted" / "account"
    token = pod.plane.token_of(pod.namespace, pod.spec["serviceAccountName"])
    contents = {"token": token, "ca.crt": authority, "namespace": pod.namespace}
    Mounted(folder, contents)
    return _owned(folder, user, 0o640)


def _owned(folder: Path, user: User, mode: int) -> Path:
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            shutil.chown(file, "root", user.volumes)
            file.chmod(mode)
    return folder
