"""What one call of `compact` works with. It stages its tables in a hidden folder of its own: a run that was killed
leaves nothing else, and the next run deletes it."""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from spark.engine.jobs import Spark
from spark.engine.progress import Progress, Watch
from spark.pipeline.batches import BatchLimits
from spark.storage.protocol import HistoryFiles

Say = Callable[[str], None]
PREFIX = ".compacting-"
STAMP = "%Y%m%dT%H%M%S"


@dataclass(frozen=True, slots=True)
class Run:
    files: HistoryFiles
    staging: str
    """Path of its folder, in which its tables are staged."""
    session: Callable[[], Spark]
    """Starts Spark when it is first called."""
    say: Say
    check: Callable[[], None]
    """Raises Interrupted when the run is to end."""
    refuse_if_lost: Callable[[], None]
    """Raises Unavailable where another run may have taken the location; to be called before each publication."""
    limits: BatchLimits
    show: Say | None = None
    """Shows how far a job is, in a line that replaces the one before; None: nobody looks."""

    def shown(self, words: Callable[[Progress], str]) -> Watch | None:
        show = self.show
        return None if show is None else lambda progress: show(words(progress))


@contextlib.contextmanager
def staging_of(files: HistoryFiles, now: datetime) -> Iterator[str]:
    """Yields the path of a new folder, and deletes it at the end. Only for a run that has reserved the location: those
    that are there belong to runs that were killed, or to one that was frozen and must publish nothing any more."""
    for name in files.hidden():
        if name.startswith(PREFIX):
            files.delete(name)
    folder = f"{PREFIX}{now:{STAMP}}-{os.getpid()}"
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):  # an attempt that Spark has given up may still write there
            files.delete(folder)
