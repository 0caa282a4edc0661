"""Bounded queues of what waits to be written: samples as the cycles produced them, and encoded files.

An encoded row takes 8 bytes, a row of a sample 60, so files are kept while a store is unavailable."""

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Generic, Protocol, TypeVar

SAMPLE_BYTES, FILE_BYTES = 48 * 2**20, 48 * 2**20
"""How much memory waiting samples, and waiting encoded files, may use."""


class Weighed(Protocol):
    @property
    def size(self) -> int:
        """Bytes of memory."""

    @property
    def rows(self) -> int: ...


Item = TypeVar("Item", bound=Weighed)


class Buffer(Generic[Item]):
    """A thread-safe queue of limited size in bytes. If it is full, the oldest items are dropped and counted."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._items: deque[Item] = deque()
        self._lock = Lock()
        self.size = 0
        self.rows = 0

    def add(self, item: Item) -> int:
        """Returns how many rows were dropped to make room, which may include its own."""
        with self._lock:
            self._items.append(item)
            self.size += item.size
            self.rows += item.rows
            dropped = 0
            while self.size > self._limit:
                oldest = self._items.popleft()
                self.size -= oldest.size
                dropped += oldest.rows
            self.rows -= dropped
            return dropped

    @property
    def oldest(self) -> Item | None:
        with self._lock:
            return self._items[0] if self._items else None

    def remove(self, is_done: Callable[[Item], bool]) -> None:
        with self._lock:
            self._items = deque(item for item in self._items if not is_done(item))
            self.size, self.rows = sum(item.size for item in self._items), sum(item.rows for item in self._items)

    def take(self) -> list[Item]:
        with self._lock:
            taken = list(self._items)
            self._items.clear()
            self.size = self.rows = 0
            return taken
