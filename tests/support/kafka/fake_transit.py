"""Requests on their way to fake brokers and back, by a clock that moves on while somebody waits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Condition
from typing import Any, TypeVar

from adapter.kafka.answers import Answer, Failure, FailureCause
from adapter.kafka.calls import Calls, Pending
from adapter.kafka.client import CALL_SECONDS
from tests.support.kafka.fake_cluster import Kafka
from tests.support.samples import SteppedClock

T = TypeVar("T")
Sent = tuple[str, int, Callable[[], T | Failure]]
"""The kind of a request, the node, and what it answers."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """When a request was sent, read by the broker, and answered."""

    kind: str
    node: int
    sent: float
    read: float
    received: float


@dataclass(frozen=True, slots=True)
class _Times:
    read: float
    received: float


@dataclass(frozen=True, slots=True, eq=False)
class _UnderWay:
    """An answer that is on its way to us."""

    calls: Calls[Any]
    number: int
    received: float
    outcome: Answer[Any] | Failure


class Transit:
    def __init__(
        self,
        kafka: Kafka,
        clock: SteppedClock,
        requests: list[tuple[str, int | None]],
        failure: Callable[[int], Failure | None],
    ) -> None:
        """Adds each request to `requests`; `failure` says why a node does not answer."""
        self.exchanges: list[Exchange] = []
        """Every request that was answered."""
        self._kafka = kafka
        self._clock = clock
        self._requests = requests
        self._failure = failure
        self._condition = Condition()
        self._under_way: dict[int, _UnderWay] = {}
        """In the order in which they were sent."""
        self._count = 0
        self._last: dict[int, _Times] = {}
        """Node -> when it read and answered its last request."""

    def sent(self, asked: Mapping[int, Sent[T]]) -> Calls[T]:
        """Sends all at once; the answers arrive while somebody waits."""
        calls = Calls[T](asked.keys(), self._condition, float("inf"), self._read)
        for number, (kind, node, answer) in asked.items():
            calls.sent[number] = self._clock.seconds
            received, outcome = self._exchanged(kind, node, answer)
            self._count += 1
            self._under_way[self._count] = _UnderWay(calls, number, received, outcome)
        return calls

    def _exchanged(self, kind: str, node: int, answer: Callable[[], T | Failure]) -> tuple[float, Answer[T] | Failure]:
        """A broker answers the requests of a connection one after another."""
        self._requests.append((kind, node))
        now, last = self._clock.seconds, self._last.get(node, _Times(0.0, 0.0))
        there, back = self._kafka.delays.get((kind, node), (0.0, 0.0))
        pace = self._kafka.pace.get((kind, node), 0.0)
        times = _Times(max(now + there, last.read) + pace, max(now + there + back, last.received) + pace)
        failure = self._failure(node)
        if failure is None and times.received - now >= CALL_SECONDS:
            failure = Failure(FailureCause.TIMED_OUT, f"broker {node} at kafka-{node}:9092 does not answer")
        if failure is not None:
            return now + (self._kafka.deadline_seconds if failure.was_silence else 0.0), failure
        self._last[node] = times
        self.exchanges.append(Exchange(kind, node, now, times.read, times.received))
        self._kafka.move_on_to(times.read)
        content = answer()
        return times.received, content if isinstance(content, Failure) else Answer(content, times.received)

    def wait(self, calls: Sequence[Pending], together: float, within: float) -> bool:
        """As `adapter.kafka.calls.wait_for`; whoever waits sees to the arrivals of all."""
        latest = self._clock.seconds + within
        while not all(call.are_settled for call in calls):
            times = [first for call in calls if (first := call.first_response()) is not None]
            until = min(times) + together if times else latest
            advancing = next((call for call in calls if call.can_advance), None)
            arrives = min((each.received for each in self._under_way.values()), default=float("inf"))
            if advancing is not None and self._clock.seconds < until:
                advancing.advance()
            elif arrives <= until:
                self._arrive(arrives)
            else:
                self._clock.seconds = max(self._clock.seconds, until)
                break
        return not all(call.are_taken for call in calls)

    def _arrive(self, at: float) -> None:
        """All that arrive at this time."""
        self._clock.seconds = max(self._clock.seconds, at)
        for key in [key for key, each in self._under_way.items() if each.received == at]:
            arrived = self._under_way.pop(key)
            arrived.calls.settle(arrived.number, arrived.outcome, at)

    def _read(self, _: int, outcome: Any, __: float) -> Any:  # noqa: ANN401 - an answer or a failure
        self._clock.seconds += self._kafka.reading_seconds
        return outcome


class FakeProbe:
    """Answered as soon as its broker is no longer silent."""

    def __init__(self, kafka: Kafka, node: int) -> None:
        self._kafka = kafka
        self._node = node

    @property
    def is_done(self) -> bool:
        return self.succeeded()

    def succeeded(self) -> bool:
        return self._node not in self._kafka.silent | self._kafka.refusing
