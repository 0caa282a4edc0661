"""Counts of replicas and their changes over the last minutes or hours, for many HPAs at once, each of which is a column
("lane") of numpy arrays: what the HPA controller needs for stabilization windows and policies."""

from bisect import bisect_right
from typing import Literal

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
        self._dropped = 0

    @property
    def is_empty(self) -> bool:
        return not self._times

    @property
    def end(self) -> int:
        """The number of the next row. Rows keep their numbers."""
        return self._dropped + len(self._times)

    def append(self, now: float, replicas: Counts) -> None:
        """Remembers the counts of now, after all before; negative: there is none."""
        if len(self._times) == len(self._rows):
            self._make_room(now)
        self._rows[len(self._times)] = replicas
        self._times.append(now)

    def first_younger(self, now: float, seconds: float) -> int:
        """Returns the number of the first row that is younger than so many seconds."""
        return self._dropped + bisect_right(self._times, now - seconds)

    def rows(self, first: int, end: int, lanes: Indexes | slice) -> Counts:
        rows: Counts = self._rows[first - self._dropped : end - self._dropped, lanes]
        return rows

    def _make_room(self, now: float) -> None:
        """Drops the rows that no window reaches, and doubles the room if most are still needed."""
        first = bisect_right(self._times, now - self._longest)
        kept = self._rows[first : len(self._times)]
        is_crowded = 2 * len(kept) > len(self._rows)
        self._dropped += first
        self._times = self._times[first:]
        rows = np.empty_like(self._rows, shape=(2 * len(self._rows), kept.shape[1])) if is_crowded else self._rows
        rows[: len(kept)] = kept
        self._rows = rows


class Window:
    """The highest or lowest count of some lanes over the last seconds.

    Its rows are compared in two parts, so that a long window costs no more than a short one: of the older part, the
    extreme of each row and all later ones is kept; of the newer part, that of all rows."""

    def __init__(
        self, recent: RecentCounts, seconds: float, lanes: Indexes | slice, side: Literal["highest", "lowest"]
    ) -> None:
        self._recent, self._seconds, self._lanes = recent, seconds, lanes
        self._is_lowest = side == "lowest"
        self._extreme = np.minimum if self._is_lowest else np.maximum
        self._first = self._middle = self._seen = 0
        self._older = self._compared(0, 0)
        self._newer = self._nothing()

    def at(self, now: float) -> Counts:
        """Returns the extreme of those that are younger; where there is none, a negative number as the highest and the
        largest integer as the lowest."""
        first, end = self._recent.first_younger(now, self._seconds), self._recent.end
        if first >= self._middle:
            rows = self._compared(first, end)
            self._older = self._extreme.accumulate(rows[::-1], axis=0)[::-1]
            self._first, self._middle, self._newer = first, end, self._nothing()
        else:
            for row in self._compared(self._seen, end):
                self._newer = self._extreme(self._newer, row)
        self._seen = end
        if first == self._middle:
            return self._newer
        extreme: Counts = self._extreme(self._older[first - self._first], self._newer)
        return extreme

    def _compared(self, first: int, end: int) -> Counts:
        rows = self._recent.rows(first, end, self._lanes)
        return np.where(rows < 0, _LARGEST, rows) if self._is_lowest else rows

    def _nothing(self) -> Counts:
        return np.full(self._older.shape[1], _LARGEST if self._is_lowest else _NONE)


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
        self._newest = -np.inf

    def append(self, now: float, lanes: Indexes, sizes: Counts) -> None:
        """Remembers changes of so many replicas, for some lanes."""
        if not len(lanes):
            return
        times = self._times[:, lanes]
        is_outdated = np.isfinite(times) & (times < now - self._longest[lanes])
        last_outdated = len(times) - 1 - np.argmax(is_outdated[::-1], axis=0)
        at = np.where(is_outdated.any(axis=0), last_outdated, self._number[lanes])
        if at.max() == len(times):
            self._times = np.concatenate([self._times, np.full_like(self._times, -np.inf)])
            self._sizes = np.concatenate([self._sizes, np.zeros_like(self._sizes)])
        self._sizes[at, lanes], self._times[at, lanes] = sizes, now
        self._number[lanes] = np.maximum(self._number[lanes], at + 1)
        self._newest = now

    def has_within(self, now: float, seconds: float) -> bool:
        """Whether any lane changed within so many seconds."""
        return self._newest > now - seconds

    def within(self, now: float, seconds: Seconds, lanes: Indexes) -> Counts:
        """Returns the sum of those changes of each lane that are younger than its `seconds`."""
        is_younger = self._times[:, lanes] > now - seconds
        total: Counts = np.where(is_younger, self._sizes[:, lanes], 0).sum(axis=0)
        return total
