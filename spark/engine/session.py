"""Starts Spark: on the cores of this machine unless `--master` or spark-submit says otherwise, in UTC, silent.

Most of a short run is the JVM's start, which an archive of loaded classes shortens (`spark.engine.class_archive`).
"""

import contextlib
import os
import pwd
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from spark.engine.class_archive import archive_here
from spark.engine.jobs import Spark, setting
from spark.engine.machine import tasks_at_once
from spark.engine.remote import OF_TABLES, connected

ZONE = {"spark.sql.session.timeZone": "UTC"}
ALWAYS = {**ZONE, "spark.sql.catalogImplementation": "in-memory"}
"""What the pipeline needs wherever its JVM is started."""

SMALL_TABLES = {
    # Tables of a few thousand rows: planning them again at each stage would take longer than the stage.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # Compiling code for them, too, which the driver and every executor would do.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Rows of samples never reach a JVM: what the driver's does is plan, schedule, and add up small tables."""

LOCALLY = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

SHORT_LIFE = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=off:stderr", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""The second compiler and parallel collectors pay for themselves after minutes only, and an executor's JVM does little
more than to start Python."""

JAVA_OPTIONS = (
    *SHORT_LIFE,
    "-Duser.timezone=UTC",
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
)

OF_EXECUTORS = "spark.executor.defaultJavaOptions"
"""A user's `spark.executor.extraJavaOptions` follow them. An executor that does not find the archive of classes, or
refuses it, does without."""

ATTEMPTS = 3
"""At a task whose process was killed."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How Spark is to run; None leaves it to spark-submit and Spark's own configuration."""

    master: str | None = None
    driver_memory: str | None = None
    """Of the driver's heap, as Spark writes it: `4g`."""
    remote: str | None = None
    """A Spark Connect server, `sc://HOST:PORT`, which has the driver."""
    packages: Mapping[str, str] = field(default_factory=lambda: OF_TABLES)
    """That such a server must have: those that the tasks import."""


@contextlib.contextmanager
def started(wanted: SparkSettings) -> Iterator[Spark]:
    """Spark, which is stopped at the end, whatever happens; inside spark-submit only what is always needed is set."""
    if wanted.remote:
        with connected(wanted.remote, ZONE, wanted.packages) as session:
            yield session
        return
    archive = None if is_submitted() else archive_here()
    context = started_context(wanted, archive.options if archive else ())
    is_whole = False
    try:
        yield with_sql(context) if setting(context, "spark.ui.enabled") != "false" else context
        is_whole = True
    finally:
        is_missed = is_whole and archive is not None and not archive.is_used_by(_pid_of_jvm())
        stop(context)
        if is_missed and archive is not None:
            archive.write_later()


def started_context(wanted: SparkSettings, java_options: Sequence[str]) -> SparkContext:
    """`java_options`: further ones of the driver's JVM, which spark-submit has started already."""
    _leave_out_pandas()
    own = {} if is_submitted() else _settings(wanted, java_options)
    if not _is_in_passwd():
        _log_in(SparkConf().setAll([*own.items()]))
    return SparkContext.getOrCreate(SparkConf().setAppName("kafka-lag-report").setAll([*ALWAYS.items(), *own.items()]))


def with_sql(context: SparkContext) -> SparkSession:
    """Its session."""
    return SparkSession(context)


def _leave_out_pandas() -> None:
    """At the first call of the JVM, PySpark asks its test tools whether there is numpy. They import pandas, gRPC and
    unittest, which take a second."""
    NumpyScalarConverter.can_convert = _is_scalar  # type: ignore[method-assign,assignment]
    NumpyArrayConverter.can_convert = _is_flat  # type: ignore[method-assign,assignment]


def _is_scalar(_: NumpyScalarConverter, obj: object) -> bool:
    return isinstance(obj, np.generic)


def _is_flat(_: NumpyArrayConverter, obj: object) -> bool:
    return isinstance(obj, np.ndarray) and obj.ndim == 1


def stop(context: SparkContext) -> None:
    """Ends Spark; a JVM that is gone already (a signal to the whole process group) is no trouble."""
    with contextlib.suppress(Exception):  # py4j and the JVM's own end raise whatever they like here
        # Its thread, a daemon, would look only once a second whether it is to end.
        context._accumulatorServer = None  # type: ignore[assignment]  # as pyspark itself does then
        context.stop()


def _settings(wanted: SparkSettings, java_options: Sequence[str]) -> dict[str, str]:
    settings = dict(SMALL_TABLES)
    if wanted.driver_memory:
        settings["spark.driver.memory"] = wanted.driver_memory
    is_given = "--master" in os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    master = wanted.master or (None if is_given else f"local[{tasks_at_once()},{ATTEMPTS}]")
    if master:
        settings["spark.master"] = master
    if master and master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark would take whatever `python3` is on the PATH
        settings |= LOCALLY
    else:
        settings[OF_EXECUTORS] = " ".join((*SHORT_LIFE, *java_options))
    # Spark's Ivy needs a home, even if it downloads nothing.
    home = () if _is_in_passwd() else (f"-Duser.home={tempfile.gettempdir()}",)
    options = (*JAVA_OPTIONS, *home, *java_options)
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


def _pid_of_jvm() -> int:
    process = getattr(SparkContext._gateway, "proc", None)  # pyspark names the JVM's process nowhere else
    return process.pid if process is not None else 0
