"""Tables are written to a hidden folder and put in their place by renaming: whoever reads sees a partition as it was or
as it is, and a run that was killed leaves nothing but a hidden folder, which a later run clears away."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from spark.storage.protocol import Files

PREFIX = ".compacting-"
STAMP = "%Y%m%dT%H%M%S"
ABANDONED = timedelta(days=1)
"""After which a hidden folder belongs to nobody."""


@dataclass(frozen=True, slots=True)
class Staging:
    """A run's own hidden folder below the location."""

    files: Files
    folder: str

    def path(self, table: str) -> str:
        return f"{self.folder}/{table}"


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


def publish_folder(staging: Staging, staged: str, target: str) -> None:
    """The staged folder takes the place of the target. Both are paths below the location."""
    staging.files.publish(staged, target)


def publish_file(staging: Staging, staged: str, target: str) -> None:
    staging.files.replace(staged, target)
