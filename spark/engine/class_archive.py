"""The archive of loaded classes (AppCDS), which shortens the start of a JVM by a third.

It lies below the user's cache folder, or where KAFKA_LAG_REPORT_CDS says. Writing it takes longer than a short run. So
a run that finds none, or whose JVM refuses the one there (it was made from other jars, or is damaged), does without. It
leaves a process of low priority behind, which writes a new one (`spark.engine.write_archive`). That process holds a
lock of the kernel: no other one writes at the same time, and the next one may begin as soon as it has ended or died.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pyspark

from adapter.location import home

LOCK = ".lock"
"""In the folder of the archives: one is written at a time."""
READS_AND_WRITES = 0o666
UNFINISHED = ".*.jsa.*"
WAITING, AT_ONCE = fcntl.LOCK_EX, fcntl.LOCK_EX | fcntl.LOCK_NB


@dataclass(frozen=True, slots=True)
class ClassArchive:
    path: Path

    @property
    def unfinished(self) -> Path:
        """Where this process writes it until it is whole."""
        return self.path.with_name(f".{self.path.name}.{os.getpid()}")

    @property
    def written_at(self) -> int:
        """In nanoseconds since the epoch; 0: there is none."""
        return self.path.stat().st_mtime_ns if self.path.exists() else 0

    @property
    def options(self) -> tuple[str, ...]:
        """Of a JVM that is to use it."""
        return (f"-XX:SharedArchiveFile={self.path}",) if self.path.exists() else ()

    def is_used_by(self, pid: int) -> bool:
        """Whether this JVM has mapped it, which a JVM that refuses an archive has not, silently. True where the system
        does not say."""
        maps = Path("/proc", str(pid), "maps")
        with contextlib.suppress(OSError):
            return str(self.path) in maps.read_text()
        return self.path.exists()

    def write_later(self) -> None:
        """Starts a process that writes it, unless another one is writing or the folder belongs to another user."""
        try:
            with locked(self.path.parent, AT_ONCE):
                pass
        except OSError:
            return
        process = subprocess.Popen(
            [sys.executable, "-m", "spark.engine.write_archive"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        process.returncode = 0  # nobody waits for it, which Python would warn of


def archive_here() -> ClassArchive | None:
    """The one for this Java, this Spark and its configuration; None where no Java or no place for it is found."""
    java = _java()
    if java is None:
        return None
    configuration = os.environ.get("SPARK_CONF_DIR", "")
    identity = f"{java} {java.stat().st_mtime_ns} {pyspark.__version__} {pyspark.__file__} {configuration}"
    folder = os.environ.get("KAFKA_LAG_REPORT_CDS") or Path(
        os.environ.get("XDG_CACHE_HOME") or home() / ".cache", "kafka-lag-adapter", "classes"
    )
    path = Path(folder, f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _delete_unfinished(path.parent)
    except OSError:
        return None
    return ClassArchive(path)


@contextlib.contextmanager
def locked(folder: Path, operation: int = WAITING) -> Iterator[None]:
    """Until the end of the block, no other process writes an archive into the folder. The kernel releases the lock of
    a process that is killed. Raises BlockingIOError instead of waiting for a process that is writing if `operation` is
    AT_ONCE, and OSError if the folder cannot be written."""
    with _opened_lock(folder) as lock:
        fcntl.flock(lock, operation)
        yield


def _opened_lock(folder: Path) -> TextIO:
    """Opens or creates the lock. Whatever the umask of the user who creates it, all who may write into the folder may
    take it."""
    path = folder / LOCK
    try:
        # Never what others have put there: its mode is about to change, and a link may lead to any file.
        lock = path.open("x")
    except FileExistsError:
        # In a sticky folder, the kernel may refuse a mode that could create it for another user's file.
        return path.open("r+")
    with contextlib.suppress(PermissionError):  # some file systems keep no modes
        os.fchmod(lock.fileno(), folder.stat().st_mode & READS_AND_WRITES)
    return lock


def _delete_unfinished(folder: Path) -> None:
    """A process that is killed while it writes an archive leaves 166 MB, or its JVM does so a moment later."""
    if not any(folder.glob(UNFINISHED)):
        return
    with contextlib.suppress(OSError), locked(folder, AT_ONCE):  # a process is writing, or they are another user's
        for unfinished in folder.glob(UNFINISHED):
            unfinished.unlink(missing_ok=True)


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else shutil.which("java")
    return Path(java).resolve() if java and Path(java).exists() else None
