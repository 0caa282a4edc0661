"""A run stages its tables in a hidden folder of its own. A run that was killed leaves nothing else, and a later run
deletes it."""

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from spark.storage.protocol import Files

PREFIX = ".compacting-"
STAMP = "%Y%m%dT%H%M%S"
ABANDONED = timedelta(days=1)
"""After which a hidden folder belongs to nobody."""


@contextlib.contextmanager
def staging_of(files: Files, now: datetime) -> Iterator[str]:
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
