"""What asking a broker comes to: an answer, or a failure that says whose fault it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from adapter.errors import some_of

Answered = TypeVar("Answered")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a broker gave no answer."""

    cause: str
    """One of the few words that `docs/metrics.md` lists, for counting."""
    text: str
    """For people; names the broker and its address, never a credential."""

    @property
    def was_silence(self) -> bool:
        return self.cause == "timed_out"


@dataclass(frozen=True, slots=True)
class Answer(Generic[Answered]):
    """What a broker said, and when it had been received (monotonic seconds)."""

    content: Answered
    received: float


class ClusterUnreachable(Exception):
    """No bootstrap server let us in; `failures` has one for each that was tried."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        super().__init__(some_of([failure.text for failure in failures]))
        self.failures = tuple(failures)
