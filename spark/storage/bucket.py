"""A location in a bucket, opened as the adapter opens it: with the same environment, and without Hadoop.

Nothing in a bucket can be renamed. What a run stages are objects, too, which the store copies to their place.
"""

import contextlib
import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import PurePosixPath

import pyarrow as pa
from pyarrow import fs

from adapter.history.buckets import opened
from adapter.history.errors import HistoryUnwritable, translated
from adapter.location import Bucket
from spark.errors import Replaced, Unavailable, Unusable, is_of_system
from spark.storage.protocol import File, Manifest, each_of, is_below_hidden, is_hidden, read_again

AT_ONCE = 24
"""Objects that are read side by side: a small one takes hardly longer than the way there and back."""
CONNECTIONS = 192
"""Of a run that publishes several hours at once."""
ATTEMPTS = 2
"""So that a run which is to end while a store is silent ends within the 30 s that a pod has."""
KINDS = {
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "yaml": "text/plain; charset=utf-8",
    "json": "application/json",
}
"""By the ends of names: a browser shows such objects instead of saving them."""
WHOLE_BYTES = 262_144
"""Of a smaller object all is read at once: another request takes longer than what is not needed."""
FOOTER_BYTES = 16_384
"""Enough for the footer of most files. Of others the rest is read as well, up to MOST_FOOTER_BYTES."""
MOST_FOOTER_BYTES = 16 << 20
FOOTER_LENGTH = slice(-8, -4)
"""Of a Parquet file."""
PROBE_SECONDS = 5.0
"""A store that is silent for so long when a run begins is given up."""
REFUSALS = {"not_found", "denied"}
"""Causes that another attempt does not help against."""


class BucketFiles:
    """Raises Unusable where the store refuses, Unavailable for all other trouble with it; both name the location."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def __reduce__(self) -> "tuple[type[BucketFiles], tuple[Bucket]]":
        return BucketFiles, (self._bucket,)

    @property
    def at_once(self) -> int:
        return AT_ONCE

    def probe(self) -> bool:
        with self._translated():
            type_ = opened(self._bucket, request_seconds=PROBE_SECONDS).get_file_info(self._bucket.root).type
        if type_ is fs.FileType.File:
            raise Unusable(f"{self._bucket} is an object, not a prefix")
        return type_ is not fs.FileType.NotFound

    def listed(self, table: str, depth: int) -> list[File]:
        below = [(file, file.path.removeprefix(f"{table}/")) for file in self._below(table)]
        files = [file for file, path in below if path.count("/") == depth and not is_below_hidden(path)]
        return sorted(files, key=lambda file: file.path.split("/"))

    def versioned(self, table: str, depth: int) -> list[File]:
        from spark.storage.conditional import conditional_store, versions_below  # noqa: PLC0415 -- as in `reserved`

        versions = versions_below(conditional_store(self._bucket, self._store), table, self.shown())
        return [replace(file, version=versions.get(file.path, "")) for file in self.listed(table, depth)]

    def hidden(self) -> list[str]:
        with self._translated():
            entries = self._store.get_file_info(fs.FileSelector(self._at(""), allow_not_found=True))
        return sorted(info.base_name for info in entries if is_hidden(info.base_name))

    def read(self, path: str) -> str | None:
        try:
            return bytes(read_again(lambda: self._bytes_from(path, 0))).decode()
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        self._put(path, pa.py_buffer(text.encode()))

    def footer_source(self, file: File) -> pa.NativeFile:
        """The file's end: pyarrow takes it for a whole file, as its metadata are."""
        end = read_again(lambda: self._bytes_from(file.path, max(0, file.size - FOOTER_BYTES)))
        length = int.from_bytes(bytes(end)[FOOTER_LENGTH], "little") + 8
        if len(end) < length <= min(file.size, MOST_FOOTER_BYTES):
            end = read_again(lambda: self._bytes_from(file.path, file.size - length))
        return pa.BufferReader(end)

    @contextlib.contextmanager
    def reading(self, path: str) -> Iterator[pa.NativeFile]:
        """Its ranges are requests of their own."""
        with self._translated(path):
            object_ = self._store.open_input_file(self._at(path))
        with object_:
            try:
                is_small = object_.size() <= WHOLE_BYTES
                yield pa.BufferReader(object_.read_buffer()) if is_small else object_
            except (OSError, pa.ArrowException) as error:
                self._refuse_replaced(path, object_)
                if not is_of_system(error):
                    raise
                with self._translated(path):
                    raise
            self._refuse_replaced(path, object_)

    @contextlib.contextmanager
    def created(self, path: str) -> Iterator[pa.NativeFile]:
        """The object is put as a whole, so that a process that ends meanwhile leaves none."""
        with pa.BufferOutputStream() as stream:
            yield stream
            self._put(path, stream.getvalue())

    def publish(self, staged: Sequence[str], target: str, manifest: Manifest) -> None:
        """The store copies each object: one PUT, and a reader finds the old one or the new one."""
        new = {path.rpartition("/")[2]: path for path in staged}
        for old in sorted(set(self._names_in(target)) - {*new, manifest.name}):
            self._delete(f"{target}/{old}", self._store.delete_file)
        each_of(self, lambda name: self._copy(new[name], f"{target}/{name}"), sorted(new))
        self.write(f"{target}/{manifest.name}", manifest.text(self.versioned(target, 0)))

    def replace(self, staged: str, target: str) -> None:
        self._copy(staged, target)

    def delete(self, path: str) -> None:
        with self._translated():
            type_ = self._store.get_file_info(self._at(path)).type
        if type_ is fs.FileType.Directory:
            for folder in self._folders_from_the_deepest(path):
                self._delete(folder, self._store.delete_dir)
        elif type_ is fs.FileType.File:
            self._delete(path, self._store.delete_file)

    @contextlib.contextmanager
    def reserved(self) -> Iterator[Callable[[], None]]:
        from spark.storage.conditional import conditional_store  # noqa: PLC0415 -- executors need no obstore
        from spark.storage.lease import leased  # noqa: PLC0415 -- as above

        # pyarrow opens a connection for each thread that it may have, and at least 25.
        pa.set_io_thread_count(max(CONNECTIONS, pa.io_thread_count()))
        store = conditional_store(self._bucket, self._store)
        with leased(store, self.shown()) as check:
            yield check

    def shown(self, path: str = "") -> str:
        return f"{self._bucket}/{path}" if path else str(self._bucket)

    @cached_property
    def _store(self) -> fs.FileSystem:
        with self._translated():
            return opened(self._bucket, ATTEMPTS)

    def _below(self, folder: str) -> list[File]:
        """All objects, hidden ones too; each request lists a thousand."""
        with self._translated():
            entries = self._store.get_file_info(fs.FileSelector(self._at(folder), allow_not_found=True, recursive=True))
        return [File(info.path.removeprefix(f"{self._bucket.root}/"), info.size) for info in entries if info.is_file]

    def _folders_from_the_deepest(self, path: str) -> list[str]:
        """A store that keeps prefixes as folders of a disk deletes none before its content."""
        parents = (parent for file in self._below(path) for parent in PurePosixPath(file.path).parents)
        return sorted({path, *(str(each) for each in parents if each.is_relative_to(path))}, reverse=True)

    def _names_in(self, folder: str) -> list[str]:
        return [file.path.removeprefix(f"{folder}/") for file in self._below(folder)]

    def _bytes_from(self, path: str, start: int) -> pa.Buffer:
        """The object from there to its end. Raises FileNotFoundError where it has been deleted, and Replaced."""
        with self._translated(path):
            object_ = self._store.open_input_file(self._at(path))
        with object_:
            try:
                object_.seek(start)
                content = object_.read_buffer()
            except OSError:
                self._refuse_replaced(path, object_)
                with self._translated(path):
                    raise
            self._refuse_replaced(path, object_)
        return content

    def _refuse_replaced(self, path: str, object_: pa.NativeFile) -> None:
        """pyarrow makes no request depend on an ETag, so the object's is looked at again when all is read."""
        with self._translated(path), self._store.open_input_file(self._at(path)) as now:
            if _version_of(now) != _version_of(object_):
                raise Replaced(f"{self.shown(path)} was replaced each time that it was read")

    def _put(self, path: str, content: pa.Buffer) -> None:
        kind = KINDS.get(path.rpartition(".")[2])
        metadata = {"Content-Type": kind} if kind else None
        with self._translated(), self._store.open_output_stream(self._at(path), metadata=metadata) as stream:
            stream.write(content)

    def _copy(self, staged: str, target: str) -> None:
        """Within the store: one PUT without the content."""
        with self._translated(staged):
            self._store.copy_file(self._at(staged), self._at(target))

    def _delete(self, path: str, by: Callable[[str], None]) -> None:
        with contextlib.suppress(FileNotFoundError), self._translated(path):
            by(self._at(path))

    def _at(self, path: str) -> str:
        return f"{self._bucket.root}/{path}" if path else self._bucket.root

    @contextlib.contextmanager
    def _translated(self, path: str = "") -> Iterator[None]:
        """The only OSError is that the object is gone: for another one a file would be taken for a torn one."""
        try:
            with translated(self._bucket):
                yield
        except HistoryUnwritable as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise FileNotFoundError(errno.ENOENT, "is not there any more", self.shown(path)) from error
            raise (Unusable if error.cause in REFUSALS else Unavailable)(str(error)) from error


def _version_of(object_: pa.NativeFile) -> tuple[int, bytes | None]:
    return object_.size(), (object_.metadata() or {}).get(b"ETag")
