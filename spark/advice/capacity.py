"""Pure: what one member of a group can do, learned only from windows in which the group was saturated.

A group that keeps up consumes what is produced: its rate then says nothing about what it could do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spark.figures.model import Windows

WINDOW_SECONDS = 60
"""A window is at least this long: commits come in steps, so shorter ones measure the step."""
IN_FLIGHT_SECONDS = 30
"""A lag of less than what is produced in this time may be messages on their way, not a backlog."""
ENOUGH_WINDOWS = 10
"""Fewer give a capacity that one slow minute could have made."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Of one member, in messages per second."""

    windows: int
    seconds: float
    p50: float
    p95: float

    @property
    def is_firm(self) -> bool:
        return self.windows >= ENOUGH_WINDOWS


def capacity_of(windows: Windows) -> Capacity | None:
    """Consumption per member over the saturated windows; None: there was none with a member."""
    usable = (windows.seconds > 0) & (windows.members > 0)
    if not usable.any():
        return None
    seconds = windows.seconds[usable]
    rates = windows.consumed[usable] / seconds / windows.members[usable]
    if not (rates > 0).any():
        return None  # a group that stands still shows what it does, not what it can do
    rates, seconds = rates[rates > 0], seconds[rates > 0]
    p50, p95 = (float(value) for value in np.percentile(rates, (50, 95)))
    return Capacity(windows=len(rates), seconds=float(seconds.sum()), p50=p50, p95=p95)
