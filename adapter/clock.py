"""The clocks of the adapter, which tests can replace; this module itself is the Clock of a process."""

import time as _time
from typing import Protocol

_SINCE_BOOT = getattr(_time, "CLOCK_BOOTTIME", _time.CLOCK_MONOTONIC)

time = _time.time


def monotonic() -> float:
    """On Linux it also counts while the machine is suspended, so that what was read before does not look new."""
    return _time.clock_gettime(_SINCE_BOOT)


class Clock(Protocol):
    def monotonic(self) -> float: ...
    def time(self) -> float: ...
