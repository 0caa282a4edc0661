"""Requests that were sent together, and their outcomes as they arrive."""

from collections.abc import Callable, Collection
from threading import Condition
from typing import Generic

from kafka.errors import KafkaTimeoutError

from adapter import clock
from adapter.kafka.answers import Answer, Answered, Failure


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
        self.expires = clock.monotonic() + seconds
        self.sent: dict[int, float] = {}
        """When each request was passed to its connection, which may delay it because of a quota."""
        self.keys = keys
        self._changed = changed
        self._read = read
        self._no_outcome = KafkaTimeoutError()
        self._settled: dict[int, tuple[object, float]] = {}
        self._taken: set[int] = set()
        self._first_response: float | None = None
        """When the first response that has not been taken arrived: there may be thousands of requests."""

    def settle(self, number: int, outcome: object, received: float) -> None:
        """`outcome` is a response, an exception or a failure. After `expires` it is too old for the others: a suspended
        machine may receive it hours after it was sent."""
        with self._changed:
            if number not in self._settled:
                settled = outcome if received <= self.expires else self._no_outcome
                self._settled[number] = settled, received
                if not isinstance(settled, BaseException | Failure):
                    self._first_response = min(received, self._first_response or received)
            self._changed.notify_all()

    @property
    def are_settled(self) -> bool:
        return len(self._settled) == len(self.keys)

    @property
    def are_taken(self) -> bool:
        return len(self._taken) == len(self.keys)

    def first_response(self) -> float | None:
        """Returns when the first response that has not been taken arrived; None if there is none."""
        return self._first_response

    def take(self) -> dict[int, Answer[Answered] | Failure]:
        """Returns the outcomes since the last call by number; after `expires`, also the missing ones."""
        now = clock.monotonic()
        with self._changed:
            if now >= self.expires:
                for number in self.keys:
                    self._settled.setdefault(number, (self._no_outcome, now))
            new = [number for number in self.keys if number in self._settled and number not in self._taken]
            self._taken.update(new)
            self._first_response = None
        return {number: self._read(number, *self._settled[number]) for number in new}
