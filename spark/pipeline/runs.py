"""What one call of `compact` works with. It stages its tables in a hidden folder of its own: a run that was killed
leaves nothing else, and a later run deletes it."""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from spark.pipeline.batches import BatchLimits
from spark.storage.protocol import HistoryFiles

Say = Callable[[str], None]
PREFIX = ".compacting-"
STAMP = "%Y%m%dT%H%M%S"
ABANDONED = timedelta(days=1)
"""After which a hidden folder belongs to nobody."""


@dataclass(frozen=True, slots=True)
class Run:
    files: HistoryFiles
    staging: str
    """Path of its folder, in which its tables are staged."""
    session: Callable[[], SparkSession]
    """Starts Spark when it is first called."""
    say: Say
    check: Callable[[], None]
    """Raises Interrupted when the run is to end."""
    refuse_if_lost: Callable[[], None]
    """Raises Unavailable where another run may have taken the location; to be called before each publication."""
    limits: BatchLimits


@contextlib.contextmanager
def staging_of(files: HistoryFiles, now: datetime) -> Iterator[str]:
    """Yields the path of a new folder, and deletes it at the end, as well as those that other runs abandoned."""
    for name in files.hidden():
        if name.startswith(PREFIX) and _is_abandoned(name, now):
            files.delete(name)
    folder = f"{PREFIX}{now:{STAMP}}-{os.getpid()}"
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):  # an attempt that Spark has given up may still write there
            files.delete(folder)


def _is_abandoned(name: str, now: datetime) -> bool:
    try:
        began = datetime.strptime(name.removeprefix(PREFIX).partition("-")[0], STAMP).replace(tzinfo=UTC)
    except ValueError:
        return False
    return now - began > ABANDONED
