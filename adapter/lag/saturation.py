"""Pure: spans of time ("windows") in which members always had something to read, from one cycle after another.

A member that keeps up reads what arrives, which says nothing about what it could read. So only a member counts whose
partitions all had a backlog in every cycle of the window; the report learns from the history by the same rule."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from adapter.columns import NEVER, NOT_KNOWN, Flags, Indexes, Offsets, Seconds
from adapter.lag.layout import Layout
from adapter.lag.owners import NOT_ASKED, OwnerIds
from adapter.lag.ring import NOT_SEEN, Ring, Track
from adapter.verdicts.capacity import (
    HOURS,
    IN_FLIGHT_SECONDS,
    WINDOW_INTERVALS,
    WINDOW_SECONDS,
    BusyWindows,
    Capacity,
    capacity_of,
    stands_still,
)

MOST_WINDOWS = 60
"""An hour of backlog: what a member could do before that may have changed with its version."""


class BusyWindow(NamedTuple):
    """Of one group, what a row of `BusyWindows` has."""

    begin: float
    """In seconds of the same clock as the others."""
    seconds: float
    rate: float
    """Messages per second of one member."""
    messages: float
    commits: int


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """What one cycle found; a column has an entry for each row that is followed."""

    at: float
    read_at: Seconds
    """When the older of both offsets was received."""
    committed: Offsets
    end: Offsets
    commits_begun: Seconds
    ends_begun: Seconds
    owner: OwnerIds


@dataclass(frozen=True, slots=True, eq=False)
class Saturation:
    """The window that has begun, of some rows of one layout."""

    layout: Layout
    rows: Indexes
    first: _Reading
    latest: _Reading
    least_lag: Offsets
    is_clean: Flags
    """Every cycle has read the row, nothing was reset, and the partition did not change hands."""
    commits: NDArray[np.int32]
    """Cycles in which the row's commit moved."""

    @classmethod
    def begun(cls, ring: Ring, rows: Indexes, owner: OwnerIds) -> Self:
        """Begins a window with the latest cycle. `owner` has a number for the owner of each row, or NOT_ASKED."""
        reading = _reading(ring, rows, owner)
        is_clean = (reading.committed >= 0) & (reading.end >= 0) & (owner != NOT_ASKED)
        none = np.zeros(len(rows), np.int32)
        return cls(ring.layout, rows, reading, reading, reading.end - reading.committed, is_clean, none)

    def followed_by(self, ring: Ring, owner: OwnerIds) -> Self:
        """Adds the latest cycle, whose layout is the same."""
        reading, before = _reading(ring, self.rows, owner), self.latest
        if reading.at <= before.at:
            return self
        is_same = (reading.commits_begun == before.commits_begun) & (reading.ends_begun == before.ends_begun)
        is_same &= (owner == before.owner) & (reading.read_at > before.at)
        return replace(
            self,
            latest=reading,
            least_lag=np.minimum(self.least_lag, reading.end - reading.committed),
            is_clean=self.is_clean & is_same,
            commits=self.commits + (reading.committed > before.committed),
        )

    @property
    def seconds(self) -> float:
        return self.latest.at - self.first.at

    def is_over(self, interval: float) -> bool:
        return self.seconds >= max(WINDOW_SECONDS, WINDOW_INTERVALS * interval)

    def windows(self) -> dict[str, BusyWindow]:
        """Returns a window for each group with members that were busy throughout: what these members read."""
        seconds = self.seconds
        produced = self.latest.end - self.first.end
        has_backlog = self.is_clean & (self.least_lag > IN_FLIGHT_SECONDS * produced / seconds)
        if not has_backlog.any():
            return {}
        _, owner = np.unique(self.first.owner, return_inverse=True)
        is_idle = np.bincount(owner[~has_backlog], minlength=int(owner.max()) + 1) > 0
        (busy,) = np.nonzero(has_backlog & ~is_idle[owner])
        group = self.layout.group[self.rows[busy]]
        consumed = self.latest.committed[busy] - self.first.committed[busy]
        return {
            self.layout.groups[code]: _window(self, busy[group == code], consumed[group == code])
            for code in np.unique(group).tolist()
        }


def newest_of(windows: Iterable[BusyWindow]) -> tuple[BusyWindow, ...]:
    """Returns the newest windows, in order of time; of those that overlap, the earlier one.

    A group that stands still shows nothing, and must not take the place of what was learned before."""
    kept: list[BusyWindow] = []
    for window in sorted(windows):
        if not kept or window.begin > kept[-1].begin + kept[-1].seconds / 2:
            kept.append(window)
    if not all(window.commits for window in kept):
        kept = [window for window, is_still in zip(kept, stands_still(_columns(kept)), strict=True) if not is_still]
    return tuple(kept[-MOST_WINDOWS:])


def capacity_in(windows: Sequence[BusyWindow]) -> Capacity | None:
    """Returns what one member can do by windows whose times are since the epoch; None: they show too little."""
    return capacity_of(_columns(windows)) if windows else None


def _columns(windows: Sequence[BusyWindow]) -> BusyWindows:
    begin, seconds, rate, messages, commits = (np.array(column, np.float64) for column in zip(*windows, strict=True))
    hour = (begin // 3600 % HOURS).astype(np.intp)
    return BusyWindows(begin, seconds, seconds, rate, messages, commits, hour)


def _window(saturation: Saturation, rows: Indexes, consumed: Offsets) -> BusyWindow:
    members = len(np.unique(saturation.first.owner[rows]))
    messages, seconds = float(consumed.sum()), saturation.seconds
    commits = int(saturation.commits[rows].max(initial=0))
    return BusyWindow(saturation.first.at, seconds, messages / seconds / members, messages, commits)


def _reading(ring: Ring, rows: Indexes, owner: OwnerIds) -> _Reading:
    commits, ends = ring.commits, ring.ends
    at, ends_read = _times(ends, rows)
    _, commits_read = _times(commits, rows)
    begun = commits.begun[rows], ends.begun[rows]
    read_at = np.minimum(ends_read, commits_read)
    return _Reading(at, read_at, _newest(commits, rows), _newest(ends, rows), *begun, owner)


def _times(track: Track, rows: Indexes) -> tuple[float, Seconds]:
    """Returns when the latest cycle decided, and when each row was last received."""
    if not track.ticks:
        return NEVER, np.full(len(rows), NEVER)
    tick = track.ticks[-1]
    return tick.at, tick.received(rows)


def _newest(track: Track, rows: Indexes) -> Offsets:
    """Returns the offsets; negative where there is none."""
    if not track.ticks:
        return np.full(len(rows), NOT_KNOWN, np.int64)
    return np.where(track.begun[rows] == NOT_SEEN, NOT_KNOWN, track.ticks[-1].offset[rows])
