"""A location in a bucket, opened as the adapter opens it: with the same environment, and without Spark.

Nothing in a store can be renamed. So what a run stages lies in a temporary folder of this machine until it is put into
its place, an object at a time; and where Spark is needed after all it reads copies that lie there, too.
"""

from __future__ import annotations

import contextlib
import errno
import io
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from pyarrow import fs

from adapter.buckets import opened
from adapter.history_trouble import HistoryUnwritable, translated
from spark.errors import Unreachable, Unusable
from spark.storage.local import LocalFiles
from spark.storage.protocol import FOOTER_BYTES, DirectFiles, File, is_below_hidden, is_hidden
from spark.storage.tails import Tail

AT_ONCE = 24
"""Objects that are read side by side: a small one is hardly more than its way there and back."""
ATTEMPTS = 2
"""So that a run which is to end while a store is silent ends within the 30 s that a pod has."""
COPIES = "copies"
RECORD = "_inputs.json"
"""Says that all of a folder is there, so it comes last."""
KINDS = {
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "yaml": "text/plain; charset=utf-8",
    "json": "application/json",
}
"""By the ends of names: a browser shows such objects instead of saving them."""
REFUSALS = {"not_found", "denied"}
"""What trying again does not help against."""


class BucketFiles:
    """Raises Unusable where the store refuses, Unreachable for all other trouble with it; both name the location."""

    def __init__(self, scheme: str, root: str) -> None:
        self._root, self._location = root, f"{scheme}://{root}"
        with self._told():
            self._store = opened(scheme, ATTEMPTS)
        folder = tempfile.mkdtemp(prefix="kafka-lag-report-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._here = LocalFiles(Path(folder))

    @property
    def at_once(self) -> int:
        return AT_ONCE

    @property
    def direct(self) -> DirectFiles | None:
        return self

    def exists(self, path: str = "") -> bool:
        if _is_staged(path):
            return self._here.exists(path)
        with self._told():
            return self._store.get_file_info(self._at(path)).type is not fs.FileType.NotFound

    def listed(self, table: str, depth: int) -> list[File]:
        if _is_staged(table):
            return self._here.listed(table, depth)
        there = [(file, file.path.removeprefix(f"{table}/")) for file in self._below(table)]
        found = [file for file, path in there if path.count("/") == depth and not is_below_hidden(path)]
        return sorted(found, key=lambda file: file.path.split("/"))

    def hidden(self, path: str = "") -> list[str]:
        with self._told():
            found = self._store.get_file_info(fs.FileSelector(self._at(path), allow_not_found=True))
        return sorted(info.base_name for info in found if is_hidden(info.base_name))

    def read(self, path: str) -> str | None:
        if _is_staged(path):
            return self._here.read(path)
        try:
            return bytes(self._content(path)).decode()
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        if _is_staged(path):
            self._here.write(path, text)
        else:
            self._put(path, pa.py_buffer(text.encode()))

    def swap(self, staged: str, target: str, aside: str) -> None:
        """A reader meets an old object or a new one. What has another name than all new ones is deleted first: for a
        moment rows may be missing, none is there twice."""
        del aside
        new, there = self._names_in(staged), self._below(target)
        if there and not new:
            self._delete(target, self._store.delete_dir)
        for old in there if new else []:
            if old.path.removeprefix(f"{target}/") not in new:
                self._delete(old.path, self._store.delete_file)
        for name in new:
            self._put_staged(f"{staged}/{name}", f"{target}/{name}")
        self._here.delete(staged)
        self._here.delete(COPIES)

    def replace(self, staged: str, target: str) -> None:
        self._put_staged(staged, target)
        self._here.delete(staged)

    def delete(self, path: str) -> None:
        if self._here.exists(path):
            self._here.delete(path)
            return
        with self._told():
            found = self._store.get_file_info(self._at(path)).type
        if found is fs.FileType.Directory:
            self._delete(path, self._store.delete_dir)
        elif found is fs.FileType.File:
            self._delete(path, self._store.delete_file)

    def opened(self, file: File) -> BinaryIO:
        start = max(0, file.size - FOOTER_BYTES)
        return io.BufferedReader(Tail(start, self._content(file.path, start).to_pybytes()))

    def local_path(self, file: File) -> Path | None:
        return self._copied(file.path)

    def uri(self, path: str = "") -> str:
        """Of what this process staged, or of a copy; Spark may read it until the next table is put into its place."""
        if _is_staged(path):
            return self._here.uri(path)
        with self._told():
            is_file = self._store.get_file_info(self._at(path)).is_file
        for each in [path] if is_file else [file.path for file in self._below(path)]:
            self._copied(each)
        return self._here.uri(f"{COPIES}/{path}")

    def shown(self, path: str = "") -> str:
        return f"{self._location}/{path}" if path else self._location

    def source(self, path: str) -> str | pa.NativeFile:
        return self._here.source(path) if _is_staged(path) else pa.BufferReader(self._content(path))

    def created(self, path: str) -> contextlib.AbstractContextManager[str | pa.NativeFile]:
        return self._here.created(path)

    def _below(self, folder: str) -> list[File]:
        """Hidden ones, too: a thousand with each request."""
        with self._told():
            found = self._store.get_file_info(fs.FileSelector(self._at(folder), allow_not_found=True, recursive=True))
        return [File(info.path.removeprefix(f"{self._root}/"), info.size) for info in found if info.is_file]

    def _content(self, path: str, start: int = 0) -> pa.Buffer:
        """From there to the end. Raises FileNotFoundError where retention was faster."""
        with self._told(), contextlib.suppress(FileNotFoundError), self._store.open_input_file(self._at(path)) as file:
            file.seek(start)
            return file.read_buffer()
        raise FileNotFoundError(errno.ENOENT, "is not there any more", self.shown(path))

    def _put(self, path: str, content: pa.Buffer) -> None:
        kind = KINDS.get(path.rpartition(".")[2])
        metadata = {"Content-Type": kind} if kind else None
        with self._told(), self._store.open_output_stream(self._at(path), metadata=metadata) as stream:
            stream.write(content)

    def _put_staged(self, staged: str, target: str) -> None:
        with pa.memory_map(str(self._here.root / staged)) as file:
            self._put(target, file.read_buffer())

    def _names_in(self, staged: str) -> list[str]:
        """In the order in which they are put into their place."""
        folder = self._here.root / staged
        names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        return sorted(names, key=lambda name: (name == RECORD, is_hidden(name), name))

    def _delete(self, path: str, by: Callable[[str], None]) -> None:
        with self._told(), contextlib.suppress(FileNotFoundError):
            by(self._at(path))

    def _copied(self, path: str) -> Path:
        copy = self._here.root / COPIES / path
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(self._content(path))
        return copy

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Never an OSError: that is what a file is skipped for that somebody tore."""
        try:
            with translated(self._location):
                yield
        except HistoryUnwritable as error:
            raise (Unusable if error.cause in REFUSALS else Unreachable)(str(error)) from error


def _is_staged(path: str) -> bool:
    return path.startswith(".")
