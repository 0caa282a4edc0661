"""`python -m spark.engine.write_archive`: writes the archive of loaded classes for this Java and this Spark."""

import os
import subprocess

from pyspark import SparkContext

from spark.engine import tasks
from spark.engine.class_archive import ClassArchive, archive_here, locked
from spark.engine.session import SparkSettings, started_context, stop, with_sql

SECONDS = 600
"""Writing takes 13 s, or minutes with a small share of a core."""
NICENESS = 19


def main() -> None:
    archive = archive_here()
    if archive is None:
        return
    os.nice(NICENESS)
    found_at = archive.written_at
    with locked(archive.path.parent):
        if archive.written_at == found_at:  # else the process that this one waited for has written it
            _write(archive)


def _write(archive: ClassArchive) -> None:
    """The JVM writes the archive when it ends."""
    context = started_context(SparkSettings(), (f"-XX:ArchiveClassesAtExit={archive.unfinished}",))
    _load_classes(context)
    stop(context)
    gateway = SparkContext._gateway  # pyspark names the JVM's process nowhere else
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if gateway is None or process is None or process.stdin is None:
        return
    try:
        gateway.shutdown()
        process.stdin.close()
        if process.wait(timeout=SECONDS) == 0 and archive.unfinished.exists():
            archive.unfinished.replace(archive.path)
    finally:
        process.kill()
        archive.unfinished.unlink(missing_ok=True)


def _load_classes(context: SparkContext) -> None:
    """Of both ways to run tasks: a run on a cluster shows them as DataFrames."""
    tasks.run(context, abs, [1, 2], "classes")
    with_sql(context).range(2).mapInArrow(lambda batches: batches, "id bigint").toArrow()


if __name__ == "__main__":
    main()
