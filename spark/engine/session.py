"""The SparkSession: the cores of this machine unless `--master` or spark-submit says otherwise, UTC, silent.

Most of a short run is the JVM's start: an archive of loaded classes (AppCDS) is written by the first run and halves it
for the others. It lies below the user's cache folder, or where KAFKA_LAG_REPORT_CDS says; where it cannot be written,
or was made by another Java, the run is slower and nothing else.
"""

import contextlib
import hashlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from adapter.location import home
from spark.engine.machine import tasks_at_once
from spark.engine.remote import connected

ZONE = {"spark.sql.session.timeZone": "UTC"}
ALWAYS = {**ZONE, "spark.sql.catalogImplementation": "in-memory"}
"""What the pipeline needs wherever its JVM is started."""

LOCALLY = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Tables of a few thousand rows: planning them again at each stage would take longer than the stage.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # Compiling code for them, too.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Rows of samples never reach this JVM: what it does is plan, schedule, and add up small tables."""

JAVA_OPTIONS = (
    "-Xshare:auto",
    "-Xlog:disable",
    "-Xlog:all=off:stderr",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Duser.timezone=UTC",
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
)
"""The second compiler and parallel collectors pay for themselves after minutes only."""

ATTEMPTS = 3
"""At a task whose process was killed."""

ARCHIVE_SECONDS = 300
"""Writing an archive takes seconds, or minutes with a small share of a core."""
ABANDONED_SECONDS = 3600
"""After this time nobody is writing an unfinished archive any more."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How Spark is to run; None leaves it to spark-submit and Spark's own configuration."""

    master: str | None = None
    driver_memory: str | None = None
    """Of the driver's heap, as Spark writes it: `4g`."""
    remote: str | None = None
    """A Spark Connect server, `sc://HOST:PORT`, which has the driver."""


@contextlib.contextmanager
def started(wanted: SparkSettings) -> Iterator[SparkSession]:
    """A session that is stopped at the end, whatever happens; inside spark-submit only what is always needed is set."""
    if wanted.remote:
        with connected(wanted.remote, ZONE) as session:
            yield session
        return
    archive = None if is_submitted() else _archive()
    _leave_out_pandas()
    builder: SparkSession.Builder = SparkSession.builder
    own = {} if is_submitted() else _settings(wanted, archive)
    if not _is_in_passwd():
        _log_in(SparkConf().setAll([*own.items()]))
    session = builder.appName("kafka-lag-report").config(map={**ALWAYS, **own}).getOrCreate()
    is_whole = False
    try:
        yield session
        is_whole = True
    finally:
        stop(session)
        if archive is not None and archive.is_new:
            _keep(archive, is_whole=is_whole)


def _leave_out_pandas() -> None:
    """At the first call of the JVM, PySpark asks its test tools whether there is numpy. They import pandas, gRPC and
    unittest, which take a second."""
    NumpyScalarConverter.can_convert = _is_scalar  # type: ignore[method-assign,assignment]
    NumpyArrayConverter.can_convert = _is_flat  # type: ignore[method-assign,assignment]


def _is_scalar(_: NumpyScalarConverter, obj: object) -> bool:
    return isinstance(obj, np.generic)


def _is_flat(_: NumpyArrayConverter, obj: object) -> bool:
    return isinstance(obj, np.ndarray) and obj.ndim == 1


def stop(session: SparkSession) -> None:
    """Ends the session; a JVM that is gone already (a signal to the whole process group) is no trouble."""
    with contextlib.suppress(Exception):  # py4j and the JVM's own end raise whatever they like here
        # Its thread, a daemon, would look only once a second whether it is to end.
        session.sparkContext._accumulatorServer = None  # type: ignore[assignment]  # as pyspark itself does then
        session.stop()


@dataclass(frozen=True, slots=True)
class Archive:
    """Of loaded classes; `written` is where a new one is written until it is whole."""

    path: Path
    is_new: bool

    @property
    def written(self) -> Path:
        return self.path.with_name(f".{self.path.name}.{os.getpid()}")

    @property
    def option(self) -> str:
        return f"-XX:ArchiveClassesAtExit={self.written}" if self.is_new else f"-XX:SharedArchiveFile={self.path}"


def _settings(wanted: SparkSettings, archive: Archive | None) -> dict[str, str]:
    settings = {"spark.driver.memory": wanted.driver_memory} if wanted.driver_memory else {}
    is_given = "--master" in os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    master = wanted.master or (None if is_given else f"local[{tasks_at_once()},{ATTEMPTS}]")
    if master:
        settings["spark.master"] = master
    if master and master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark would take whatever `python3` is on the PATH
        settings |= LOCALLY
    # Spark's Ivy needs a home, even if it downloads nothing.
    home = () if _is_in_passwd() else (f"-Duser.home={tempfile.gettempdir()}",)
    options = (*JAVA_OPTIONS, *home, *([archive.option] if archive else ()))
    settings["spark.driver.extraJavaOptions"] = " ".join(options)
    return settings


def _is_in_passwd() -> bool:
    """Whether Java knows a name and a home of this process's user. In a pod, mostly not."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True


def _log_in(conf: SparkConf) -> None:
    """Starts the JVM and names its user for Hadoop, whose own login fails for a user without an entry in passwd."""
    SparkContext._ensure_initialized(conf=conf)
    assert SparkContext._jvm is not None
    users = SparkContext._jvm.org.apache.hadoop.security.UserGroupInformation
    users.setLoginUser(users.createRemoteUser(str(os.getuid())))


def is_submitted() -> bool:
    """Whether spark-submit started this Python: its JVM runs already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _archive() -> Archive | None:
    """The one for this Java and this Spark; None where no Java or no place for it is found."""
    java = _java()
    if java is None:
        return None
    identity = f"{java} {java.stat().st_mtime_ns} {pyspark.__version__} {pyspark.__file__}"
    folder = os.environ.get("KAFKA_LAG_REPORT_CDS") or Path(
        os.environ.get("XDG_CACHE_HOME") or home() / ".cache", "kafka-lag-adapter", "classes"
    )
    path = Path(folder, f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _delete_abandoned(path.parent)
    except OSError:
        return None
    if path.exists():
        return Archive(path, is_new=False)
    return Archive(path, is_new=True) if os.access(path.parent, os.W_OK) else None


def _delete_abandoned(folder: Path) -> None:
    """A run that is killed while it writes an archive leaves 166 MB."""
    for unfinished in folder.glob(".*.jsa.*"):
        with contextlib.suppress(OSError):
            if time.time() - unfinished.stat().st_mtime > ABANDONED_SECONDS:
                unfinished.unlink()


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else shutil.which("java")
    return Path(java).resolve() if java and Path(java).exists() else None


def _keep(archive: Archive, *, is_whole: bool) -> None:
    """The JVM writes the archive when it ends, so it is ended here; after a run that failed, at once and without it."""
    gateway = SparkContext._gateway  # pyspark names the JVM's process nowhere else
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if gateway is None or process is None or process.stdin is None:
        return
    if not is_whole:
        process.kill()
        return
    gateway.shutdown()
    process.stdin.close()
    try:
        process.wait(timeout=ARCHIVE_SECONDS)
        archive.written.replace(archive.path)
    except (subprocess.TimeoutExpired, OSError):
        process.kill()
        archive.written.unlink(missing_ok=True)
