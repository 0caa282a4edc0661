"""The clocks of the adapter, which tests can replace."""

from typing import Protocol


class Clock(Protocol):
    def monotonic(self) -> float: ...
    def time(self) -> float: ...
