"""Where the history's files lie: a folder of this machine, or a bucket. A reader never meets half a file in either.

Paths are relative to the location, with `/` between their parts. Trouble is HistoryUnwritable, whatever it came from.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyarrow import fs

from adapter.buckets import opened
from adapter.history_trouble import translated
from adapter.location import Bucket, bucket_at

DAY_FOLDER = re.compile(r"date=(\d{4}-\d{2}-\d{2})")
BEING_DELETED = re.compile(r"\.date=\d{4}-\d{2}-\d{2}\.deleted")
UNFINISHED = re.compile(r"\..+\.parquet\.tmp")
UNFINISHED_SECONDS = 86_400.0
"""After so long nobody is still writing a temporary file."""
NOTHING_TO_SYNC = {errno.EINVAL, errno.ENOTSUP}
"""What file systems say that know no fsync of folders, SMB's among them."""


class Files(Protocol):
    """A location."""

    def write(self, path: str, content: pa.Buffer) -> None:
        """A whole file that outlives the machine's power; replaces one of the same name. Raises HistoryUnwritable."""

    def read(self, path: str) -> bytes | None:
        """A whole file; None: there is none. Raises HistoryUnwritable."""

    def days(self, table: str) -> list[str]:
        """`YYYY-MM-DD` of the table's days, and of nothing else that lies there. Raises HistoryUnwritable."""

    def delete_day(self, table: str, day: str) -> None:
        """Raises HistoryUnwritable; a day that is gone is no trouble."""

    def tidy(self, table: str) -> None:
        """Delete what processes that died left behind. Raises HistoryUnwritable."""


def files_at(location: str) -> Files:
    """By the settings' `location`. Touches nothing yet."""
    bucket = bucket_at(location)
    return Folder(Path(location)) if bucket is None else BucketFolder(bucket)


class Folder:
    """A folder of this machine; made where it is missing."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, path: str, content: pa.Buffer) -> None:
        target = self._root / path
        # Several writers may replace one file at the same time.
        unfinished = target.with_name(f".{secrets.token_hex(4)}-{target.name}.tmp")
        with translated(target.parent):
            self._make(target.parent)
            try:
                _write_through(unfinished, content)
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

    def days(self, table: str) -> list[str]:
        with translated(self._root):
            try:
                found = [entry.name for entry in os.scandir(self._root / table) if entry.is_dir(follow_symlinks=False)]
            except FileNotFoundError:
                return []
        return _days_among(found)

    def delete_day(self, table: str, day: str) -> None:
        """At once for readers: they look at no name with a dot in front."""
        folder = self._root / table / f"date={day}"
        hidden = folder.with_name(f".{folder.name}.deleted")
        with translated(folder):
            _remove_folder(hidden)  # a writer that was killed over it left some: nothing can be renamed to that
            with contextlib.suppress(FileNotFoundError):
                folder.rename(hidden)
            _remove_folder(hidden)

    def tidy(self, table: str) -> None:
        root = self._root / table
        with translated(root):
            for day in _folders(root):
                if BEING_DELETED.fullmatch(day.name):
                    _remove_folder(day)
                for hour in _folders(day):
                    _delete_unfinished(hour)

    def _make(self, folder: Path) -> None:
        """Each new folder is written down in the one above it, or a crash might lose it with all its files."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)


def _write_through(path: Path, content: pa.Buffer) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


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
    """Another writer may be at it too."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _folders(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError):
        yield from [Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]


def _delete_unfinished(folder: Path) -> None:
    """Another writer may delete a file, or the folder, meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        for entry in list(os.scandir(folder)):
            if UNFINISHED.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > UNFINISHED_SECONDS:
                Path(entry.path).unlink()


class BucketFolder:
    """A prefix in a bucket: an object is there as a whole or not at all, so nothing is ever renamed."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._made: fs.FileSystem | None = None

    def write(self, path: str, content: pa.Buffer) -> None:
        with translated(self._bucket), self._files().open_output_stream(self._at(path)) as stream:
            stream.write(content)

    def read(self, path: str) -> bytes | None:
        with translated(self._bucket):
            try:
                with self._files().open_input_stream(self._at(path)) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

    def days(self, table: str) -> list[str]:
        with translated(self._bucket):
            found = self._files().get_file_info(fs.FileSelector(self._at(table), allow_not_found=True))
            return _days_among([info.base_name for info in found if info.type is fs.FileType.Directory])

    def delete_day(self, table: str, day: str) -> None:
        with translated(self._bucket), contextlib.suppress(FileNotFoundError):
            self._files().delete_dir(self._at(f"{table}/date={day}"))

    def tidy(self, table: str) -> None:
        """Nothing: unfinished uploads are no objects."""

    def _files(self) -> fs.FileSystem:
        """Made at the first use: that may ask the network who we are."""
        if self._made is None:
            self._made = opened(self._bucket)  # tried again from here, after others had a turn
        return self._made

    def _at(self, path: str) -> str:
        return f"{self._bucket.root}/{path}"


def _days_among(names: list[str]) -> list[str]:
    return sorted(match[1] for name in names if (match := DAY_FOLDER.fullmatch(name)) and _is_day(match[1]))


def _is_day(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(date.fromisoformat(text))
    return False
