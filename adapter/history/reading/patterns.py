"""Reads the weekly patterns of groups from the history, in a thread of its own: those that somebody asks for."""

import logging
import math
from collections.abc import Mapping
from threading import Lock
from zoneinfo import ZoneInfo

from cachetools import TTLCache

from adapter.clock import Clock, utc_text
from adapter.conditions import FORECASTS, Conditions
from adapter.history.errors import HistoryUnwritable
from adapter.history.files import Files
from adapter.history.reading.hours import hours_of
from adapter.lag.forecast import FEWEST_DAYS, Load, Pattern, pattern_of
from adapter.repeating import Repeating

logger = logging.getLogger(__name__)

READ_SECONDS = 6 * 3600.0
"""Between two times that the same pattern is read: it is a median of weeks."""
RETRY_SECONDS = 30.0
OLD_SECONDS = 2 * 86_400.0
"""A pattern whose last hour ended before that says nothing about today."""
FORGOTTEN_SECONDS = 86_400.0
"""After it was last asked for."""
MOST_PATTERNS = 10_000
NOT_READ_YET = "the hours of the history are being read"


class Patterns(Repeating):
    """Any thread may call `of`."""

    def __init__(self, files: Files, conditions: Conditions, clock: Clock) -> None:
        super().__init__("history-patterns", is_nice=True)
        self._files, self._conditions, self._clock = files, conditions, clock
        self._lock = Lock()
        self._asked: TTLCache[Load, None] = TTLCache(MOST_PATTERNS, FORGOTTEN_SECONDS, timer=clock.monotonic)
        self._found: Mapping[Load, Pattern | None] = {}
        """Replaced as a whole."""
        self._read_at = -math.inf
        self._trouble = NOT_READ_YET

    def of(self, load: Load) -> Pattern | str:
        """Returns the pattern, or why there is none. The first time that it is asked for, it is read soon."""
        with self._lock:
            is_new = load not in self._asked
            self._asked[load] = None
        if is_new:
            self.wake()
        found = self._found
        if load not in found:
            return self._trouble
        pattern = found[load]
        if pattern is None:
            return (
                f"the history has fewer than {FEWEST_DAYS} days of its hours, or nothing was produced in the last week"
            )
        if self._clock.time() - pattern.until > OLD_SECONDS:
            return f"its hours in the history end at {utc_text(pattern.until)}: run `compact`"
        return pattern

    def turn(self) -> float:
        now = self._clock.monotonic()
        is_due = now - self._read_at >= READ_SECONDS
        with self._lock:
            self._asked.expire()
            asked = set(self._asked)
        if not asked:
            self._conditions.forget(name=FORECASTS.name)
            return READ_SECONDS
        wanted = asked if is_due else asked - self._found.keys()
        if wanted:
            try:
                hours = hours_of(self._files, wanted, self._clock.time())
            except HistoryUnwritable as error:
                self._trouble = "the hours of the history cannot be read"
                message = "numbers of replicas are without a forecast where it could not be read before"
                self._conditions.fails(FORECASTS, "NotRead", message, details=str(error))
                return RETRY_SECONDS
            found = {load: pattern_of(*own, ZoneInfo(load.zone)) for load, own in hours.items()}
            self._found = {load: one for load, one in self._found.items() if load in asked} | found
            self._trouble = NOT_READ_YET
            self._conditions.holds(FORECASTS)
            logger.info("history: read the weekly patterns of %d groups", len(found))
            self._read_at = now if is_due else self._read_at
        return self._read_at + READ_SECONDS - now
