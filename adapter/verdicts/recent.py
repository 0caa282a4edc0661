"""Counts of replicas and their changes over the last minutes or hours, for many HPAs at once, each of which is a column
("lane") of numpy arrays: what the HPA controller needs for stabilization windows and policies."""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Indexes, Seconds

Counts = NDArray[np.int64]

_NONE = -1
"""There is no count: a metric had no value."""
_LARGEST = int(np.iinfo(np.int64).max)


class RecentCounts:
    """The latest counts of each lane, as rows of one time each."""

    def __init__(self, lanes: int, longest_seconds: float) -> None:
        self._longest = longest_seconds
        self._rows = np.full((64, lanes), _NONE, np.int64)
        self._times: list[float] = []

    @property
    def is_empty(self) -> bool:
        return not self._times

    def append(self, now: float, replicas: Counts) -> None:
        """Remembers the counts of now, after all before; negative: there is none."""
        if len(self._times) == len(self._rows):
            self._make_room(now)
        self._rows[len(self._times)] = replicas
        self._times.append(now)

    def highest(self, now: float, seconds: float, lanes: Indexes | slice) -> Counts:
        """Returns the largest of those that are younger, for some lanes; negative where there is none."""
        highest: Counts = self._younger(now, seconds)[:, lanes].max(axis=0, initial=_NONE)
        return highest

    def lowest(self, now: float, seconds: float, lanes: Indexes | slice) -> Counts:
        """Returns the smallest of those that are younger, for some lanes; the largest integer where there is none."""
        rows = self._younger(now, seconds)[:, lanes]
        lowest: Counts = np.where(rows < 0, _LARGEST, rows).min(axis=0, initial=_LARGEST)
        return lowest

    def _younger(self, now: float, seconds: float) -> Counts:
        return self._rows[bisect_right(self._times, now - seconds) : len(self._times)]

    def _make_room(self, now: float) -> None:
        """Drops the rows that no window reaches, and doubles the room if most are still needed."""
        kept = self._younger(now, self._longest)
        self._times = self._times[len(self._times) - len(kept) :]
        rows = np.full((len(self._rows) * (2 if 2 * len(kept) > len(self._rows) else 1), kept.shape[1]), _NONE)
        rows[: len(kept)] = kept
        self._rows = rows


class Changes:
    """The controller's list of changes in one direction, for each lane. As in the controller, a new change takes the
    place of one that is older than the longest period of that direction's policies, although a policy of the other
    direction may still count that one."""

    def __init__(self, lanes: int, longest_seconds: Seconds) -> None:
        """`longest_seconds`: of each lane's policies in this direction."""
        self._longest = longest_seconds
        self._sizes = np.zeros((4, lanes), np.int64)
        self._times = np.full((4, lanes), -np.inf)
        self._number = np.zeros(lanes, np.int64)

    def append(self, now: float, lanes: Indexes, sizes: Counts) -> None:
        """Remembers changes of so many replicas, for some lanes."""
        if not len(lanes):
            return
        is_outdated = np.isfinite(self._times[:, lanes]) & (self._times[:, lanes] < now - self._longest[lanes])
        last_outdated = len(self._times) - 1 - np.argmax(is_outdated[::-1], axis=0)
        at = np.where(is_outdated.any(axis=0), last_outdated, self._number[lanes])
        if at.max() == len(self._times):
            self._times = np.concatenate([self._times, np.full_like(self._times, -np.inf)])
            self._sizes = np.concatenate([self._sizes, np.zeros_like(self._sizes)])
        self._sizes[at, lanes], self._times[at, lanes] = sizes, now
        self._number[lanes] = np.maximum(self._number[lanes], at + 1)

    def within(self, now: float, seconds: Seconds, lanes: Indexes) -> Counts:
        """Returns the sum of those changes of each lane that are younger than its `seconds`."""
        is_younger = self._times[:, lanes] > now - seconds
        total: Counts = np.where(is_younger, self._sizes[:, lanes], 0).sum(axis=0)
        return total
