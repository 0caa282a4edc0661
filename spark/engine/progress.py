"""How far a job is, by accumulators, to which Spark adds once for each task that has ended; by Spark Connect, which has
none, by what the server says of its tasks."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from pyspark import Accumulator
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from spark.engine.jobs import Spark, context_of

LOOKS_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Counts:
    """Of a task, or of all that have ended."""

    rows: int = 0
    bytes: int = 0
    skipped: int = 0
    """Files that were left out."""


@dataclass(frozen=True, slots=True)
class Progress:
    tasks: int
    """Ended."""
    of: int
    counts: Counts | None
    """Of the tasks that have ended; None by Spark Connect, which has no accumulators."""


Watch = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Tally:
    tasks: Accumulator[int]
    rows: Accumulator[int]
    bytes: Accumulator[int]
    skipped: Accumulator[int]

    def add(self, task: object) -> None:
        """A task without `counts` counts nothing but itself."""
        self.tasks.add(1)
        counts = getattr(task, "counts", None)
        if isinstance(counts, Counts):
            self.rows.add(counts.rows)
            self.bytes.add(counts.bytes)
            self.skipped.add(counts.skipped)

    def progress(self, of: int) -> Progress:
        return Progress(self.tasks.value, of, Counts(self.rows.value, self.bytes.value, self.skipped.value))


def tally_of(spark: Spark) -> Tally | None:
    if is_remote():
        return None
    tasks, rows, size, skipped = (context_of(spark).accumulator(0) for _ in range(4))
    return Tally(tasks, rows, size, skipped)


@contextlib.contextmanager
def watched(spark: Spark, watch: Watch | None, tally: Tally | None, tasks: int) -> Iterator[None]:
    """`watch` is called about twice a second while the block runs, from another thread."""
    if watch is None:
        yield
        return
    if tally is None:
        handler: Any = lambda stages, **_: watch(_by_stages(stages, tasks))  # noqa: E731
        session = cast("SparkSession", spark)
        session.registerProgressHandler(handler)
        try:
            yield
        finally:
            session.removeProgressHandler(handler)
        return
    ended = threading.Event()
    thread = threading.Thread(target=_look, args=(watch, tally, tasks, ended), name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _look(watch: Watch, tally: Tally, tasks: int, ended: threading.Event) -> None:
    while not ended.wait(LOOKS_SECONDS):
        watch(tally.progress(tasks))


def _by_stages(stages: Any, tasks: int) -> Progress:  # noqa: ANN401 -- Connect's own type needs its packages
    """Without the stages that only collect."""
    done = max((stage.num_completed_tasks for stage in stages or ()), default=0)
    return Progress(min(done, tasks), tasks, None)
