"""A thread that repeats its work until it is stopped."""

import logging
import os
import sys
from abc import ABC, abstractmethod
from threading import TIMEOUT_MAX, Event, Thread

logger = logging.getLogger(__name__)

NICENESS = 10
"""Of threads that prepare later reads, so that on a busy machine a read does not wait for them."""
RETRY_SECONDS = 5.0
"""After an unexpected error, which is logged; without the thread, changes would go unnoticed."""


def be_nice() -> None:
    """Lowers the priority of this thread and of those that it starts. Elsewhere it would be the whole process's."""
    if sys.platform == "linux":
        os.nice(NICENESS)


class Repeating(ABC):
    """The first turn comes at once. `stop` may be called before `start`."""

    def __init__(self, name: str, *, is_nice: bool = False) -> None:
        self._is_nice = is_nice
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def turn(self) -> float:
        """Does the work once; returns the seconds until the next time."""

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_seconds: float) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)

    def _run(self) -> None:
        if self._is_nice:
            be_nice()
        pause = 0.0
        while not self._stopping.wait(pause):
            try:
                pause = min(self.turn(), TIMEOUT_MAX)
            except Exception:
                logger.exception("unexpected error in thread %s, trying again", self._thread.name)
                pause = RETRY_SECONDS
