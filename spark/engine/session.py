"""The SparkSession: all cores of this machine unless spark-submit says otherwise, times in UTC, silent, quick to start.

Most of a short run is the JVM's start: an archive of loaded classes (AppCDS) is written by the first run and halves it
for the others. It lies below the user's cache folder, or where KAFKA_LAG_REPORT_CDS says; where it cannot be written,
or was made by another Java, the run is slower and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark.engine.machine import tasks_at_once

ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # An hour's files are small: many of them belong into one task, and listing them is no job of its own.
    "spark.sql.files.openCostInBytes": "65536",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    # Rows come sorted by series; sorting them once more by hour would cost more than a few open files.
    "spark.sql.maxConcurrentOutputFileWriters": "100",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Tables are written to a hidden folder and moved as a whole, so the quicker of the two committers is enough.
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
}
"""What the pipeline needs wherever it runs."""

LOCALLY = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # Without checksum files: a table is to be copied, replaced and read by any other tool.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}

ATTEMPTS = 3
"""At a task whose process was killed."""

BRIEFLY = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}
BRIEF_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
LASTING_JAVA = ("-XX:+UseParallelGC",)


@dataclass(frozen=True, slots=True)
class Machine:
    """How Spark is to run; None leaves it to spark-submit and Spark's own configuration."""

    master: str | None = None
    memory: str | None = None
    """Of the driver's heap, as Spark writes it: `4g`."""
    java_options: tuple[str, ...] = ()
    """Further ones of the driver's JVM."""
    is_brief: bool = False
    """For so few rows that planning and compiling take longer than the work: one partition, no second compiler."""
    writes_archive: bool = True
    """Whether a run that finds no archive of classes writes one at its end, which takes longer than one run saves."""


@contextlib.contextmanager
def started(machine: Machine, extra: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session that is stopped at the end, whatever happens; inside spark-submit only what is always needed is set."""
    archive = None if is_submitted() else _archive(writes=machine.writes_archive)
    session = _built(machine, archive, extra or {})
    is_whole = False
    try:
        yield session
        is_whole = True
    finally:
        stop(session)
        if archive is not None and archive.is_new:
            _keep(archive, is_whole=is_whole)


def stop(session: SparkSession) -> None:
    """Ends the session; a JVM that is gone already (a signal to the whole process group) is no trouble."""
    with contextlib.suppress(Exception):  # py4j and the JVM's own end raise whatever they like here
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


def _built(machine: Machine, archive: Archive | None, extra: Mapping[str, str]) -> SparkSession:
    builder: SparkSession.Builder = SparkSession.builder
    builder = builder.appName("kafka-lag-report")
    settings = {**ALWAYS, **({} if is_submitted() else _of_machine(machine, archive)), **extra}
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _of_machine(machine: Machine, archive: Archive | None) -> dict[str, str]:
    settings = {"spark.driver.memory": machine.memory} if machine.memory else {}
    master = machine.master or (None if "--master" in os.environ.get("PYSPARK_SUBMIT_ARGS", "") else _local_master())
    if master:
        settings["spark.master"] = master
    if master and master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark would take the first `python3` on the PATH
        settings |= LOCALLY
        settings["spark.sql.shuffle.partitions"] = str(max(2, _cores(master)))
        settings |= BRIEFLY if machine.is_brief else {}
    options = (*(BRIEF_JAVA if machine.is_brief else LASTING_JAVA), *_java_options(archive), *machine.java_options)
    settings["spark.driver.extraJavaOptions"] = " ".join(options)
    return settings


def _local_master() -> str:
    return f"local[{tasks_at_once()},{ATTEMPTS}]"


def _java_options(archive: Archive | None) -> list[str]:
    options = ["-Duser.timezone=UTC", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=off:stderr"]
    options.append(f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}")
    return options if archive is None else [*options, archive.option]


def _cores(master: str) -> int:
    inside = master.partition("[")[2].rstrip("]").split(",")[0]
    if inside == "*":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(inside) if inside.isdigit() else 1


def is_submitted() -> bool:
    """Whether spark-submit started this Python: its JVM runs already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _archive(*, writes: bool) -> Archive | None:
    """The one for this Java and this Spark; None where no Java or no place for it is found."""
    java = _java()
    if java is None:
        return None
    of = f"{java} {java.stat().st_mtime_ns} {pyspark.__version__} {pyspark.__file__}"
    folder = os.environ.get("KAFKA_LAG_REPORT_CDS") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kafka-lag-adapter", "classes"
    )
    path = Path(folder, f"{hashlib.sha256(of.encode()).hexdigest()[:16]}.jsa")
    if not writes and not path.exists():
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if path.exists():
        return Archive(path, is_new=False)
    return Archive(path, is_new=True) if os.access(path.parent, os.W_OK) else None


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else shutil.which("java")
    return Path(found).resolve() if found and Path(found).exists() else None


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
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        process.wait(timeout=60)
        archive.written.replace(archive.path)
