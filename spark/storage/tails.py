"""The end of a file that lies elsewhere: a footer is read from it without the rest."""

from __future__ import annotations

import io
from typing import Any


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
