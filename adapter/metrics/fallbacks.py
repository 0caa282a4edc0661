"""Since when values are refused whose settings have a fallback.

Counted on the monotonic clock from the first refusal after the last answer, or after the process started. For this, the
values are read every few seconds, so it does not depend on when others read them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from adapter import clock
from adapter.conditions import FALLBACKS, Conditions
from adapter.errors import some_of
from adapter.metrics.requirement import Requirement

LOOK_SECONDS = 5.0
FORGOTTEN_SECONDS = 60.0
"""After the last read with a selector of the reader's own. HPAs read every 15 s."""
MOST_SELECTORS = 1000
"""Because readers may use any."""


class Asked(NamedTuple):
    metric: str
    requirements: tuple[Requirement, ...]


@dataclass(slots=True)
class _Value:
    read_at: float
    refused_since: float | None = None
    is_replaced: bool = False
    """Whether the fallback is due."""


class Fallbacks:
    """Any thread may call it."""

    def __init__(self, monotonic: Callable[[], float] = clock.monotonic, conditions: Conditions | None = None) -> None:
        self._monotonic = monotonic
        self._conditions = conditions
        self._lock = Lock()
        self._values: dict[Asked, _Value] = {}
        self._is_reported = False

    def known(self, asked: Asked) -> None:
        """Notes that the value was answered."""
        with self._lock:
            if (value := self._value(asked)) is not None:
                value.refused_since, value.is_replaced = None, False

    def refused(self, asked: Asked, whole: Asked, after: float) -> float | None:
        """Notes that the value was refused; returns since when it has been, if that is longer ago than `after`.

        `whole` is the value without the reader's own selector: when it was first refused, the selected part was."""
        now = self._monotonic()
        with self._lock:
            value, of_whole = self._value(asked), self._values.get(whole)
            began = None if of_whole is None else of_whole.refused_since
            # Readers who take all places with selectors of their own do not keep the fallback from others.
            value = value or _Value(now)
            if value.refused_since is None:
                value.refused_since = now if began is None else began
            value.is_replaced = now - value.refused_since > after
            return value.refused_since if value.is_replaced else None

    def look(self, always: Collection[Asked], read: Callable[[Asked], object]) -> None:
        """Reads these values and those that readers select, and reports which are replaced by their fallback."""
        earliest = self._monotonic() - FORGOTTEN_SECONDS
        with self._lock:
            values = self._values.items()
            self._values = {asked: one for asked, one in values if asked in always or one.read_at > earliest}
            read_at = {asked: one.read_at for asked, one in self._values.items()}
        for asked in {*always, *read_at}:
            read(asked)
        with self._lock:
            for asked, at in read_at.items():
                self._values[asked].read_at = at
            replaced = sorted({asked.metric for asked, one in self._values.items() if one.is_replaced})
            is_used = bool(self._values)
        if self._conditions is not None and (is_used or self._is_reported):
            self._report(self._conditions, replaced, is_used=is_used)

    def _value(self, asked: Asked) -> _Value | None:
        now, value = self._monotonic(), self._values.get(asked)
        if value is not None:
            value.read_at = now
        elif len(self._values) < MOST_SELECTORS:
            value = self._values[asked] = _Value(now)
        return value

    def _report(self, conditions: Conditions, replaced: Collection[str], *, is_used: bool) -> None:
        self._is_reported = is_used
        if not is_used:
            conditions.forget(name=FALLBACKS.name)
        elif not replaced:
            conditions.holds(FALLBACKS)
        else:
            message = "numbers of replicas are those of a fallback, because the lag is unknown; the log has the metrics"
            conditions.fails(FALLBACKS, "Used", message, details=some_of([*replaced], most=10, separator=", "))
