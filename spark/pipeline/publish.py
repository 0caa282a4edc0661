"""Tables are written to a hidden folder and put in their place by renaming: whoever reads sees a partition as it was or
as it is, and a run that was killed leaves nothing but a hidden folder, which a later run clears away."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame

from spark.storage.protocol import Files

PREFIX = ".compacting-"
STAMP = "%Y%m%dT%H%M%S"
ABANDONED = timedelta(days=1)
"""After which a hidden folder belongs to nobody."""

# Numbers that seldom repeat: their differences are short, a dictionary of them would not be.
PLAIN_NUMBERS = ("committed", "log_end", "log_start", "produced", "consumed", "lag")


@dataclass(frozen=True, slots=True)
class Staging:
    """A run's own hidden folder below the location."""

    files: Files
    folder: str

    def path(self, table: str) -> str:
        return f"{self.folder}/{table}"

    def uri(self, table: str) -> str:
        return self.files.uri(self.path(table))


@contextlib.contextmanager
def staging_of(files: Files, now: datetime) -> Iterator[Staging]:
    """A new one, gone at the end. Clears away what was abandoned by others."""
    for name in files.hidden():
        if name.startswith(PREFIX) and _is_abandoned(name, now):
            files.delete(name)
    staging = Staging(files, f"{PREFIX}{now:{STAMP}}-{os.getpid()}")
    try:
        yield staging
    finally:
        files.delete(staging.folder)


def _is_abandoned(name: str, now: datetime) -> bool:
    try:
        began = datetime.strptime(name.removeprefix(PREFIX).partition("-")[0], STAMP).replace(tzinfo=UTC)
    except ValueError:
        return False
    return now - began > ABANDONED


def stage(rows: DataFrame, staging: Staging, table: str, by: Sequence[str] = ()) -> None:
    """Writes the rows into the run's folder; `by` become folders."""
    writer = rows.write.mode("overwrite").option("compression", "zstd").option("parquet.writer.version", "PARQUET_2_0")
    for name in PLAIN_NUMBERS:
        writer = writer.option(f"parquet.enable.dictionary#{name}", "false")
    (writer.partitionBy(*by) if by else writer).parquet(staging.uri(table))
    staging.files.adopt(staging.path(table))


def swap(staging: Staging, staged: str, target: str) -> None:
    """The staged folder takes the place of the target; where nothing was staged, the target goes."""
    staging.files.publish(staging.path(staged), target)


def swap_file(staging: Staging, staged: str, target: str) -> None:
    """The only file of the staged folder takes the place of the target."""
    found = staging.files.listed(staging.path(staged), 0)
    if len(found) == 1:
        staging.files.replace(found[0].path, target)
    else:
        staging.files.delete(target)
