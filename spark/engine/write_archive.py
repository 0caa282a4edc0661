"""`python -m spark.engine.write_archive`: writes the archive of loaded classes for this Java and this Spark."""

import contextlib
import os
import subprocess

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark.engine import tasks
from spark.engine.class_archive import ClassArchive, archive_here
from spark.engine.session import SparkSettings, session_of, stop

SECONDS = 600
"""Writing takes 13 s, or minutes with a small share of a core."""
NICENESS = 19


def main() -> None:
    archive = archive_here()
    if archive is None:
        return
    os.nice(NICENESS)
    try:
        archive.unfinished.touch(exist_ok=False)  # so that no other process begins
        _write(archive)
    finally:
        archive.unfinished.unlink(missing_ok=True)


def _write(archive: ClassArchive) -> None:
    """The JVM writes the archive when it ends."""
    session = session_of(SparkSettings(), (f"-XX:ArchiveClassesAtExit={archive.unfinished}",))
    _load_classes(session)
    stop(session)
    gateway = SparkContext._gateway  # pyspark names the JVM's process nowhere else
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if gateway is None or process is None or process.stdin is None:
        return
    try:
        gateway.shutdown()
        process.stdin.close()
        if process.wait(timeout=SECONDS) == 0 and archive.unfinished.stat().st_size:
            archive.unfinished.replace(archive.path)
    finally:
        process.kill()


def _load_classes(session: SparkSession) -> None:
    """What a run does: tasks, and small tables that are joined and summed up."""
    tasks.run(session, abs, [1, 2], "classes")
    frame = session.createDataFrame([(1, 2.0, "a"), (2, 3.0, "b")], "id int, value double, name string")
    sums = frame.groupBy("name").agg(F.sum("value").alias("sum"), F.max(F.struct("id", "value")).alias("best"))
    with contextlib.suppress(ImportError):  # without pyarrow there are no tables to read either
        frame.join(F.broadcast(sums), on="name", how="left").orderBy("id").toArrow()


if __name__ == "__main__":
    main()
