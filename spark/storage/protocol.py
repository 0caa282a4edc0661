"""Everything that is done with files below the history's location, as one protocol: `local` implements it for a path,
`bucket` for S3, Google Cloud Storage and Azure.

A `HistoryFiles` carries a location and nothing else. It can be pickled, so driver and executors use the same one, and
each process finds its own credentials in its environment. Paths are relative to the location, with `/` between their
parts.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import pyarrow as pa

from spark.errors import Replaced

REPLACEMENTS = 5
"""Times that a file is read again because it was replaced meanwhile."""


@dataclass(frozen=True, slots=True)
class File:
    path: str
    size: int
    version: str = field(default="", compare=False)
    """Another one whenever the file is replaced; empty: not asked for."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A file, with a hidden name, that says what is published beside it."""

    name: str
    text: Callable[[Sequence[File]], str]
    """From the files beside it, with their versions. What it raises ends the publication without a manifest."""


class HistoryFiles(Protocol):
    """Names that begin with `.` or `_` are hidden: only `hidden` lists them.

    A run stages its tables below a folder of the location whose name begins with `.`; no other run writes there. What
    any process of the run, on any machine, has staged there can be read and published by any other.
    """

    @property
    def at_once(self) -> int:
        """How many files are worth reading side by side."""

    def probe(self) -> bool:
        """Looks at the location once, without further attempts, and returns whether it is there. Raises Unusable where
        it is not a folder or cannot be read, Unavailable where its store does not answer."""

    def listed(self, table: str, depth: int) -> list[File]:
        """The files `depth` folders below the table, in order; none where there is no table."""

    def versioned(self, table: str, depth: int) -> list[File]:
        """As `listed`, with their versions. Needs obstore where the location is a bucket."""

    def hidden(self) -> list[str]:
        """Names in the location's folder that begin with `.` or `_`."""

    def read(self, path: str) -> str | None:
        """The text, or None where there is no such file."""

    def write(self, path: str, text: str) -> None:
        """Creates the file or replaces it: a reader sees the old text or the new one."""

    def footer_source(self, file: File) -> str | pa.NativeFile:
        """What pyarrow reads the file's metadata from."""

    def reading(self, path: str) -> contextlib.AbstractContextManager[str | pa.NativeFile]:
        """What pyarrow reads the file from, or parts of it. Raises Replaced at the end where the parts need not belong
        together, FileNotFoundError where the file is gone, Unusable or Unavailable for trouble with a store."""

    def created(self, path: str) -> contextlib.AbstractContextManager[str | pa.NativeFile]:
        """What pyarrow writes a staged file to; the file is there when the block ends without an error."""

    def publish(self, staged: Sequence[str], target: str, manifest: "Manifest") -> None:
        """Puts staged files, of these paths, as one folder in the place of the target, which may not exist yet, and the
        manifest with them. No two have the same name, and no others lie in the folder of the first one.

        A reader that lists and reads meanwhile finds the target at any time, each of its files once. On this machine it
        finds one folder or the other, as the two are exchanged at once. In a bucket, and on file systems that cannot do
        that, files are replaced one after the other, those with hidden names last, and files without a successor are
        deleted first. The manifest is written last, from the versions of what has been published.
        """

    def replace(self, staged: str, target: str) -> None:
        """Puts a staged file in the place of the target, which may not exist yet."""

    def delete(self, path: str) -> None:
        """Deletes a file, or a folder and everything in it; does nothing where there is neither."""

    def reserved(self) -> contextlib.AbstractContextManager[Callable[[], None]]:
        """No other run, on any machine that shares the location, is inside meanwhile. Raises Unavailable where one is.

        What it yields raises Unavailable where the reservation has been lost; call it before each publication.
        """

    def shown(self, path: str = "") -> str:
        """The path as messages show it."""


Item = TypeVar("Item")
Result = TypeVar("Result")


def each_of(files: HistoryFiles, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Returns the results of the work, which reads files, for each of the items, in their order."""
    if files.at_once == 1 or len(items) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(files.at_once, len(items))) as pool:
        return list(pool.map(work, items))


def read_again(read: Callable[[], Result]) -> Result:
    """Repeats what raises Replaced, which is Unavailable if it does so each time."""
    for _ in range(REPLACEMENTS - 1):
        with contextlib.suppress(Replaced):
            return read()
    return read()


def is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def is_below_hidden(path: str) -> bool:
    return any(map(is_hidden, path.split("/")))


def in_order(names: Iterable[str]) -> list[str]:
    """The order in which a folder's files are published: last those that say what it was made from."""
    return sorted(names, key=lambda name: (is_hidden(name), name))
