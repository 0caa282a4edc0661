"""What a history keeps beside its samples: a small document, written when it changes and else once an hour.

The newest document before a time says what was so then. Documents age as samples do.

Without pyarrow, because those who make notes are loaded without it."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import NamedTuple

from adapter.clock import Clock

AUTOSCALERS = "autoscalers"
"""The table of the HPAs that a report compares with others."""
REPEAT_SECONDS = 3600.0


class Note(NamedTuple):
    text: str
    """JSON."""
    essence: str
    """What of it makes another document necessary if it changes."""
    is_empty: bool = False


NoteNow = Callable[[], Note | None]
"""Returns what is so now, or None while that is unknown; called in the history's thread."""


class Notes:
    """One process's documents of one table, for one thread."""

    def __init__(
        self, table: str, note_now: NoteNow, write: Callable[[str, bytes], None], clock: Clock, writer: str
    ) -> None:
        """`write` receives the path of a file, relative to the location, and its content."""
        self._table, self._note_now, self._write = table, note_now, write
        self._clock, self._writer = clock, writer
        self._written: tuple[str, float] | None = None
        """The essence of the last document, and when it was written, in monotonic seconds."""
        self._has_older = False

    def found(self, days: Collection[str]) -> None:
        """Days with documents in the history, perhaps of an earlier process: they need an empty one as their end."""
        self._has_older = bool(days)

    def write_if_due(self) -> str | None:
        """Returns the day that a document was written to, as `YYYY-MM-DD`. Raises what `write` raises."""
        note, now = self._note_now(), self._clock.monotonic()
        if note is None:
            return None
        if self._written is None:
            is_due = self._has_older or not note.is_empty
        else:
            essence, at = self._written
            is_due = note.essence != essence or (now - at >= REPEAT_SECONDS and not note.is_empty)
        if not is_due:
            return None
        time = datetime.fromtimestamp(self._clock.time(), UTC)
        path = f"{self._table}/{time:date=%Y-%m-%d}/{self._writer}-{time:%Y%m%dT%H%M%S.%fZ}.json"
        self._write(path, note.text.encode())
        self._written = note.essence, now
        return f"{time:%Y-%m-%d}"
