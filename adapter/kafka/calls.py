"""Requests that were sent together, and their outcomes as they arrive."""

from collections.abc import Callable, Collection, Sequence
from threading import Condition
from typing import Generic, Protocol

from kafka.errors import KafkaTimeoutError

from adapter import clock
from adapter.kafka.answers import Answer, Answered, Failure


class Pending(Protocol):
    """Requests that a thread can wait for."""

    @property
    def are_settled(self) -> bool: ...

    @property
    def are_taken(self) -> bool: ...

    @property
    def expires(self) -> float:
        """When the first of those that were sent fails for want of an answer."""

    @property
    def can_advance(self) -> bool:
        """Whether `advance` sends more."""

    def first_response(self) -> float | None:
        """Returns when the first response that has not been taken arrived; None if there is none."""

    def advance(self) -> None:
        """Sends what may be sent now."""


class Calls(Generic[Answered]):
    """Requests by a number, settled by the client's thread and taken by the waiting thread."""

    def __init__(
        self,
        keys: Collection[int],
        changed: Condition,
        seconds: float,
        read: Callable[[int, object, float], Answer[Answered] | Failure],
    ) -> None:
        """`read` decodes an outcome received at that time; KafkaTimeoutError if none arrived within `seconds`."""
        self._expires = clock.monotonic() + seconds
        self.sent: dict[int, float] = {}
        """When each request was passed to its connection, which may delay it because of a quota."""
        self.keys = keys
        self._changed = changed
        self._read = read
        self._no_outcome = KafkaTimeoutError()
        self._settled: dict[int, tuple[object, float]] = {}
        self._taken: set[int] = set()
        self._first_response: float | None = None
        """When the first response that has not been taken arrived."""

    def settle(self, number: int, outcome: object, received: float) -> None:
        """`outcome` is a response, an exception or a failure. After `expires` it is too old for the others: a suspended
        machine may receive it hours after it was sent."""
        with self._changed:
            if number not in self._settled:
                settled = outcome if received <= self._expires else self._no_outcome
                self._settled[number] = settled, received
                is_first = self._first_response is None and not isinstance(settled, BaseException | Failure)
                self._first_response = received if is_first else self._first_response
                if is_first or self.are_settled:
                    self._changed.notify_all()

    @property
    def are_settled(self) -> bool:
        return len(self._settled) == len(self.keys)

    @property
    def are_taken(self) -> bool:
        return len(self._taken) == len(self.keys)

    @property
    def expires(self) -> float:
        return self._expires

    @property
    def can_advance(self) -> bool:
        return False

    @property
    def seconds(self) -> float:
        """From the first sending to the last outcome, once all are settled."""
        settled = [received for _, received in self._settled.values()]
        return max(settled) - min(self.sent.values(), default=min(settled))

    def first_response(self) -> float | None:
        return self._first_response

    def advance(self) -> None:
        """Nothing is left to be sent."""

    def take(self) -> dict[int, Answer[Answered] | Failure]:
        """Returns the outcomes since the last call by number; after `expires`, also the missing ones."""
        now = clock.monotonic()
        with self._changed:
            if now >= self._expires:
                for number in self.keys:
                    self._settled.setdefault(number, (self._no_outcome, now))
            new = [number for number in self.keys if number in self._settled and number not in self._taken]
            self._taken.update(new)
            self._first_response = None
        return {number: self._read(number, *self._settled[number]) for number in new}


def wait_for(changed: Condition, calls: Sequence[Pending], together: float, within: float) -> bool:
    """Waits at most `within` seconds for a response, then `together` for the others; False: all have been taken."""
    latest = clock.monotonic() + within
    while True:
        with changed:
            unsettled = [call for call in calls if not call.are_settled]
            times = [first for call in calls if (first := call.first_response()) is not None]
            until = min(times) + together if times else latest
            left = min((until, *(call.expires for call in unsettled))) - clock.monotonic()
            if left <= 0 or not unsettled:
                return not all(call.are_taken for call in calls)
            advancing = [call for call in unsettled if call.can_advance]
            if not advancing:
                changed.wait(left)
        for call in advancing:
            call.advance()
