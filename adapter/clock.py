"""The clocks of the adapter, which tests can replace; this module itself is the Clock of a process."""

import time as _time
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Protocol

_SINCE_BOOT = getattr(_time, "CLOCK_BOOTTIME", _time.CLOCK_MONOTONIC)

time = _time.time


def monotonic() -> float:
    """On Linux it also counts while the machine is suspended, so that what was read before does not look new."""
    return _time.clock_gettime(_SINCE_BOOT)


@cache
def boot_id() -> str | None:
    """Returns the kernel's name for the time since it booted, during which `monotonic` counts on over restarts of this
    process; None on other systems than Linux."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def is_due(last: float, period: float, now: float, interval: float) -> bool:
    """Whether work that repeats less often than every cycle is due in this one: whether this cycle is nearer to the end
    of the period than the next one, which begins after `interval`. All in seconds."""
    return now - last >= period - interval / 2


@lru_cache(1000)
def utc_text(epoch_seconds: float) -> str:
    """Returns RFC 3339 with whole seconds: `2026-11-21T11:48:29Z`."""
    return f"{datetime.fromtimestamp(epoch_seconds // 1, UTC):%Y-%m-%dT%H:%M:%SZ}"


class Clock(Protocol):
    def monotonic(self) -> float: ...
    def time(self) -> float: ...
