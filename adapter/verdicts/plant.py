"""A group of consumers as an autoscaler sees it, for many groups at once: replicas that start, join and leave, whole
partitions that are divided among them, and what waits in each partition.

Each group is a row ("lane") of numpy arrays. Within a step, all rates are constant."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Indexes, Seconds
from adapter.verdicts.owners import Assignor, Owners, owners_table
from adapter.verdicts.recent import Counts

Messages = NDArray[np.float64]

_OF_ALL = owners_table((1,), Assignor.RANGE)
"""Members that read all partitions together are as one that reads more."""
_TINY = 1e-300
"""Messages: no member has less to read without having nothing."""


@dataclass(frozen=True, slots=True)
class Consumers:
    """What the members of one group are like."""

    capacity: float
    """Messages per second of one member."""
    partitions: tuple[int, ...]
    """Of each topic."""
    assignor: Assignor | None = Assignor.UNIFORM
    """None: any number of members reads all partitions together, as in a share group."""
    start_seconds: float = 30.0
    """From a replica that is wanted to a pod that is ready."""
    join_seconds: float = 10.0
    """From a pod that is ready to a member with partitions."""
    pause_seconds: float = 3.0
    """For which a rebalance stops all members, or those that lose or get partitions."""
    commit_seconds: float = 5.0
    """Between two commits."""
    interval_seconds: float = 10.0
    """Between two samples of the adapter."""

    @property
    def width(self) -> int:
        """All partitions."""
        return sum(self.partitions)


class Plant:
    """Moves all lanes from step to step."""

    def __init__(self, groups: Sequence[Consumers], waiting: Messages, members: Counts) -> None:
        """`waiting`: messages in each partition (columns) of each group (rows) at the start, as wide as the widest."""
        self.waiting = waiting.copy()
        """Messages that nobody has read."""
        self.uncommitted: Messages = np.zeros(len(groups))
        """Messages that were read after the latest commit."""
        self._capacity, self._pause, self._commit = (
            np.array([getattr(group, name) for group in groups])
            for name in ("capacity", "pause_seconds", "commit_seconds")
        )
        self._stops_all = np.array([group.assignor is not None and group.assignor.stops_all for group in groups])
        self._is_shared = np.array([group.assignor is None for group in groups])
        self._most: Counts = np.array([1 if group.assignor is None else group.width for group in groups])
        self._width: Counts = np.array([group.width for group in groups])
        self._first_rows, self._tables = _tables(groups, waiting.shape[1])
        self._nobody = max(group.width for group in groups)
        self._places = (np.arange(len(groups)) * (self._nobody + 1))[:, np.newaxis]
        self._owners = self._owners_of(np.arange(len(groups)), members)
        self._slots = self._owners + self._places
        self._members = np.minimum(members, self._most)
        self._given = members
        self._stopped: Seconds = np.zeros(len(groups))
        self._is_stopped = False

    def step(self, now: float, seconds: float, arriving: Messages, members: Counts) -> Messages:
        """Lets messages arrive in each partition and so many members of each group read for some seconds, until `now`.
        Returns what each group read."""
        if members is not self._given:
            self._given = members
            self._rebalance(np.minimum(members, self._most))
        self.waiting += arriving
        work = self._capacity * np.where(self._is_shared, members, 1) * (seconds - self._lost(seconds))
        slots = self._slots.ravel()
        loads = np.bincount(slots, self.waiting.ravel(), self._places[-1, 0] + self._nobody + 1).reshape(len(work), -1)
        left = np.maximum(1 - work[:, np.newaxis] / np.maximum(loads, _TINY), 0.0)
        left[:, self._nobody] = 1.0
        kept = self.waiting * left.ravel()[slots].reshape(self.waiting.shape)
        read: Messages = (self.waiting - kept).sum(axis=1)
        self.waiting = kept
        self._commit_some(now, seconds, read)
        return read

    def _lost(self, seconds: float) -> Seconds | float:
        """Returns for how long members do not read in a step, because of rebalances."""
        if not self._is_stopped:
            return 0.0
        lost: Seconds = np.minimum(self._stopped, seconds)
        self._stopped -= lost
        self._is_stopped = bool(self._stopped.any())
        return lost

    def _rebalance(self, members: Counts) -> None:
        (changed,) = np.nonzero(members != self._members)
        if not len(changed):
            return
        owners = self._owners_of(changed, members[changed])
        moved = np.count_nonzero(owners != self._owners[changed], axis=1) / self._width[changed]
        stopped = np.where(self._stops_all[changed], 1.0, moved) * self._pause[changed]
        self._stopped[changed] += stopped
        self._is_stopped = True
        self._owners[changed], self._members[changed] = owners, members[changed]
        self._slots[changed] = owners + self._places[changed]

    def _commit_some(self, now: float, seconds: float, read: Messages) -> None:
        """The latest commit within the step has all that was read until then."""
        since = np.mod(now, self._commit)
        self.uncommitted = np.where(since < seconds, read * since / seconds, self.uncommitted + read)

    def _owners_of(self, lanes: Indexes, members: Counts) -> Owners:
        owners: Owners = self._tables[self._first_rows[lanes] + np.minimum(members, self._most[lanes])]
        return owners


def _tables(groups: Sequence[Consumers], width: int) -> tuple[Indexes, Owners]:
    """Returns the first row of each group in one table of owners, in which partitions of nobody have the last place."""
    nobody = max(group.width for group in groups)
    kinds = list(dict.fromkeys((group.partitions, group.assignor) for group in groups))
    tables, firsts, first = [], {}, 0
    for kind in kinds:
        partitions, assignor = kind
        table = _OF_ALL if assignor is None else owners_table(partitions, assignor)
        padded = np.full((len(table), width), nobody, np.int32)
        padded[:, : sum(partitions)] = np.where(table < 0, nobody, table)
        tables.append(padded)
        firsts[kind], first = first, first + len(table)
    rows = np.array([firsts[group.partitions, group.assignor] for group in groups], np.intp)
    return rows, np.concatenate(tables)
