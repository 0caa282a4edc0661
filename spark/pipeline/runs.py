"""What one call of `compact` works with."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from spark.pipeline.batches import Limits
from spark.storage.protocol import Files

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Run:
    files: Files
    staging: str
    """Path of its folder, in which its tables are staged."""
    session: Callable[[], SparkSession]
    """Starts Spark when it is first called."""
    say: Say
    check: Callable[[], None]
    """Raises Interrupted when the run is to end."""
    refuse_if_lost: Callable[[], None]
    """Raises Unreachable where another run may have taken the location; to be called before each publication."""
    limits: Limits
