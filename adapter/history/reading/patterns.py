"""Reads the weekly patterns of groups from the history, in a thread of its own: those that somebody asks for."""

import logging
import math
from collections.abc import Collection, Mapping
from threading import Lock
from zoneinfo import ZoneInfo

from cachetools import TTLCache

from adapter.clock import Clock, utc_text
from adapter.conditions import FORECASTS, Conditions
from adapter.history.errors import HistoryUnwritable
from adapter.history.files import Files
from adapter.history.reading.hours import GroupKey, Hours, hours_of
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
        self._hours: Mapping[GroupKey, Hours] = {}
        """What was read, so that further topics or zones of a group need no read; about 7 KB for each topic."""
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
                f"the history has fewer than {FEWEST_DAYS} days of hours in which all its topics are known, or nothing"
                " was produced in the last week"
            )
        if self._clock.time() - pattern.until > OLD_SECONDS:
            return f"its hours in the history end at {utc_text(pattern.until)}: run `compact`"
        return pattern

    def turn(self) -> float:
        now = self._clock.monotonic()
        is_due = now - self._read_at >= READ_SECONDS
        asked = self._still_asked()
        if not asked:
            self._hours, self._found = {}, {}
            self._conditions.forget(name=FORECASTS.name)
            return READ_SECONDS
        groups = {_group_of(load) for load in asked}
        try:
            self._read(groups if is_due else groups - self._hours.keys())
        except HistoryUnwritable as error:
            self._trouble = "the hours of the history cannot be read"
            message = "numbers of replicas are without a forecast where it could not be read before"
            self._conditions.fails(FORECASTS, "NotRead", message, details=str(error))
            return RETRY_SECONDS
        self._hours = {group: self._hours[group] for group in groups}
        self._found = self._patterns(asked, {} if is_due else self._found)
        self._trouble = NOT_READ_YET
        self._conditions.holds(FORECASTS)
        self._read_at = now if is_due else self._read_at
        return self._read_at + READ_SECONDS - now

    def _still_asked(self) -> set[Load]:
        with self._lock:
            self._asked.expire()
            return set(self._asked)

    def _read(self, groups: Collection[GroupKey]) -> None:
        if groups:
            self._hours = {**self._hours, **hours_of(self._files, groups, self._clock.time())}
            logger.info("history: read the weekly patterns of %d groups", len(groups))

    def _patterns(self, asked: Collection[Load], known: Mapping[Load, Pattern | None]) -> Mapping[Load, Pattern | None]:
        return {load: known[load] if load in known else self._pattern(load) for load in asked}

    def _pattern(self, load: Load) -> Pattern | None:
        return pattern_of(*self._hours[_group_of(load)].of(load.topics), ZoneInfo(load.zone))


def _group_of(load: Load) -> GroupKey:
    return load.cluster, load.group
