"""Every touch of a file below the history's location: local paths through the operating system, buckets as the adapter
does it, all others through Hadoop's FileSystem, so that s3a://, hdfs:// and whatever Spark is configured for work by
configuration alone.

Paths given to a `Files` are relative to the location, with `/` between their parts.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

FOOTER_BYTES = 262_144
"""Enough for the footer of any file of the history; what lies before is never asked for."""


@dataclass(frozen=True, slots=True)
class File:
    path: str
    size: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


class Files(Protocol):
    """Hidden names, those that begin with `.` or `_`, are listed by nobody but `hidden`.

    What a run stages lies in a folder of the location whose name begins with `.`, and is nobody else's.
    """

    @property
    def at_once(self) -> int:
        """How many of its files are worth reading side by side."""

    @property
    def direct(self) -> DirectFiles | None:
        """The same, where this process reads and writes its tables without Spark."""

    def exists(self, path: str = "") -> bool: ...
    def listed(self, table: str, depth: int) -> list[File]:
        """The files `depth` folders below the table, none where there is no table."""

    def hidden(self, path: str = "") -> list[str]:
        """Names in a folder that begin with `.` or `_`."""

    def read(self, path: str) -> str | None:
        """The text; None: there is no such file."""

    def write(self, path: str, text: str) -> None:
        """Replaces the file."""

    def swap(self, staged: str, target: str, aside: str) -> None:
        """The staged folder takes the place of the target, if there is one; where nothing was staged, the target goes.
        `aside`: a staged place where the old one may lie meanwhile."""

    def replace(self, staged: str, target: str) -> None:
        """The same for a single file."""

    def delete(self, path: str) -> None:
        """Whatever is there, if anything is."""

    def opened(self, file: File) -> BinaryIO:
        """For its footer."""

    def local_path(self, file: File) -> Path | None:
        """Where this process can open it by itself; None: nowhere."""

    def uri(self, path: str = "") -> str:
        """What Spark reads and writes."""

    def shown(self, path: str = "") -> str:
        """What a person is told of."""


class DirectFiles(Files, Protocol):
    """Without Spark."""

    def source(self, path: str) -> str | pa.NativeFile:
        """What pyarrow reads the whole file from."""

    def created(self, path: str) -> contextlib.AbstractContextManager[str | pa.NativeFile]:
        """What pyarrow writes a staged file to."""


Item = TypeVar("Item")
Result = TypeVar("Result")


def each_of(files: Files, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """What the work, which reads files, gives for each of the items, in their order."""
    if files.at_once == 1 or len(items) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(files.at_once, len(items))) as pool:
        return list(pool.map(work, items))


def is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def is_below_hidden(path: str) -> bool:
    return any(map(is_hidden, path.split("/")))


def pattern_sign(name: str) -> str | None:
    """The first sign by which Hadoop, and so Spark's reader, chooses among several files; a backslash hides others."""
    return next((sign for sign in name if sign in "[]{}*?\\"), None)


def _renamed(files: LocalFiles | HadoopFiles, staged: str, target: str, aside: str) -> None:
    """A folder is renamed at once, and only to a name that is free."""
    if files.exists(target):
        files.move(target, aside)
    if files.exists(staged):
        files.move(staged, target)
    files.delete(aside)


@dataclass(frozen=True, slots=True)
class LocalFiles:
    root: Path

    @property
    def at_once(self) -> int:
        return 1

    @property
    def direct(self) -> DirectFiles | None:
        return self

    def exists(self, path: str = "") -> bool:
        return (self.root / path).exists()

    def listed(self, table: str, depth: int) -> list[File]:
        return list(self._below(self.root / table, table, depth))

    def _below(self, folder: Path, path: str, depth: int) -> Iterable[File]:
        if not folder.is_dir():
            return
        with os.scandir(folder) as entries:
            found = sorted((entry for entry in entries if not is_hidden(entry.name)), key=lambda entry: entry.name)
        for entry in found:
            if depth and entry.is_dir():
                yield from self._below(Path(entry.path), f"{path}/{entry.name}", depth - 1)
            elif not depth and entry.is_file():
                yield File(f"{path}/{entry.name}", entry.stat().st_size)

    def hidden(self, path: str = "") -> list[str]:
        folder = self.root / path
        return sorted(each.name for each in folder.iterdir() if is_hidden(each.name)) if folder.is_dir() else []

    def read(self, path: str) -> str | None:
        try:
            return (self.root / path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        written = target.with_name(f".{target.name}.new")
        written.write_text(text, encoding="utf-8")
        written.replace(target)

    def move(self, old: str, new: str) -> None:
        """Makes the folders above `new`; there is no `new` yet."""
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).rename(self.root / new)

    def swap(self, staged: str, target: str, aside: str) -> None:
        _renamed(self, staged, target, aside)

    def replace(self, staged: str, target: str) -> None:
        (self.root / target).parent.mkdir(parents=True, exist_ok=True)
        (self.root / staged).replace(self.root / target)

    def delete(self, path: str) -> None:
        target = self.root / path
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def opened(self, file: File) -> BinaryIO:
        return (self.root / file.path).open("rb")

    def local_path(self, file: File) -> Path | None:
        return self.root / file.path

    def uri(self, path: str = "") -> str:
        return f"file://{self.root / path}"  # Hadoop takes a path as it is written, without escapes

    def shown(self, path: str = "") -> str:
        return str(self.root / path)

    def source(self, path: str) -> str:
        return str(self.root / path)

    @contextlib.contextmanager
    def created(self, path: str) -> Iterator[str]:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        yield str(target)


class HadoopFiles:
    """The same through the JVM."""

    def __init__(self, location: str, session: SparkSession) -> None:
        self.location = location.rstrip("/")
        self._jvm: Any = session._jvm  # pyspark shows the JVM under no other name
        self._configuration: Any = session._jsc.hadoopConfiguration()
        self._system: Any = self._path().getFileSystem(self._configuration)

    @property
    def at_once(self) -> int:
        return 1

    @property
    def direct(self) -> DirectFiles | None:
        return None

    def exists(self, path: str = "") -> bool:
        return bool(self._system.exists(self._path(path)))

    def listed(self, table: str, depth: int) -> list[File]:
        found = self._system.globStatus(self._path("/".join([table, *["*"] * (depth + 1)]))) or ()
        files = (File(self._relative(status), status.getLen()) for status in found if status.isFile())
        return sorted(
            (file for file in files if not is_below_hidden(file.path.removeprefix(table))), key=lambda file: file.path
        )

    def hidden(self, path: str = "") -> list[str]:
        found = self._system.globStatus(self._path(f"{path}/*" if path else "*")) or ()
        return sorted(filter(is_hidden, (status.getPath().getName() for status in found)))

    def read(self, path: str) -> str | None:
        if not self.exists(path):
            return None
        stream = self._system.open(self._path(path))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        stream = self._system.create(self._path(path), True)
        stream.write(bytearray(text.encode()))
        stream.close()

    def move(self, old: str, new: str) -> None:
        """As LocalFiles.move."""
        self._system.mkdirs(self._path(new).getParent())
        if not self._system.rename(self._path(old), self._path(new)):
            raise OSError(f"{self.location}/{old} could not be renamed to {new}")

    def swap(self, staged: str, target: str, aside: str) -> None:
        _renamed(self, staged, target, aside)

    def replace(self, staged: str, target: str) -> None:
        self.delete(target)
        self.move(staged, target)

    def delete(self, path: str) -> None:
        self._system.delete(self._path(path), True)

    def opened(self, file: File) -> BinaryIO:
        start = max(0, file.size - FOOTER_BYTES)
        stream = self._system.open(self._path(file.path))
        try:
            stream.seek(start)
            tail = bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()
        return io.BufferedReader(Tail(start, tail))

    def local_path(self, file: File) -> Path | None:
        del file
        return None

    def uri(self, path: str = "") -> str:
        return f"{self.location}/{path}" if path else self.location

    def shown(self, path: str = "") -> str:
        return self.uri(path)

    def _path(self, path: str = "") -> Any:  # noqa: ANN401 -- Java's
        return self._jvm.org.apache.hadoop.fs.Path(self.uri(path))

    def _relative(self, status: Any) -> str:  # noqa: ANN401 -- Java's
        root = self._path().toUri().getPath().rstrip("/")
        return str(status.getPath().toUri().getPath()).removeprefix(f"{root}/")


class Tail(io.RawIOBase):
    """A file of which only the end was read: zeros stand for the rest."""

    def __init__(self, start: int, tail: bytes) -> None:
        self._start, self._tail, self._at = start, tail, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        size = self._start + len(self._tail)
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 -- any writable buffer
        if self._at < self._start:
            raise OSError("the footer is larger than what was read of the file")
        part = self._tail[self._at - self._start :][: len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)
