"""Limits how many requests to one broker wait for their responses at the same time."""

from collections import deque

from kafka.future import Future

from adapter import clock

WIDTH = 20
"""A broker answers the requests of a connection one after another. So this many hide the time on the network, and the
last of them has an answer before its deadline even where each takes 0.1 s. Log ends are requested in between."""
LANE_SECONDS = 15.0
"""No request is sent later than this; the next cycle begins with the same ones."""


class LaneTooSlow(Exception):
    """The broker did not answer all earlier requests within LANE_SECONDS."""


class Lane:
    """Used in the library's thread alone."""

    def __init__(self) -> None:
        self._ends = clock.monotonic() + LANE_SECONDS
        self._free = WIDTH
        self._waiting: deque[Future] = deque()
        self._failure: BaseException | None = None

    async def enter(self) -> None:
        """Waits for its turn; raises the failure of a request before it, which would be its own."""
        if self._free:
            self._free -= 1
        elif self._failure is None:
            turn = Future()
            self._waiting.append(turn)
            await turn
        if self._failure is not None:
            raise self._failure
        if clock.monotonic() >= self._ends:
            raise LaneTooSlow

    def leave(self, failure: BaseException | None) -> None:
        self._failure = self._failure or failure
        if self._waiting:
            self._waiting.popleft().success(None)
        else:
            self._free += 1
