"""Downloads and builds the parts of the rig once, into a cache folder: Kafka's jars, the Spark operator's
CustomResourceDefinitions and, built from source, a control plane, an S3 server, brokers like other makers', helm and
kubectl.

`python -m local.downloads PART...` gets the parts that are missing, and without arguments all. Everything is written
under a temporary name and renamed, under a lock, so that what has its final name is complete, and two processes do not
do the same work."""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.processes import RigError, exit_on_sigterm
from local.steps import run_step, say

KAFKA = os.environ.get("KAFKA_VERSION") or "4.3.1"  # `make test-kafka` sets it
KAFKA_RELEASE = tuple(map(int, KAFKA.split(".")))
LOG4J = "2.25.4"  # the version that Kafka brings; its binding to slf4j is what makes broker logs appear
GO = "1.26.6"
GO_AT_LEAST = (1, 26)
JAVA_AT_LEAST = 17
KUBERNETES = "v1.36.3"
SPARK_OPERATOR = "v2.4.0"
OBJECT_STORE = "v1.8.0"
HELM = "v4.1.1"
BUILD_NEEDS_BYTES = 4 * 1024**3
JARS_NEED_BYTES = 200 * 1024**2
OPERATOR_NEEDS_BYTES = 16 * 1024**2
STORE_NEEDS_BYTES = 1024**3
TOOLS_NEED_BYTES = 1024**3
MAKERS_NEED_BYTES = 256 * 1024**2

HERE = Path(__file__).parent
GO_SOURCE = HERE / "control_plane_go"
SPARK_OPERATOR_GO = HERE / "spark_operator_go"
OBJECT_STORE_GO = HERE / "object_store_go"
MAKERS_GO = HERE / "makers_go"
TOOLS_GO = HERE / "command_line_tools_go"
GO_REQUIREMENTS = HERE.parent / "requirements" / "go.txt"

# Before 4.0, Kafka logs by reload4j, which it brings.
LOG_BINDING = "log4j-slf4j-impl" if KAFKA_RELEASE >= (4,) else "log4j-api"
# kafka-tools brings Kafka Connect and its web server, which the consumer group command does not need.
IVY_MODULE = f"""<ivy-module version="2.0">
  <info organisation="kafka-lag-adapter" module="local"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA}" conf="default"/>
    <dependency org="org.apache.kafka" name="kafka-tools" rev="{KAFKA}" conf="default"/>
    <dependency org="org.apache.logging.log4j" name="{LOG_BINDING}" rev="{LOG4J}" conf="default"/>
    <exclude org="org.apache.kafka" module="connect-.*" matcher="regexp"/>
  </dependencies>
</ivy-module>
"""


def cache_folder() -> Path:
    """Returns the folder for downloads and builds, which is outside the tree and shared by all checkouts."""
    if chosen := os.environ.get("KAFKA_LAG_ADAPTER_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-lag-adapter"


def kafka_jars() -> Path:
    """Returns the folder of the jars of Kafka and its command line tools, for Java's class path. Raises RigError."""
    return _bring(_kafka())


def control_plane_binary() -> Path:
    """Returns the program that is etcd, kube-apiserver or kube-controller-manager by its first argument. Raises
    RigError."""
    return _bring(_control_plane())


def object_store_binary() -> Path:
    """Returns versitygw, an S3 server for a folder. Raises RigError."""
    return _bring(_object_store())


def makers_binary() -> Path:
    """Returns the program that runs brokers as other makers and older releases have them. Raises RigError."""
    return _bring(_makers())


def command_line_tools() -> Path:
    """Returns the folder of the commands helm and kubectl, for PATH. Raises RigError."""
    return _bring(_command_line_tools())


def spark_operator_definitions() -> tuple[Path, ...]:
    """Returns the definition files of ScheduledSparkApplication and SparkApplication. Raises RigError."""
    return tuple(sorted(_bring(_spark_operator()).glob("*.yaml")))


def cached(name: str, needs_bytes: int, make: Callable[[Path], None]) -> Path:
    """Returns what `make` wrote to the path that it was given, once for all checkouts. Raises RigError."""
    return _bring(_Part(name, needs_bytes, make))


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """The kernel releases the lock even if its holder is killed."""
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another process that is bringing the same")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(names: Sequence[str]) -> int:
    """Gets the named parts that are missing; status 2 and one sentence if that is impossible."""
    try:
        with exit_on_sigterm():
            _require_java()
            missing = [part for part in map(_named, names) if not part.path.exists()]
            _require_disk(missing)
            for part in missing:
                _bring(part)
    except RigError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


@dataclass(frozen=True, slots=True)
class _Part:
    """A file or folder of the cache, and the function that creates it at a given path."""

    name: str
    needs_bytes: int
    make: Callable[[Path], None]

    @property
    def path(self) -> Path:
        return cache_folder() / self.name


def _named(name: str) -> _Part:
    if name not in PARTS:
        raise RigError(f"There is no part {name}; there are {', '.join(PARTS)}.")
    return PARTS[name]()


def _kafka() -> _Part:
    return _Part(f"kafka-{KAFKA}-{digest(IVY_MODULE.encode())}", JARS_NEED_BYTES, _download_kafka)


def _control_plane() -> _Part:
    sources = [(GO_SOURCE / name).read_bytes() for name in ("go.mod", "go.sum", "main.go")]
    return _Part(f"control-plane-{digest(*sources)}", BUILD_NEEDS_BYTES, _build_control_plane)


def _spark_operator() -> _Part:
    sources = [(SPARK_OPERATOR_GO / name).read_bytes() for name in ("go.mod", "go.sum")]
    name = f"spark-operator-{SPARK_OPERATOR}-{digest(*sources)}"
    return _Part(name, OPERATOR_NEEDS_BYTES, _download_spark_operator)


def _object_store() -> _Part:
    sources = [(OBJECT_STORE_GO / name).read_bytes() for name in ("go.mod", "go.sum")]
    return _Part(f"object-store-{OBJECT_STORE}-{digest(*sources)}", STORE_NEEDS_BYTES, _build_object_store)


def _makers() -> _Part:
    sources = [file.read_bytes() for file in sorted(MAKERS_GO.iterdir())]
    return _Part(f"makers-{digest(*sources)}", MAKERS_NEED_BYTES, _build_makers)


def _command_line_tools() -> _Part:
    sources = [(TOOLS_GO / name).read_bytes() for name in ("go.mod", "go.sum", "main.go")]
    return _Part(f"command-line-tools-{HELM}-{digest(*sources)}", TOOLS_NEED_BYTES, _build_command_line_tools)


PARTS: dict[str, Callable[[], _Part]] = {
    "kafka": _kafka,
    "control-plane": _control_plane,
    "s3-server": _object_store,
    "makers": _makers,
    "command-line-tools": _command_line_tools,
    "spark-operator": _spark_operator,
}
"""In the order in which they are brought: the command line tools share most of what the control plane compiles."""


def _bring(part: _Part) -> Path:
    """Returns the part's path once it exists."""
    if part.path.exists():
        return part.path
    part.path.parent.mkdir(parents=True, exist_ok=True)
    with locked(part.path.with_name(f"{part.name}.lock")):
        if part.path.exists():
            return part.path
        workshop = part.path.with_name(f"unfinished-{part.name}")
        if workshop.exists():
            shutil.rmtree(workshop)  # its maker was killed
        workshop.mkdir()
        try:
            part.make(workshop / part.name)
            (workshop / part.name).rename(part.path)
        finally:
            shutil.rmtree(workshop)
    return part.path


def _download_kafka(target: Path) -> None:
    module = target.with_name("ivy.xml")
    module.write_text(IVY_MODULE)
    pattern = f"{target}/[artifact]-[revision].[ext]"
    command = ["java", "-jar", str(_ivy()), "-cache", str(target.with_name("ivy")), "-ivy", str(module)]
    command += ["-confs", "default", "-retrieve", pattern]
    run_step(f"downloading Kafka {KAFKA} (about 50 jars, 46 MB; about a minute)", command, target.with_name("log"))


def _ivy() -> Path:
    """Returns the downloader of jars that PySpark includes."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RigError("PySpark is not installed in this environment; its downloader brings Kafka.")
    return next(Path(spec.origin).parent.glob("jars/ivy-*.jar"))


def _require_java() -> None:
    problem = f"Java {JAVA_AT_LEAST} or newer is needed to run Kafka and Spark"
    java = shutil.which("java")
    if java is None:
        raise RigError(f"{problem}; there is no `java` on PATH.")
    found = re.search(r'(?:JAVA_VERSION=|version )"(\d+)', _java_says(java))
    if found is None:
        raise RigError(f"{problem}; the `java` on PATH does not tell its version.")
    if int(found[1]) < JAVA_AT_LEAST:
        raise RigError(f"{problem}; the `java` on PATH is {found[1]}.")


def _java_says(java: str) -> str:
    """Returns Java's version as text, from the file beside it, because starting a virtual machine takes a while."""
    release = Path(java).resolve().parent.parent / "release"
    if release.is_file():
        return release.read_text()
    return subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr


def _require_disk(missing: Sequence[_Part]) -> None:
    needed = sum(part.needs_bytes for part in missing)
    folder = next(folder for folder in [cache_folder(), *cache_folder().absolute().parents] if folder.exists())
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise RigError(
            f"What the rig lacks needs {needed / 1e9:.1f} GB of disk to be downloaded and built, and "
            f"{folder} has {free / 1e9:.1f} GB left; KAFKA_LAG_ADAPTER_CACHE names another folder."
        )


def _build_control_plane(target: Path) -> None:
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    version = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in version.items()]
    what = f"building the control plane, Kubernetes {KUBERNETES} (about 6 minutes on two cores; once)"
    _build(what, GO_SOURCE, ".", target, stamps)


def _build_object_store(target: Path) -> None:
    what = f"building the S3 server, versitygw {OBJECT_STORE} (about a minute on two cores; once)"
    _build(what, OBJECT_STORE_GO, "github.com/versity/versitygw/cmd/versitygw", target)


def _build_makers(target: Path) -> None:
    _build("building the brokers of other makers, kfake (half a minute on two cores; once)", MAKERS_GO, ".", target)


def _build_command_line_tools(target: Path) -> None:
    what = f"building helm {HELM} and kubectl {KUBERNETES} (about a minute on two cores; once)"
    stamps = [
        f"-X helm.sh/helm/v4/internal/version.version={HELM}",
        f"-X k8s.io/component-base/version.gitVersion={KUBERNETES}",
    ]
    _build(what, TOOLS_GO, ".", target / "helm", stamps)
    (target / "kubectl").symlink_to("helm")


def _build(what: str, source: Path, package: str, target: Path, stamps: Sequence[str] = ()) -> None:
    flags = [
        "-trimpath",
        "-buildvcs=false",
        "-mod=readonly",
        "-modcacherw",
        "-gcflags=all=-dwarf=false",  # what the linker would leave out is a seventh of the compiler's work
        "-ldflags",
        " ".join(["-s", "-w", *stamps]),
    ]
    environment = {"CGO_ENABLED": "0", "GOCACHE": str(cache_folder() / "go-build")}
    run_step(
        what,
        [str(_go()), "build", *flags, "-o", str(target), package],
        target.with_name("log"),
        {**environment, **_go_environment(cache_folder() / "go-modules")},
        source,
    )


def _download_spark_operator(target: Path) -> None:
    """Downloads one module without its dependencies: without arguments Go downloads what go.mod names, and checks
    go.sum."""
    modules = target.with_name("modules")
    run_step(
        f"downloading the Spark operator {SPARK_OPERATOR} (1 MB; a second or two)",
        [str(_go()), "mod", "download", "-modcacherw"],
        target.with_name("log"),
        _go_environment(modules),
        SPARK_OPERATOR_GO,
    )
    target.mkdir()
    definitions = modules / f"github.com/kubeflow/spark-operator/v2@{SPARK_OPERATOR}/config/crd/bases"
    for kinds in ("scheduledsparkapplications", "sparkapplications"):
        shutil.copy(definitions / f"sparkoperator.k8s.io_{kinds}.yaml", target)


def _go_environment(modules: Path) -> dict[str, str]:
    """Returns Go's defaults, whatever this machine has configured, with modules below that folder."""
    return {"GOMODCACHE": str(modules), "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}


def _go() -> Path:
    """Returns a Go toolchain: the one on PATH if it is new enough, otherwise the pinned one."""
    on_path = shutil.which("go")
    if on_path is not None:
        answer = subprocess.run(
            [on_path, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "GOTOOLCHAIN": "local"},
        )
        found = re.match(r"go(\d+)\.(\d+)", answer.stdout)
        if found is not None and (int(found[1]), int(found[2])) >= GO_AT_LEAST:
            return Path(on_path)
    return _bring(_Part(f"go-{GO}", 0, _download_go)) / "go" / "bin" / "go"


def _download_go(target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    command += ["--target", str(target), "--requirement", str(GO_REQUIREMENTS)]
    run_step(f"downloading Go {GO} (70 MB; some seconds)", command, target.with_name("log"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or tuple(PARTS)))
