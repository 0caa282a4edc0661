"""A container of a pod, run as a kubelet and a container runtime run it: crun, with what the manifests say.

The root is read-only and only the volumes are writable; there are no capabilities, no passwd entry and no HOME, and
memory has its limit. Only the network is this machine's, because without a cluster there is no other."""

import contextlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.images.built import Image, buildah_command, files_of
from local.kubernetes.control_plane import Manifest
from local.manifests.check import MANIFESTS, read
from local.manifests.shipped import at
from local.processes import Process, start, wait_until

UNITS = {"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}
HOST_NAME = "pod"
"""A pod can look up its own name, because kubelets write /etc/hosts. Spark does so where keys of S3 are set."""
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - of the container
CGROUPS = Path("/sys/fs/cgroup")
"""With a folder for each controller, or for all together (version 2)."""
END_SECONDS = 60.0
NUMBERS = itertools.count(1)
RUN = """
mountpoint --quiet /sys/fs/cgroup/unified && umount /sys/fs/cgroup/unified
files=$(BUILDAH mount "$1") && mkdir "$2/own" && mount -t tmpfs own "$2/own" || exit
mkdir "$2/own/upper" "$2/own/work" && over="lowerdir=$files,upperdir=$2/own/upper,workdir=$2/own/work" || exit
mount -t overlay overlay -o "$over" "$2/rootfs" 2>/dev/null || mount --bind "$files" "$2/rootfs" || exit
exec crun --root "$2/state" --cgroup-manager cgroupfs run --bundle "$2" "$3"
"""
"""crun 1.8 refuses to run where both versions of cgroups are mounted. All mounts end with this process's namespace.

crun creates the mount points that the image lacks, so each container has a layer of its own above buildah's files:
buildah mounts these in each namespace with the same working folder, which every mount empties, and a `mkdir` of another
container fails at that moment. Where no overlay can be mounted on them, buildah uses none, and has no such folder."""
# --kill-child: whatever ends this process ends all processes of the container.
ISOLATED = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c")


@dataclass(frozen=True, slots=True)
class User:
    """The ids of a container's processes; its volumes belong to the group `volumes`."""

    id: int
    group: int
    volumes: int


def user_of(pod: Manifest) -> User:
    """Returns the ids of the pod's securityContext."""
    context = pod["securityContext"]
    return User(context["runAsUser"], context["runAsGroup"], context["fsGroup"])


def of_manifests() -> User:
    """Returns the ids of the shipped Deployment."""
    return user_of(read(MANIFESTS / "base/deployment.yaml")["spec"]["template"]["spec"])


OF_OPENSHIFT = User(1_000_680_000, 0, 1_000_680_000)
"""As OpenShift chooses them for a namespace: group 0, and a number that no image knows."""


@dataclass(frozen=True, slots=True)
class Container:
    """What is run. `volumes` are the folders of this machine that stand for the volumes, by path in the container."""

    image: Image
    spec: Manifest
    user: User
    arguments: Sequence[str]
    volumes: Mapping[str, Path]
    environment: Mapping[str, str]
    host_aliases: Sequence[str] = ()
    """Further names of this machine."""

    @property
    def memory_bytes(self) -> int:
        number, unit = re.fullmatch(r"(\d+)(\w\w)", at(self.spec, "resources.limits.memory")).groups()  # type: ignore[union-attr]
        return int(number) * UNITS[unit]


@contextlib.contextmanager
def running(container: Container, home: Path) -> Iterator[Process]:
    """Runs it until the block ends; its output is in `home`/log."""
    name = f"kafka-lag-adapter-{os.getpid()}-{next(NUMBERS)}"
    (home / "rootfs").mkdir(parents=True)
    (home / "hosts").write_text(f"127.0.0.1 {' '.join(('localhost', HOST_NAME, *container.host_aliases))}\n")
    (home / "config.json").write_text(json.dumps(_configuration(container, home / "hosts")))
    script = RUN.replace("BUILDAH", " ".join(buildah_command()))
    command = [*ISOLATED, script, "sh", files_of(container.image), str(home), name]
    try:
        with start(name, command, log=home / "log") as process:
            yield process
    finally:
        wait_until(lambda: _is_without_cgroups(name), f"the end of {name}", END_SECONDS)


def _is_without_cgroups(name: str) -> bool:
    """Deletes what a crun that was killed leaves. It is busy until the last process of the container has ended."""
    for cgroup in (CGROUPS / name, *CGROUPS.glob(f"*/{name}")):
        with contextlib.suppress(OSError):
            cgroup.rmdir()
    return not [*CGROUPS.glob(f"*/{name}"), *CGROUPS.glob(name)]


def empty_volume(folder: Path, user: User) -> Path:
    """Returns a new folder as kubelets make an emptyDir."""
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    own_volume(folder, user)
    return folder


def own_volume(folder: Path, user: User) -> None:
    """Sets the volume's group on everything in it, as kubelets do when they mount a volume with an fsGroup."""
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, group=user.volumes)
        path.chmod(path.stat().st_mode | (0o2070 if path.is_dir() else 0o060))


def _configuration(container: Container, hosts: Path) -> dict[str, Any]:
    """Returns the runtime's, for the OCI runtime specification 1.0."""
    user = container.user
    mounts = {mount["mountPath"]: mount for mount in container.spec["volumeMounts"]}
    of_spec = {each["name"]: each["value"] for each in container.spec.get("env", []) if "value" in each}
    added = {**of_spec, **container.environment}
    environment = [*container.image.environment, *(f"{key}={value}" for key, value in added.items())]
    return {
        "ociVersion": "1.0.0",
        "hostname": HOST_NAME,
        "process": {
            "user": {"uid": user.id, "gid": user.group, "additionalGids": [user.volumes]},
            "args": [*container.image.entrypoint, *container.arguments],
            "env": environment,
            "cwd": "/",
            "capabilities": {kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")},
            "noNewPrivileges": not at(container.spec, "securityContext.allowPrivilegeEscalation"),
        },
        "root": {"path": "rootfs", "readonly": at(container.spec, "securityContext.readOnlyRootFilesystem")},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": SHARED_MEMORY, "type": "tmpfs", "source": "shm", "options": ["mode=1777", "size=64m"]},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
            _bound("/etc/hosts", hosts, is_read_only=False),
            *(
                _bound(path, folder, is_read_only=mounts.get(path, {}).get("readOnly", False))
                for path, folder in container.volumes.items()
            ),
        ],
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")],
            "resources": {"memory": {"limit": container.memory_bytes}},
        },
    }


def _bound(path: str, source: Path, *, is_read_only: bool) -> dict[str, Any]:
    options = ["rbind", "rprivate", "nosuid", *(["ro"] if is_read_only else [])]
    return {"destination": path, "type": "bind", "source": str(source), "options": options}
