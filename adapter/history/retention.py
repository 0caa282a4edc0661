"""How long each day of the history has been kept, counted in the time for which adapters ran.

A wall clock can be set to any time, so it decides nothing here: an adapter that starts in the year 2100 would delete
everything. Instead a ledger in the location has the seconds for which adapters ran, by their monotonic clocks, and how
many these were when a day was last written to. Adapters that run side by side add the same time once; the time in which
none runs is not counted."""

from collections.abc import Callable, Collection, Mapping
from typing import Annotated

import pyarrow as pa
from pydantic import BaseModel, Field, ValidationError

from adapter.history.files import Files

LEDGER = "_retention.json"
RunningSeconds = Annotated[float, Field(ge=0)]


class Ledger(BaseModel, frozen=True, allow_inf_nan=False):
    """The file's content. A new one has every day as written now, so losing it deletes nothing."""

    running_seconds: RunningSeconds = 0.0
    last_written: Mapping[str, RunningSeconds] = {}
    """Day -> the running seconds at its last write."""

    def advanced(self, seconds: float) -> "Ledger":
        return self.model_copy(update={"running_seconds": self.running_seconds + max(seconds, 0.0)})

    def with_written(self, days: Collection[str]) -> "Ledger":
        now = dict.fromkeys(days, self.running_seconds)
        return self.model_copy(update={"last_written": {**self.last_written, **now}})

    def with_only(self, days: Collection[str]) -> "Ledger":
        """Keeps these days; new ones count as written now."""
        kept = {day: self.last_written.get(day, self.running_seconds) for day in sorted(days)}
        return self.model_copy(update={"last_written": kept})

    def expired(self, seconds: float) -> list[str]:
        return [day for day, then in self.last_written.items() if self.running_seconds - then >= seconds]


def ledger_in(content: bytes | None) -> Ledger:
    try:
        return Ledger() if content is None else Ledger.model_validate_json(content)
    except ValidationError:
        return Ledger()


class Retention:
    """One process's part of the ledger, for one thread. Every method raises HistoryUnwritable."""

    def __init__(self, files: Files, seconds: float, monotonic: Callable[[], float]) -> None:
        self._files = files
        self._seconds = seconds
        self._monotonic = monotonic
        self._counted_at = monotonic()
        self._counted: float | None = None
        """The running seconds in the ledger at that time; None if it has not been read yet."""

    def expired(self, days: Collection[str]) -> list[str]:
        """Returns the days that have been kept long enough."""
        return self._ledger_at(self._monotonic()).with_only(days).expired(self._seconds)

    def note_written(self, days: Collection[str]) -> None:
        self._count(lambda ledger: ledger.with_written(days))

    def note_days(self, days: Collection[str]) -> None:
        self._count(lambda ledger: ledger.with_only(days))

    def _count(self, change: Callable[[Ledger], Ledger]) -> None:
        """Writes the time since the last call, and the change."""
        now = self._monotonic()
        ledger = change(self._ledger_at(now))
        self._files.write(LEDGER, pa.py_buffer(ledger.model_dump_json().encode()))
        self._counted_at, self._counted = now, ledger.running_seconds

    def _ledger_at(self, now: float) -> Ledger:
        """Time that other adapters have added since the last call is the same time, so it is added only once."""
        known = ledger_in(self._files.read(LEDGER))
        by_others = 0.0 if self._counted is None else max(known.running_seconds - self._counted, 0.0)
        return known.advanced(now - self._counted_at - by_others)
