"""How many connections a listener keeps, and which one it closes for a new one.

Every connection begins as a stranger's. The one that came first is closed for one too many, so that a caller who
connects is served however many strangers stay. A connection whose caller proved who they are is closed for no other.
"""

from typing import Protocol


class Connection(Protocol):
    """An open connection, hashable by identity."""

    def abort(self) -> None:
        """Close it now, whatever is under way."""


class Connections:
    """The open connections of one listener; for its event loop alone."""

    def __init__(self, most_strangers: int, most_known: int) -> None:
        self._most_strangers = most_strangers
        self._most_known = most_known
        self._strangers: dict[Connection, None] = {}  # in the order of their arrival
        self._known: set[Connection] = set()

    def add(self, connection: Connection) -> None:
        """Count a new connection; the stranger's that came first is aborted if it is one too many."""
        self._strangers[connection] = None
        if len(self._strangers) > self._most_strangers:
            first = next(iter(self._strangers))
            del self._strangers[first]
            first.abort()

    def recognise(self, connection: Connection) -> bool:
        """The connection's caller is known. Whether it may be kept: False if there are too many of known callers."""
        if connection in self._known:
            return True
        if connection not in self._strangers or len(self._known) >= self._most_known:
            return False
        del self._strangers[connection]
        self._known.add(connection)
        return True

    def remove(self, connection: Connection) -> None:
        """Forget a connection that was closed."""
        self._strangers.pop(connection, None)
        self._known.discard(connection)
