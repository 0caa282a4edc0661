"""What one member of a group can do, learned from spans of time ("windows") in which its members always had something
to read. It may differ by the hour of the day, and a single number may not exist: then none is advised."""

import math
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags, Indexes, Seconds

WINDOW_SECONDS = 60
"""A window is at least this long: commits come in steps, so shorter ones measure the step."""
WINDOW_INTERVALS = 4
"""And at least so many intervals of samples."""
IN_FLIGHT_SECONDS = 30
"""A lag of less than what is produced in this time may be messages on their way, not a backlog."""
HOURS = 24
ENOUGH_WINDOWS = 10
"""Fewer give a capacity that one slow minute could have made."""
STEADY = 1.5
"""p95 / p25 of windows that show one capacity; a larger ratio has causes of its own."""
EXPLAINED = 0.75
"""Of the windows, those that lie in hours of the day which are steady in themselves, if the hour is the cause."""
ENOUGH_COMMITS = 3
"""Of a window, on average: commits come in steps, and fewer measure the steps."""
ENOUGH_MESSAGES = 100
"""Of a window, on average: fewer scatter by chance alone."""
STANDSTILL_SECONDS = 1800.0
"""Windows without a commit for so long show a group that stands still: what it does, not what it can do."""
Rates = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class BusyWindows:
    """Columns of one length, in order of time. Every member had a backlog throughout each window."""

    begin: Seconds
    """Since the epoch."""
    length: Seconds
    """From one beginning to the next, where windows follow one another."""
    seconds: Seconds
    """Of the length, the time that was seen."""
    rate: Rates
    """Messages per second of one member."""
    messages: Rates
    commits: NDArray[np.float64]
    """Samples in which commits moved."""
    hour: Indexes
    """Of the day, 0 to 23, in the time zone of the people who read it."""

    def __len__(self) -> int:
        return len(self.begin)

    def taken(self, keep: Flags | Indexes) -> "BusyWindows":
        return BusyWindows(*(getattr(self, field.name)[keep] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Capacity:
    """Messages per second of one member, as a distribution over windows; of each hour of the day NaN, where it has too
    few windows."""

    windows: int
    seconds: float
    p25: float
    p50: float
    p95: float
    windows_by_hour: tuple[int, ...]
    p25_by_hour: tuple[float, ...]
    p95_by_hour: tuple[float, ...]

    @property
    def is_firm(self) -> bool:
        return self.windows >= ENOUGH_WINDOWS

    @property
    def is_steady(self) -> bool:
        """Whether it is one capacity, whatever the hour of the day."""
        return self.p95 <= STEADY * self.p25

    @property
    def is_by_hour(self) -> bool:
        """Whether it differs by the hour of the day, and hardly within the hours."""
        hours = zip(self.windows_by_hour, self.p25_by_hour, self.p95_by_hour, strict=True)
        explained = sum(windows for windows, p25, p95 in hours if p95 <= STEADY * p25)
        return not self.is_steady and explained >= EXPLAINED * self.windows

    @property
    def advised(self) -> float:
        """What to count with: the lower quartile, of the slowest hour of the day where they differ, because a capacity
        that is too high lets the lag grow without an end. NaN: it scatters, and nothing explains it."""
        if self.is_steady:
            return self.p25
        return min(it for it in self.p25_by_hour if not math.isnan(it)) if self.is_by_hour else math.nan

    @property
    def slowest_hours(self) -> tuple[int, ...]:
        """The hours of the day that are not much faster than the slowest one."""
        known = [it for it in self.p25_by_hour if not math.isnan(it)]
        return tuple(hour for hour, p25 in enumerate(self.p25_by_hour) if known and p25 <= STEADY * min(known))


def capacity_of(windows: BusyWindows) -> Capacity | None:
    """None: the windows are too few, or too short for how rarely the group commits."""
    windows = _put_together(windows.taken(~stands_still(windows)))
    if not len(windows):
        return None
    p25, p50, p95 = (float(value) for value in np.percentile(windows.rate, (25, 50, 95)))
    numbers = np.bincount(windows.hour, minlength=HOURS)
    by_hour = [
        np.percentile(windows.rate[windows.hour == hour], (25, 95))
        if number >= ENOUGH_WINDOWS
        else (math.nan, math.nan)
        for hour, number in enumerate(numbers.tolist())
    ]
    return Capacity(
        windows=len(windows),
        seconds=float(windows.seconds.sum()),
        p25=p25,
        p50=p50,
        p95=p95,
        windows_by_hour=tuple(numbers.tolist()),
        p25_by_hour=tuple(float(low) for low, _ in by_hour),
        p95_by_hour=tuple(float(high) for _, high in by_hour),
    )


def stands_still(windows: BusyWindows) -> Flags:
    """Whether each window is part of a long stretch without a commit."""
    stretch = _numbered(_runs(windows), windows.commits > 0)
    still: Flags = (windows.commits == 0) & (
        np.bincount(stretch, windows.length)[stretch] >= STANDSTILL_SECONDS if len(windows) else False
    )
    return still


def _put_together(windows: BusyWindows) -> BusyWindows:
    """Windows that follow one another as longer ones, so that each has commits and messages enough. What is left of a
    stretch is dropped."""
    if not len(windows):
        return windows
    commits, messages = windows.commits.mean(), windows.messages.mean()
    if not commits or not messages:
        return windows.taken(np.zeros(len(windows), np.bool_))
    number = math.ceil(max(ENOUGH_COMMITS / commits, ENOUGH_MESSAGES / messages))
    if number == 1:
        return windows.taken(windows.commits > 0)
    run = _runs(windows)
    first = np.flatnonzero(np.diff(run, prepend=-1))
    place = np.arange(len(run)) - first[run]
    begins = np.flatnonzero((place % number == 0) & (np.bincount(run)[run] - place >= number))
    parts = begins[:, np.newaxis] + np.arange(number)
    seconds = windows.seconds[parts].sum(axis=1)
    read = (windows.rate * windows.seconds)[parts].sum(axis=1)
    whole = replace(
        windows.taken(begins),
        length=windows.length[parts].sum(axis=1),
        seconds=seconds,
        rate=read / seconds,
        messages=windows.messages[parts].sum(axis=1),
        commits=windows.commits[parts].sum(axis=1),
    )
    return whole.taken(whole.commits > 0)


def _runs(windows: BusyWindows) -> Indexes:
    """The number of the stretch without a gap that each window belongs to."""
    ends = windows.begin + windows.length
    follows = np.abs(windows.begin[1:] - ends[:-1]) < windows.length[1:] / 2
    return np.concatenate([np.zeros(min(len(windows), 1), np.intp), np.cumsum(~follows)]).astype(np.intp)


def _numbered(run: Indexes, flag: Flags) -> Indexes:
    """Stretches of one run and one flag, from 0."""
    changes = (np.diff(run) != 0) | (np.diff(flag.astype(np.int8)) != 0)
    return np.concatenate([np.zeros(min(len(run), 1), np.intp), np.cumsum(changes)]).astype(np.intp)
