"""What one call of `compact` works with, and how much at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spark.pipeline.batches import Engine
from spark.pipeline.publish import Staging
from spark.storage.protocol import Files

BATCH_ROWS = 8_000_000
"""Of neighbouring hours that Spark compacts together: what two cores sort within a heap of a gigabyte."""
IN_MEMORY_ROWS = 4_000_000
"""Of an hour that the driver computes by itself; more are Spark's. A row takes about 400 bytes."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """Rows at once."""

    in_memory: int = IN_MEMORY_ROWS
    """0: all is left to Spark."""
    of_spark: int = BATCH_ROWS


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Run:
    """What one call works with."""

    files: Files
    staging: Staging
    say: Say
    check: Callable[[], None]
    """Raises Interrupted when the run is to end."""
    limits: Limits
    by_spark: Callable[[], Engine]
    in_memory: Engine | None
    """None: all is left to Spark."""

    def fits(self, rows: int) -> bool:
        """Into the driver's memory."""
        return self.in_memory is not None and rows <= self.limits.in_memory

    def engine(self, rows: int) -> Engine:
        return self.in_memory if self.in_memory is not None and self.fits(rows) else self.by_spark()
