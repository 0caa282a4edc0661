"""The history's files in a local folder or a bucket. Readers never see half a file in either.

Paths are relative to the location, with `/` between their parts. Every error is raised as HistoryUnwritable."""

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyarrow import fs

from adapter.history.buckets import opened
from adapter.history.errors import translated
from adapter.location import Bucket, bucket_at

DAY_FOLDER = re.compile(r"\.?date=(\d{4}-\d{2}-\d{2})(?:\.deleted)?")
"""A day, or what a process that was killed has not deleted of one."""
NOTHING_TO_SYNC = {errno.EINVAL, errno.ENOTSUP}
"""Errors of file systems that do not support fsync of folders, such as SMB."""


class Files(Protocol):
    """A location. Every method raises HistoryUnwritable."""

    def write(self, path: str, content: pa.Buffer) -> None:
        """Writes or replaces a whole file so that it survives a power failure."""

    def read(self, path: str) -> bytes | None:
        """Returns the file's content; None if it does not exist."""

    def names(self, folder: str) -> list[str]:
        """Returns the names of the folder's files, which may not exist, without hidden ones."""

    def days(self, table: str) -> list[str]:
        """Returns the days of the table as `YYYY-MM-DD`; ignores other entries."""

    def delete_day(self, table: str, day: str) -> None:
        """Deletes a day of the table, which may be gone already."""


def files_at(location: str) -> Files:
    bucket = bucket_at(location)
    return Folder(Path(location)) if bucket is None else BucketFolder(bucket)


class Folder:
    """A local folder, created if it is missing."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, path: str, content: pa.Buffer) -> None:
        target = self._root / path
        # Several writers may replace one file at the same time.
        unfinished = target.with_name(f".{secrets.token_hex(4)}-{target.name}.tmp")
        with translated(target.parent):
            self._make(target.parent)
            try:
                with unfinished.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                unfinished.replace(target)
                _sync_folder(target.parent)
            except BaseException:
                with contextlib.suppress(OSError):
                    unfinished.unlink(missing_ok=True)
                raise

    def read(self, path: str) -> bytes | None:
        with translated(self._root):
            try:
                return (self._root / path).read_bytes()
            except FileNotFoundError:
                return None

    def names(self, folder: str) -> list[str]:
        with translated(self._root), contextlib.suppress(FileNotFoundError):
            return _seen(entry.name for entry in os.scandir(self._root / folder) if entry.is_file())
        return []

    def days(self, table: str) -> list[str]:
        with translated(self._root):
            try:
                found = [entry.name for entry in os.scandir(self._root / table) if entry.is_dir(follow_symlinks=False)]
            except FileNotFoundError:
                return []
        return _days_among(found)

    def delete_day(self, table: str, day: str) -> None:
        """Readers ignore names that begin with a dot, so for them the day is deleted at once."""
        folder = self._root / table / f"date={day}"
        hidden = folder.with_name(f".{folder.name}.deleted")
        with translated(folder):
            # A writer that was killed may have left it, and a folder that is not empty cannot be replaced.
            _remove_folder(hidden)
            with contextlib.suppress(FileNotFoundError):
                folder.rename(hidden)
            _remove_folder(hidden)

    def _make(self, folder: Path) -> None:
        """Syncs the parent of each new folder; otherwise a crash could lose the folder with all its files."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NOTHING_TO_SYNC:
            raise
    finally:
        os.close(descriptor)


def _remove_folder(folder: Path) -> None:
    """Another writer may be deleting it as well."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)


class BucketFolder:
    """A prefix in a bucket. An object is either complete or absent, so nothing is renamed."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def write(self, path: str, content: pa.Buffer) -> None:
        with translated(self._bucket), self._files.open_output_stream(self._at(path)) as stream:
            stream.write(content)

    def read(self, path: str) -> bytes | None:
        with translated(self._bucket):
            try:
                with self._files.open_input_stream(self._at(path)) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

    def names(self, folder: str) -> list[str]:
        with translated(self._bucket):
            infos = self._files.get_file_info(fs.FileSelector(self._at(folder), allow_not_found=True))
            return _seen(info.base_name for info in infos if info.type is fs.FileType.File)

    def days(self, table: str) -> list[str]:
        with translated(self._bucket):
            infos = self._files.get_file_info(fs.FileSelector(self._at(table), allow_not_found=True))
            return _days_among([info.base_name for info in infos if info.type is fs.FileType.Directory])

    def delete_day(self, table: str, day: str) -> None:
        with translated(self._bucket), contextlib.suppress(FileNotFoundError):
            self._files.delete_dir(self._at(f"{table}/date={day}"))

    @cached_property
    def _files(self) -> fs.FileSystem:
        """Opened at the first use, because that may need the network to find credentials."""
        return opened(self._bucket)

    def _at(self, path: str) -> str:
        return f"{self._bucket.root}/{path}"


def _seen(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith((".", "_")))


def _days_among(names: list[str]) -> list[str]:
    return sorted({match[1] for name in names if (match := DAY_FOLDER.fullmatch(name))})
