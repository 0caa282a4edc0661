"""The result of a request to a broker: an answer or a failure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from adapter.errors import some_of

Answered = TypeVar("Answered")


@dataclass(frozen=True, slots=True)
class Failure:
    cause: str
    """One of the words listed in `docs/metrics.md`, for counting."""
    text: str
    """For people; names the broker and its address, never a credential."""

    @property
    def was_silence(self) -> bool:
        return self.cause == "timed_out"


@dataclass(frozen=True, slots=True)
class Answer(Generic[Answered]):
    """A broker's answer, and when it was received (monotonic seconds)."""

    content: Answered
    received: float


class BrokersUnreachable(Exception):
    """No bootstrap server accepted the connection; `failures` has one entry for each attempt."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        super().__init__(some_of([failure.text for failure in failures]))
        self.failures = tuple(failures)
