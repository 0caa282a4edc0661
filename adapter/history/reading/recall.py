"""Reads back, once and in a thread of its own, what moved before this process started.

A location that is slow or cannot be read delays nothing: until it is read, ages are lower bounds and rates unknown."""

import logging
import math
from collections.abc import Callable, Mapping
from typing import Protocol

from adapter.clock import Clock
from adapter.conditions import HISTORY_PAST, Conditions
from adapter.history.clock_mark import ClockMark
from adapter.history.errors import HistoryUnwritable
from adapter.history.files import Files
from adapter.history.reading.past import Start, past_of
from adapter.lag.earlier import Wanted
from adapter.lag.ring import Ring
from adapter.repeating import Repeating

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often it looks whether the first cycles are complete."""
RETRY_SECONDS = 30.0
CYCLES = 4000
"""How far back log ends are remembered."""
MOST_SECONDS = 86_400.0


class Follower(Protocol):
    """Follows the offsets of one cluster."""

    @property
    def rows_to_recall(self) -> Wanted | None:
        """Returns the rows whose past is of use; None until the first cycles have shown them."""

    def precede(self, past: Ring) -> None:
        """Takes over what moved before its first cycle; any thread may call it."""


class Recall(Repeating):
    def __init__(
        self,
        files: Files,
        followers: Callable[[], Mapping[str, Follower]],
        interval: float,
        conditions: Conditions,
        clock: Clock,
        boot_id: str | None,
    ) -> None:
        """Create it before the first cycle: what is sampled later counts as seen by this process."""
        super().__init__("history-recall", is_nice=True)
        self._files = files
        self._followers = followers
        self._depth = min(CYCLES * interval, MOST_SECONDS)
        self._conditions = conditions
        self._start = Start(now := clock.monotonic(), ClockMark(boot_id=boot_id, to_epoch=clock.time() - now))
        self._left = set(followers())

    def turn(self) -> float:
        try:
            for name, follower in self._followers().items():
                if name in self._left and (rows := follower.rows_to_recall) is not None:
                    self._recall(name, rows)
        except HistoryUnwritable as error:
            message = "ages and rates count from the start of this process"
            self._conditions.fails(HISTORY_PAST, "NotRead", message, details=str(error))
            return RETRY_SECONDS
        return LOOK_SECONDS if self._left else math.inf

    def _recall(self, name: str, rows: Wanted) -> None:
        past = past_of(self._files, rows, self._start, self._depth)
        if (follower := self._followers().get(name)) is not None:
            follower.precede(past)
        self._left.discard(name)
        self._conditions.holds(HISTORY_PAST)
        count = len(past.ends.ticks)
        logger.info("history: read back %d readings of the offsets of cluster %s", count, name)
