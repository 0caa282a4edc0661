"""A location on this machine: folders swapped by one system call where Linux can, so that no reader ever finds either
name missing, and locked by the kernel while a run works there."""

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark.errors import Unavailable, Unusable
from spark.storage.protocol import File, Manifest, in_order, is_hidden

REPLACED = ".replaced-"
REPLACED_SECONDS = 60
"""Until a folder that was replaced is deleted, by the next publication after that."""
VERSION_NANOSECONDS = 1_000_000
"""A file's version is the time when it was written: renaming keeps it, and hardly any file system is less exact."""
CALL = "renameat2"
"""Only Linux has it."""
AT_FDCWD = -100
RENAME_EXCHANGE = 2
NOT_SUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}
"""What kernels and file systems answer that cannot exchange: NFS, SMB and most of FUSE among them."""


@dataclass(frozen=True, slots=True)
class LocalFiles:
    root: Path

    @property
    def at_once(self) -> int:
        return 1

    def probe(self) -> bool:
        try:
            os.scandir(self.root).close()
        except FileNotFoundError:
            return False
        except NotADirectoryError as error:
            raise Unusable(f"{self.root} is not a folder") from error
        except OSError as error:
            raise Unusable(f"{self.root} cannot be read: {error.strerror}") from error
        return True

    def listed(self, table: str, depth: int) -> list[File]:
        return list(self._below(self.root / table, table, depth))

    def _below(self, folder: Path, path: str, depth: int) -> Iterable[File]:
        if not folder.is_dir():
            return
        with os.scandir(folder) as entries:
            shown = sorted((entry for entry in entries if not is_hidden(entry.name)), key=lambda entry: entry.name)
        for entry in shown:
            if depth and entry.is_dir():
                yield from self._below(Path(entry.path), f"{path}/{entry.name}", depth - 1)
            elif not depth and entry.is_file():
                stat = entry.stat()
                yield File(f"{path}/{entry.name}", stat.st_size, str(stat.st_mtime_ns // VERSION_NANOSECONDS))

    versioned = listed

    def hidden(self) -> list[str]:
        return sorted(each.name for each in self.root.iterdir() if is_hidden(each.name))

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

    def publish(self, staged: Sequence[str], target: str, manifest: Manifest) -> None:
        """A reader finds the old folder or the new one, whole. The old one is set aside, for a reader that has found it
        and is about to list it."""
        files, old = [self.root / each for each in staged], self.root / target
        new = files[0].parent
        for file in files:
            file.rename(new / file.name)
        folder = str(new.relative_to(self.root))
        self.write(f"{folder}/{manifest.name}", manifest.text(self.versioned(folder, 0)))
        self._forget_replaced()
        if not old.exists():
            old.parent.mkdir(parents=True, exist_ok=True)
            new.rename(old)
        elif exchanged(new, old):
            new.rename(self.root / f"{REPLACED}{time.time_ns()}")
        else:
            _replace_each(new, old)

    def replace(self, staged: str, target: str) -> None:
        (self.root / target).parent.mkdir(parents=True, exist_ok=True)
        (self.root / staged).replace(self.root / target)

    def delete(self, path: str) -> None:
        target = self.root / path
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def _forget_replaced(self) -> None:
        latest = time.time_ns() - REPLACED_SECONDS * 10**9
        for name in self.hidden():
            at = name.removeprefix(REPLACED)
            if name.startswith(REPLACED) and at.isdigit() and int(at) < latest:
                shutil.rmtree(self.root / name)

    @contextlib.contextmanager
    def reserved(self) -> Iterator[Callable[[], None]]:
        """The kernel keeps the lock, and forgets it with the process. On a file system without locks nothing keeps two
        runs apart."""
        refuse_unwritable(self.root)
        descriptor = os.open(self.root, os.O_RDONLY)
        try:
            _lock(descriptor, self.root)
            yield lambda: None
        finally:
            os.close(descriptor)

    def shown(self, path: str = "") -> str:
        return str(self.root / path)

    @contextlib.contextmanager
    def reading(self, path: str) -> Iterator[str]:
        yield str(self.root / path)

    def footer_source(self, file: File) -> str:
        return str(self.root / file.path)

    @contextlib.contextmanager
    def created(self, path: str) -> Iterator[str]:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        yield str(target)


def refuse_unwritable(folder: Path) -> None:
    """Raises Unusable where no file can be created."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise Unusable(f"{folder} cannot be written: {error.strerror}") from error


def _replace_each(new: Path, old: Path) -> None:
    """Where folders cannot be exchanged. Files that have no successor go first."""
    names = in_order(each.name for each in new.iterdir())
    for each in old.iterdir():
        if each.name not in names:
            each.unlink()
    for name in names:
        (new / name).replace(old / name)


def exchanged(first: Path, other: Path) -> bool:
    """Returns False where this system or file system cannot do it; then nothing has changed. Raises OSError."""
    system = ctypes.CDLL(None, use_errno=True)
    call = getattr(system, CALL, None)
    if call is None:
        return False
    if not call(AT_FDCWD, os.fsencode(first), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE):
        return True
    number = ctypes.get_errno()
    if number in NOT_SUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(first), None, str(other))


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Unavailable(f"another run compacts {folder}") from error
    except OSError:
        return
