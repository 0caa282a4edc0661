"""A thread that repeats its work until it is stopped."""

import logging
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import TIMEOUT_MAX, Event, Thread

logger = logging.getLogger(__name__)

NICENESS = 10
"""Of threads that prepare later reads, so that on a busy machine a read does not wait for them."""
RETRY_SECONDS = 5.0
"""After an unexpected error, which is logged; without the thread, changes would go unnoticed."""


def be_nice() -> None:
    """Lowers the priority of the calling thread, and of threads that it starts."""
    # On other systems it would be that of the whole process.
    if sys.platform == "linux":
        os.nice(NICENESS)


class Repeating(ABC):
    """The first turn comes at once. `stop` may be called before `start`."""

    def __init__(self, name: str, *, is_nice: bool = False) -> None:
        self._is_nice = is_nice
        self._stopping, self._woken = Event(), Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def turn(self) -> float:
        """Does the work once; returns the seconds until the next time."""

    def end(self) -> None:  # noqa: B027 - nothing follows in most threads
        """Does in the thread what follows the last turn."""

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Lets the next turn come at once. Any thread may call it."""
        self._woken.set()

    def stop(self, timeout_seconds: float) -> None:
        """Ends the thread; one that does not end in time ends with the process."""
        self._stopping.set()
        self.wake()
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)

    @property
    def is_hanging(self) -> bool:
        """After `stop`: whether the thread still runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        if self._is_nice:
            be_nice()
        while not self._stopping.is_set():
            self._woken.wait(self._tried(self.turn))
            self._woken.clear()
        self._tried(self.end)

    def _tried(self, work: Callable[[], float | None]) -> float:
        try:
            return min(work() or 0.0, TIMEOUT_MAX)
        except Exception:
            logger.exception("unexpected error in thread %s", self._thread.name)
            return RETRY_SECONDS


class Repeated(Repeating):
    """Repeats a function, which returns the seconds until the next time."""

    def __init__(self, name: str, work: Callable[[], float]) -> None:
        super().__init__(name)
        self._work = work

    def turn(self) -> float:
        return self._work()
