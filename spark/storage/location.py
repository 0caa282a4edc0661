"""What `--history` and `--output` name: a path, or a prefix in a bucket."""

import queue
import threading
from collections.abc import Callable
from pathlib import Path

from adapter.location import bucket_at
from spark.errors import ReportError, Unusable
from spark.storage.local import LocalFiles
from spark.storage.protocol import HistoryFiles

PATIENCE_SECONDS = 15.0
"""Some providers' libraries look for credentials for minutes."""


def reached(location: str) -> HistoryFiles:
    """As `files_at`, for a location that must be there. Raises Unusable where it is not, is no folder, refuses, or does
    not answer."""
    files = files_at(location)
    if not answer_of(files):
        raise Unusable(f"{files.shown()} does not exist")
    return files


def answer_of(files: HistoryFiles) -> bool:
    """Whether the location is there. Raises Unusable."""
    answers: queue.SimpleQueue[bool | Exception] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(_attempted(files.probe)), name="probe", daemon=True).start()
    try:
        answer = answers.get(timeout=PATIENCE_SECONDS)
    except queue.Empty as error:
        raise Unusable(f"{files.shown()} does not answer within {PATIENCE_SECONDS:.0f} s") from error
    if isinstance(answer, ReportError):
        raise Unusable(str(answer)) from answer
    if isinstance(answer, Exception):
        raise answer
    return answer


def _attempted(probe: Callable[[], bool]) -> bool | Exception:
    try:
        return probe()
    except Exception as error:  # noqa: BLE001 -- handed to the thread that waits for it
        return error


def files_at(location: str) -> HistoryFiles:
    """Touches nothing yet. Raises Unusable for what is neither a path nor a bucket."""
    try:
        bucket = bucket_at(location)
    except ValueError as error:
        raise Unusable(str(error)) from error
    if bucket is None:
        return LocalFiles(Path(location).absolute())
    from spark.storage.bucket import BucketFiles  # noqa: PLC0415 -- the providers' libraries are slow to load

    return BucketFiles(bucket)
