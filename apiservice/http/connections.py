"""Limits a listener's connections.

Every connection begins as a stranger's. While those of strangers take too much memory, the oldest is closed, so that a
new caller is always served. Connections of authenticated callers are never closed for others."""

from typing import Protocol


class Connection(Protocol):
    """An open connection, hashable by identity."""

    def abort(self) -> None:
        """Closes it at once."""


class Connections:
    def __init__(self, most_bytes: int, most_known: int) -> None:
        self._most_bytes = most_bytes
        self._most_known = most_known
        self._strangers: dict[Connection, int] = {}  # the most bytes of each so far, in order of arrival
        self._bytes = 0
        self._known: set[Connection] = set()

    def hold(self, connection: Connection, size: int) -> None:
        """Counts the bytes of a stranger's connection; aborts the oldest ones while all take too many."""
        if connection in self._known:
            return
        more = max(0, size - self._strangers.setdefault(connection, 0))
        self._strangers[connection] += more
        self._bytes += more
        while self._bytes > self._most_bytes:
            first = next(iter(self._strangers))
            self._forget(first)
            first.abort()

    def is_known(self, connection: Connection) -> bool:
        return connection in self._known

    def recognise(self, connection: Connection) -> bool:
        """Marks the connection's caller as known; returns False if known callers have too many connections."""
        if connection in self._known:
            return True
        if connection not in self._strangers or len(self._known) >= self._most_known:
            return False
        self._forget(connection)
        self._known.add(connection)
        return True

    def remove(self, connection: Connection) -> None:
        self._forget(connection)
        self._known.discard(connection)

    def _forget(self, stranger: Connection) -> None:
        self._bytes -= self._strangers.pop(stranger, 0)
