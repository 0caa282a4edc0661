"""The result of a request to a broker: an answer or a failure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from adapter.errors import some_of

Answered = TypeVar("Answered")


class FailureCause(StrEnum):
    """The words that the adapter's own metrics count by."""

    TIMED_OUT = "timed_out"
    REFUSED = "refused"
    DNS = "dns"
    TLS = "tls"
    AUTHENTICATION = "authentication"
    CREDENTIALS = "credentials"  # files that cannot be read
    VERSION = "version"
    CONNECTION = "connection"
    MALFORMED = "malformed"
    THROTTLED = "throttled"
    OTHER = "other"

    @property
    def blames_credentials(self) -> bool:
        return self in {FailureCause.AUTHENTICATION, FailureCause.TLS}


@dataclass(frozen=True, slots=True)
class Failure:
    cause: FailureCause
    text: str
    """For people; names the broker and its address, never a credential."""
    was_sent: bool = True
    """False: the request waited for its turn in vain, which says nothing about the state of the broker."""

    @property
    def was_silence(self) -> bool:
        return self.cause is FailureCause.TIMED_OUT


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
