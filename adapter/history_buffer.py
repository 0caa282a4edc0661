"""What waits to be written, within bounds: samples as they were handed over, and encoded files that could not go out.

An encoded row takes 8 bytes, a sample's row 60: while a store is away, files are what is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Generic, Protocol, TypeVar

from adapter.sampling import Sample


class Weighed(Protocol):
    @property
    def size(self) -> int:
        """Bytes of memory."""

    @property
    def rows(self) -> int: ...


Item = TypeVar("Item", bound=Weighed)


class Buffer(Generic[Item]):
    """A queue of at most so many bytes; what is oldest goes first, and its rows are counted. For any threads."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._items: deque[Item] = deque()
        self._lock = Lock()
        self.size = 0
        """Bytes."""
        self.rows = 0

    def add(self, item: Item) -> int:
        """Rows that had to go for it, its own where it is too large by itself."""
        with self._lock:
            self._items.append(item)
            self._count(item, 1)
            return self._shed()

    def put_back(self, items: Iterable[Item]) -> int:
        """At the front, in their order, what had been taken; rows that had to go for them."""
        with self._lock:
            for item in reversed(list(items)):
                self._items.appendleft(item)
                self._count(item, 1)
            return self._shed()

    def take(self) -> list[Item]:
        """Everything, oldest first; nothing of it is in the buffer any more."""
        with self._lock:
            taken = list(self._items)
            self._items.clear()
            self.size = self.rows = 0
            return taken

    def _shed(self) -> int:
        return sum(item.rows for item in self._oldest_beyond_the_limit())

    def _oldest_beyond_the_limit(self) -> Iterator[Item]:
        while self.size > self._limit:
            item = self._items.popleft()
            self._count(item, -1)
            yield item

    def _count(self, item: Item, sign: int) -> None:
        self.size += sign * item.size
        self.rows += sign * item.rows


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A sample in the buffer, weighed when it came."""

    sample: Sample
    size: int
    rows: int


def weighed(sample: Sample) -> Waiting:
    seen = sample.observed
    columns = (
        *(seen.committed, seen.commit_received, seen.commit_cause, seen.log_end, seen.end_received, seen.end_cause),
        *(seen.log_start, sample.state, sample.members),
        sample.is_committed_only,
    )
    return Waiting(sample, sum(column.nbytes for column in columns), len(sample.layout))
