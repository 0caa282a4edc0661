"""The slow rate: whose turn it is in a cycle. In a large cluster, groups that nobody asks for wait for theirs.

In every cycle are read: groups that were asked for of late, that a rule or named metric gives by name, that have never
been read, and that could not be read the last time; and all of them in a small cluster. The others come every k-th
cycle, never more rarely than half of `maxAge`, spread evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from adapter.snapshot import NEVER, Flags, Snapshot, State

SMALL_ROWS = 10_000
"""So many rows cost a few milliseconds: nothing is gained by reading them more slowly."""
MOST_TURNS = 8
"""Each turn keeps its own encoded requests and templates, and an eighth is about what the rest of a cycle costs."""


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """Who is due in a cycle: one entry per group."""

    number: int
    is_due: Flags
    every: NDArray[np.int16]
    """In how many cycles the group is due once, while nothing changes."""


class Turns:
    """The turns of one cluster's groups. Used by one thread."""

    def __init__(
        self,
        interval: float,
        max_age: float,
        named: Collection[str],
        asked_for: Callable[[], Collection[str]],
        small_rows: int = SMALL_ROWS,
    ) -> None:
        self._count = min(max(1, int(max_age / 2 / interval)), MOST_TURNS)
        self._named = named
        self._asked_for = asked_for
        self._small_rows = small_rows
        self._cycle = 0
        self._groups: tuple[str, ...] = ()
        self._codes: dict[str, int] = {}
        self._turn_of = np.zeros(0, dtype=np.int16)

    def next(self, groups: tuple[str, ...], known: Container[str], snapshot: Snapshot) -> Turn:
        """`known`: groups that have been read; `snapshot`: as the last cycle left it."""
        self._cycle += 1
        if self._count == 1 or len(snapshot.layout) <= self._small_rows:
            return everybodys_turn(len(groups))
        self._learn(groups)
        is_fast = np.zeros(len(groups), dtype=bool)
        is_fast[self._codes_of(self.wanted())] = True
        number = self._cycle % self._count
        is_due = is_fast | (self._turn_of == number)
        is_due[self._codes_of([group for group in groups if group not in known])] = True
        is_due[self._codes_of(in_trouble(snapshot))] = True
        return Turn(number, is_due, np.where(is_fast, 1, self._count).astype(np.int16))

    def wanted(self) -> frozenset[str]:
        """The groups that somebody asked for of late, or that are given by name."""
        return frozenset(self._named).union(self._asked_for())

    def _learn(self, groups: tuple[str, ...]) -> None:
        if groups is not self._groups:
            self._groups = groups
            self._codes = {group: code for code, group in enumerate(groups)}
            numbers = [crc32(group.encode("utf-8", "surrogateescape")) % self._count for group in groups]
            self._turn_of = np.array(numbers, dtype=np.int16)

    def _codes_of(self, groups: Collection[str]) -> list[int]:
        return [self._codes[group] for group in groups if group in self._codes]


def everybodys_turn(groups: int) -> Turn:
    return Turn(0, np.ones(groups, dtype=bool), np.ones(groups, dtype=np.int16))


def in_trouble(snapshot: Snapshot) -> list[str]:
    """Groups with a row that is new, or that should soon be readable again: they do not wait for their turn."""
    is_passing = np.array([cause.state is State.UNKNOWN for cause in snapshot.causes], dtype=bool)
    is_new = (snapshot.cause == 0) & (snapshot.received == NEVER)
    codes = np.unique(snapshot.layout.group[is_passing[snapshot.cause] | is_new])
    return [snapshot.layout.groups[code] for code in codes.tolist()]
