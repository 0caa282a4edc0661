"""Every touch of a file below the history's location, as one protocol: `local_files` goes through the operating system,
`bucket_files` as the adapter does it, `hadoop_files` through Hadoop's FileSystem.

Paths given to a `Files` are relative to the location, with `/` between their parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

import pyarrow as pa

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


class Renaming(Files, Protocol):
    """Where a folder is renamed at once."""

    def move(self, old: str, new: str) -> None:
        """Makes the folders above `new`; there is no `new` yet."""


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


def renamed(files: Renaming, staged: str, target: str, aside: str) -> None:
    """A folder is renamed at once, and only to a name that is free."""
    if files.exists(target):
        files.move(target, aside)
    if files.exists(staged):
        files.move(staged, target)
    files.delete(aside)
