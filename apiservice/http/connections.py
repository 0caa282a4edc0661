"""Limits a listener's connections.

Every connection begins as a stranger's. One too many closes the oldest stranger's, so that a new caller is always
served. Connections of authenticated callers are never closed for others."""

from typing import Protocol


class Connection(Protocol):
    """An open connection, hashable by identity."""

    def abort(self) -> None:
        """Closes it at once."""


class Connections:
    def __init__(self, most_strangers: int, most_known: int) -> None:
        self._most_strangers = most_strangers
        self._most_known = most_known
        self._strangers: dict[Connection, None] = {}  # in order of arrival
        self._known: set[Connection] = set()

    def add(self, connection: Connection) -> None:
        """Adds a stranger's connection and aborts the oldest one above the limit."""
        self._strangers[connection] = None
        if len(self._strangers) > self._most_strangers:
            first = next(iter(self._strangers))
            del self._strangers[first]
            first.abort()

    def recognise(self, connection: Connection) -> bool:
        """Marks the connection's caller as known; returns False if known callers have too many connections."""
        if connection in self._known:
            return True
        if connection not in self._strangers or len(self._known) >= self._most_known:
            return False
        del self._strangers[connection]
        self._known.add(connection)
        return True

    def remove(self, connection: Connection) -> None:
        self._strangers.pop(connection, None)
        self._known.discard(connection)
