"""The images of the shipped Dockerfile, unchanged, on a stand-in for its base image.

buildah keeps their layers in the cache folder, so a change of code builds only the layers after it."""

import contextlib
import fcntl
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.downloads import cache_folder, cached, digest, locked
from local.images import machine
from local.manifests.check import MANIFESTS
from local.processes import RigError, scratch
from local.steps import run_step

ROOT = MANIFESTS.parent
BASE_FILE, SPARK_FILE = (Path(__file__).with_name(f"{name}.Dockerfile") for name in ("base", "spark"))
REPORT_PAGE = ROOT / "docs/report.md"
SOURCE_RELEASE = "trixie"
"""The release of Debian that has the source of the image's Python."""
BASE_PACKAGES = (
    "ca-certificates,libbz2-1.0,libexpat1,libffi8,liblzma5,libncursesw6,libreadline8,libsqlite3-0,libssl3,libuuid1,netbase,"
    "tzdata,zlib1g"
)
"""What the slim image of Python has beside Debian's smallest system."""
BASE_NEEDS_BYTES = 300 * 1024**2
IDS, SOURCES = "ids.json", "sources"
TARGETS = ("packages", "packages-history", "packages-spark", "build", "build-history", "", "history", "spark")
"""Of the Dockerfile; the empty one is what is built without --target. A tag for each stage keeps its layers."""
EXECUTORS = "executors"
COPY_WHEEL = 'cp "$(BUILDAH mount "$1")"/wheels/*.whl "$2"'


@dataclass(frozen=True, slots=True)
class Image:
    """A built image, and what its configuration says about processes."""

    id: str
    user: str
    entrypoint: tuple[str, ...]
    environment: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Images:
    adapter: Image
    history: Image
    report: Image
    executors: Image
    """Of docs/report.md."""


@contextlib.contextmanager
def images() -> Iterator[Images]:
    """Builds what has changed since the last build, and keeps the images until the block ends. Raises RigError."""
    _store().mkdir(parents=True, exist_ok=True)
    with (_store() / "used").open("w") as used, scratch("images") as home:
        with locked(_store() / "lock"):
            machine.require_commands(home / "log")
            ids = _known() or _build(home)
            with contextlib.suppress(BlockingIOError):  # another run uses its images
                fcntl.flock(used, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _delete_old()
            fcntl.flock(used, fcntl.LOCK_SH)
        yield Images(*(_inspected(ids[target]) for target in ("", "history", "spark", EXECUTORS)))


def buildah_command() -> list[str]:
    """Layers are overlays where the kernel has them; elsewhere buildah copies each one (vfs)."""
    return ["buildah", "--root", str(_store()), "--runroot", f"/run/kafka-lag-adapter-{digest(bytes(_store()))}"]


def files_of(image: Image) -> str:
    """Returns the name of what `buildah mount` shows an image's files of. Runs share it: their root is read-only."""
    with locked(_store() / "lock"):
        return _container_of(image.id)


def _container_of(image: str) -> str:
    name = f"files-{image[:12]}"
    if name not in _containers():
        _buildah("from", "--pull-never", "--name", name, image)
    return name


def _store() -> Path:
    return cache_folder() / "images"


def _buildah(*arguments: str) -> str:
    """Returns its standard output. Raises RigError."""
    ended = subprocess.run([*buildah_command(), *arguments], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise RigError(f"buildah {' '.join(arguments)}: {ended.stderr}")
    return ended.stdout.strip()


def _containers() -> list[str]:
    return _buildah("containers", "--format", "{{.ContainerName}}").split()


def _known() -> dict[str, str]:
    """Returns the ids of the last build if it was of the same files; comparing takes buildah itself half a minute."""
    file = _store() / IDS
    found: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    if found.pop(SOURCES, "") != _sources():
        return {}
    present = _buildah("images", "--quiet", "--no-trunc").replace("sha256:", "").split()
    return found if set(found.values()) <= set(present) else {}


def _sources() -> str:
    """Returns a digest of all that the images are built from."""
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    files = sorted(file for name in let_in for file in (ROOT / name, *(ROOT / name).rglob("*")) if file.is_file())
    copied = [file for file in files if file.suffix != ".pyc"]
    names = "\n".join(str(file.relative_to(ROOT)) for file in copied)
    contents = (file.read_bytes() for file in (ROOT / "Dockerfile", BASE_FILE, SPARK_FILE, *copied))
    return digest(names.encode(), _executors_dockerfile().encode(), *contents)


def _build(home: Path) -> dict[str, str]:
    """Returns the id of what each target builds."""
    sources = _sources()
    mounts = machine.build_mounts(home / "machine")
    base = _base(mounts, home)
    ids = {}
    for target in TARGETS:
        name = f"localhost/kafka-lag-adapter:{target or 'adapter'}"
        options = ["--build-arg", f"PYTHON_IMAGE={base}", *(["--target", target] if target else [])]
        _bud(f"building the Dockerfile's {target or 'adapter'}", name, options, mounts, ROOT, home / "log")
        ids[target] = _id_of(name)
    ids[EXECUTORS] = _build_executors(ids, mounts, home)
    (_store() / IDS).write_text(json.dumps({SOURCES: sources, **ids}))
    return ids


def _build_executors(ids: Mapping[str, str], mounts: Sequence[str], home: Path) -> str:
    """Returns the id of what the Dockerfile in docs/report.md builds on a stand-in for Spark's own image."""
    context, dockerfile = home / EXECUTORS, _executors_dockerfile()
    context.mkdir()
    (context / "Dockerfile").write_text(dockerfile)
    script = COPY_WHEEL.replace("BUILDAH", " ".join(buildah_command()))
    files = _container_of(ids["build"])
    run_step("taking the wheel", ["unshare", "--mount", "sh", "-c", script, "sh", files, str(context)], home / "log")
    base = f"localhost/{dockerfile.split()[1]}"
    # Without our code, or each change of it would have the executors' packages installed again.
    options = ["--file", str(SPARK_FILE), "--build-arg", f"PACKAGES={ids['packages-spark']}"]
    _bud("building the stand-in for Spark's image", base, options, mounts, context, home / "log")
    name = f"localhost/kafka-lag-adapter:{EXECUTORS}"
    _bud("building the image for executors", name, [], mounts, context, home / "log")
    return _id_of(name)


def _executors_dockerfile() -> str:
    blocks = re.findall(r"^```Dockerfile\n(.*?)^```$", REPORT_PAGE.read_text(), re.MULTILINE | re.DOTALL)
    if len(blocks) != 1:
        raise RigError(f"{REPORT_PAGE} has {len(blocks)} Dockerfiles, and one is built.")
    return str(blocks[0])


def _id_of(name: str) -> str:
    return _buildah("images", "--quiet", "--no-trunc", name).removeprefix("sha256:")


def _base(mounts: Sequence[str], home: Path) -> str:
    """Returns the name of the stand-in."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    wanted = re.search(r"^ARG PYTHON_IMAGE=python:([\d.]+)-slim-(\w+)$", dockerfile, re.MULTILINE)
    if wanted is None:
        raise RigError("The Dockerfile's PYTHON_IMAGE is not of the form python:X.Y-slim-RELEASE.")
    python, release = wanted.groups()
    packages = digest(BASE_PACKAGES.encode(), release.encode())
    name = f"localhost/python:{python}-{packages}-{digest(BASE_FILE.read_bytes())}"
    if name not in _buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
        mirror = machine.debian_mirror()
        debian = cached(
            f"debian-{release}-{packages}", BASE_NEEDS_BYTES, lambda target: _debootstrap(release, mirror, target)
        )
        arguments = {"MIRROR": mirror, "RELEASE": SOURCE_RELEASE, "PYTHON": python}
        options = [option for key, value in arguments.items() for option in ("--build-arg", f"{key}={value}")]
        what = f"building the stand-in for python:{python}-slim-{release} (about 3 minutes on two cores; once)"
        _bud(what, name, ["--file", str(BASE_FILE), *options], mounts, debian, home / "log")
    return name


def _debootstrap(release: str, mirror: str, target: Path) -> None:
    target.mkdir()
    command = [
        "debootstrap",
        "--variant=minbase",
        f"--include={BASE_PACKAGES}",
        release,
        str(target / "debian"),
        mirror,
    ]
    what = f"installing Debian {release} (about half a minute; once)"
    run_step(what, command, target.with_name("log"), {"PATH": machine.SYSTEM_PATH})
    for package in (target / "debian/var/cache/apt/archives").glob("*.deb"):
        package.unlink()


def _bud(what: str, name: str, options: Sequence[str], mounts: Sequence[str], context: Path, log: Path) -> None:
    volumes = [option for mount in mounts for option in ("--volume", mount)]
    common = ["--layers", "--isolation", "chroot", "--network", "host", "--pull-never", "--tag", name]
    run_step(what, [*buildah_command(), "bud", *common, *volumes, *options, str(context)], log)


def _inspected(image: str) -> Image:
    found = json.loads(_buildah("inspect", "--type", "image", image))["OCIv1"]["config"]
    return Image(image, found["User"], tuple(found["Entrypoint"]), tuple(found["Env"]))


def _delete_old() -> None:
    """Deletes the layers that no tag needs; those of earlier builds are kept only by the containers of their files."""
    if names := _containers():
        _buildah("rm", *names)
    _buildah("rmi", "--prune", "--force")
