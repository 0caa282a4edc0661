"""The clocks that the adapter reads, so that tests can set them."""

from typing import Protocol


class Clock(Protocol):
    def monotonic(self) -> float: ...
    def time(self) -> float: ...
