"""Sends one broker's many requests in waves, so that a slow broker is slow and not silent."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Generic

from adapter.kafka.answers import Answer, Answered, Failure, FailureCause
from adapter.kafka.calls import Calls

WIDEST = 20
"""Requests in a wave at most: these hide the time on the network."""
MOST_UNDER_WAY = 60
"""At all brokers together, so that it does not take long to read the answers that have arrived."""
GROWTH = 4
"""A wave is at most so many times as wide as the one before, whose answers show the broker's pace."""
WAVE_SECONDS = 0.2
"""The time that a wave may take: a broker answers a connection's requests in order, so that others wait behind it."""


class BrokerTooSlow(Exception):
    """The broker did not answer all earlier requests in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"did not answer for all its groups, one by one, within {seconds:g} s")


class PacedCalls(Generic[Answered]):
    """Numbered requests, like `Calls`, but each broker is sent one wave at a time. For one thread, which waits.

    Only `advance` sends a broker its next wave, so no more than a wave arrives while that thread does something else.
    If a request fails, the broker's others would fail as well: they are not sent, and have the same failure."""

    def __init__(
        self,
        nodes: Mapping[int, int],
        send: Callable[[Sequence[int]], Calls[Answered]],
        too_slow: Callable[[int], Failure],
        monotonic: Callable[[], float],
        seconds: float,
    ) -> None:
        """`nodes` has the broker of each request. What was not sent after `seconds` fails as `too_slow(node)` says."""
        self._send = send
        self._too_slow = too_slow
        self._monotonic = monotonic
        self._ends = monotonic() + seconds
        self._left: dict[int, deque[int]] = {}
        """Node -> its requests that were not sent yet."""
        for number, node in nodes.items():
            self._left.setdefault(node, deque()).append(number)
        self._widest = max(1, min(WIDEST, MOST_UNDER_WAY // max(1, len(self._left))))
        self._outcomes: dict[int, Answer[Answered] | Failure] = {}
        """What has not been taken."""
        self._first_response: float | None = None
        """When the first of them was received."""
        self._untaken = len(nodes)
        self.unsent: set[int] = set()
        """The requests that have failed without being sent."""
        self._waves = {node: self._sent(node, 1) for node in list(self._left)}

    @property
    def are_settled(self) -> bool:
        return not self._left and all(wave.are_settled for wave in self._waves.values())

    @property
    def are_taken(self) -> bool:
        return not self._untaken

    @property
    def expires(self) -> float:
        return min((wave.expires for wave in self._waves.values() if not wave.are_settled), default=float("inf"))

    @property
    def can_advance(self) -> bool:
        return any(self._waves[node].are_settled for node in self._left)

    def first_response(self) -> float | None:
        times = (self._first_response, *(wave.first_response() for wave in self._waves.values()))
        return min((time for time in times if time is not None), default=None)

    def advance(self) -> None:
        """Reads the answers of one broker that has answered its wave, and sends it the next one."""
        node = next((node for node in self._waves if node in self._left and self._waves[node].are_settled), None)
        if node is None:
            return
        self._read(node)
        if node in self._left and self._monotonic() >= self._ends:
            self._refuse(node, self._too_slow(node))
        if node in self._left:
            # At the end, so that each broker has its turn.
            self._waves[node] = self._sent(node, min(_next_width(self._waves.pop(node)), self._widest))

    def take(self) -> dict[int, Answer[Answered] | Failure]:
        """Returns the outcomes since the last call by number."""
        for node in self._waves:
            self._read(node)
        taken, self._outcomes, self._first_response = self._outcomes, {}, None
        self._untaken -= len(taken)
        return taken

    def _sent(self, node: int, width: int) -> Calls[Answered]:
        left = self._left[node]
        wave = [left.popleft() for _ in range(min(width, len(left)))]
        if not left:
            del self._left[node]
        return self._send(wave)

    def _read(self, node: int) -> None:
        self._first_response = self.first_response()
        answers = self._waves[node].take()
        self._outcomes |= answers
        failures = (answer for answer in answers.values() if isinstance(answer, Failure))
        failure = next((each for each in failures if each.cause is not FailureCause.MALFORMED), None)
        if failure is not None:
            self._refuse(node, failure)

    def _refuse(self, node: int, failure: Failure) -> None:
        refused = self._left.pop(node, ())
        self.unsent.update(refused)
        self._outcomes |= dict.fromkeys(refused, failure)


def _next_width(wave: Calls[Answered]) -> int:
    count = len(wave.keys)
    in_time = WAVE_SECONDS * count / max(wave.seconds, WAVE_SECONDS / WIDEST)
    return max(1, min(int(in_time), GROWTH * count))
