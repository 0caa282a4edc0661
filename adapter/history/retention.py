"""How long each day of the history has been kept, counted in the time for which adapters ran.

A wall clock can be set to any time, so it decides nothing here: an adapter that starts in the year 2100 would delete
everything. Instead, a ledger in the location stores the total running time of adapters, by their monotonic clocks, and
what that total was when each day was last written to. Adapters that run side by side add the same time once; the time
in which none runs is not counted."""

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
        self._counted: tuple[float, float] | None = None
        """When this process last wrote the ledger, and the running seconds in it; None: it has not."""

    def expired(self, days: Collection[str]) -> frozenset[str]:
        """Returns the days that have been kept long enough."""
        known, running = self._ledger_at(self._monotonic())
        return frozenset(day for day in days if running - known.get(day, running) >= self._seconds)

    def note(self, written: Collection[str], days: Collection[str] | None = None) -> None:
        """Writes the time since the last call, and that these days were written to. Of the others only `days` are
        kept, if given; those that are new count as written now."""
        now = self._monotonic()
        known, running = self._ledger_at(now)
        kept = {day: known.get(day, running) for day in (known if days is None else sorted(days))}
        ledger = Ledger(running_seconds=running, last_written={**kept, **dict.fromkeys(written, running)})
        self._files.write(LEDGER, pa.py_buffer(ledger.model_dump_json().encode()))
        self._counted = now, running

    def _ledger_at(self, now: float) -> tuple[Mapping[str, float], float]:
        """Returns the running seconds when each day was last written, and those now.

        Time that other adapters have added since the last call is the same time, so it is added only once."""
        ledger = ledger_in(self._files.read(LEDGER))
        then, counted = self._counted or (now, ledger.running_seconds)
        by_others = max(ledger.running_seconds - counted, 0.0)
        return ledger.last_written, ledger.running_seconds + max(now - then - by_others, 0.0)
