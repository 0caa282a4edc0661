"""A group of consumers as an autoscaler sees it, for many groups at once: replicas that start, join and leave, whole
partitions that are divided among them, and what waits in each partition.

Each group is a column ("lane") of numpy arrays, and its members are rows. A member reads the same share of what waits
in each of its partitions. So a step computes only how much waits for each member. What waits in a partition follows
from the share that is left, and is computed when rates change or partitions move. In between, all rates are constant.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Indexes, Seconds
from adapter.verdicts.assignment import UNKNOWN
from adapter.verdicts.owners import NOBODY, Assignor, Owners, owners_table
from adapter.verdicts.recent import Counts

Messages = NDArray[np.float64]

_OF_ALL = owners_table((1,), Assignor.RANGE)
"""Members that read all partitions together are as one that reads more."""
_TINY = 1e-300
"""Messages: no member has less to read without having nothing."""
_ALL = slice(None)
_NOBODY = 0
"""The row of the partitions that no member has. The rows of members follow it."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Messages per second of each lane."""

    busiest: Messages
    """In the first partition."""
    others: Messages
    """In each other partition of weight 1."""


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
    table: Owners | None = field(default=None, compare=False)
    """The owner of each partition (columns) by the number of members (rows), of an assignor that is not Kafka's; None:
    that of `assignor`."""

    @property
    def width(self) -> int:
        """All partitions."""
        return sum(self.partitions)


class Plant:
    """Moves all lanes from step to step."""

    def __init__(
        self, groups: Sequence[Consumers], waiting: Messages, members: Counts, weights: Messages | None = None
    ) -> None:
        """`waiting`: messages in each partition (columns) of each group (rows) at the start, as wide as the widest.
        `weights`: how much the partitions get, compared with others of the group; the first one's has no meaning. None:
        all get the same."""
        lanes, width = waiting.shape
        self.uncommitted: Messages = np.zeros(lanes)
        """Messages that were read after the latest commit."""
        self._capacity, self._pause, self._commit = (
            np.array([getattr(group, name) for group in groups])
            for name in ("capacity", "pause_seconds", "commit_seconds")
        )
        self._stops_all = np.array([group.assignor is not None and group.assignor.stops_all for group in groups])
        self._is_shared = np.array([group.assignor is None for group in groups])
        self._commits, self._commit_of = np.unique(self._commit, return_inverse=True)
        self._most: Counts = np.array([1 if group.assignor is None else group.width for group in groups])
        self._width: Counts = np.array([group.width for group in groups])
        self._first_rows, self._tables = _tables(groups, width)
        exists = np.arange(width) < self._width[:, np.newaxis]
        self._weights: Messages = exists.astype(float) if weights is None else np.where(exists, weights, 0.0)
        self._weights[:, 0] = 0.0
        self._by_weight, self._all_weights = np.zeros((lanes, width)), np.zeros(lanes)
        self._weigh(np.arange(lanes))
        self._lanes: Indexes = np.arange(lanes)
        self._given = members
        self._members = np.minimum(members, self._most)
        self._owners = self._owners_of(self._lanes, self._members)
        self._rows = int(self._members.max(initial=0)) + 1
        """Those of members that are there, and of nobody."""
        self._partitions: Messages = waiting.copy()
        """What waited in each of them when this was computed last."""
        shape = width + 1, lanes
        self._loads, self._weight_of, self._longest = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self._before, self._left, self._gathered = np.zeros(shape), np.ones(shape), np.zeros(shape)
        self._net: Messages = np.zeros(shape)
        """By how much the loads grow in a second."""
        self._arriving = Arrivals(np.zeros(lanes), np.zeros(lanes))
        self._in_all: Messages = np.zeros(lanes)
        """Messages per second that arrive in all partitions together."""
        self._working: Messages = self._capacity
        self._seconds: Seconds = np.zeros(lanes)
        """Since the shares were computed last."""
        self._busiest_gathered: Messages = np.zeros(lanes)
        self._stopped: Seconds = np.zeros(lanes)
        self._is_stopped = False
        self._divide(self._lanes)
        self.lag: Messages = np.add.reduce(self._loads, axis=0)
        """Messages that nobody has read."""

    def arrive(self, arriving: Arrivals, capacity: Messages | None = None) -> None:
        """Lets so many messages arrive from now on. `capacity`: that of a member, as a share of the usual one."""
        self._share(_ALL)
        self._arriving = arriving
        self._in_all = arriving.busiest + arriving.others * self._all_weights
        self._working = self._capacity if capacity is None else self._capacity * capacity
        self._find_net(_ALL)

    def stop(self, seconds: Seconds) -> None:
        """Lets no member of a lane read for so many seconds from now on."""
        self._stopped += seconds
        self._is_stopped = bool(self._stopped.any())

    def replace(self, members: Messages) -> None:
        """Lets so many members of each lane leave and new ones take their places, one after another."""
        moved = np.where(self._stops_all, 1.0, 1 / np.maximum(self._members, 1))
        self.stop(2 * members * moved * self._pause)

    def grow(self, lane: int, group: Consumers, weights: Messages) -> None:
        """Adds partitions to a lane, so that it is such a group."""
        at = np.array([lane])
        self._settle(at)
        self._first_rows[lane] = len(self._tables)
        self._tables = np.concatenate([self._tables, _tables([group], self._weights.shape[1])[1]])
        self._most[lane] = self._most[lane] if self._is_shared[lane] else group.width
        self._width[lane] = group.width
        self._weights[lane, 1 : group.width] = weights[1:]
        self._weigh(at)
        self._in_all = self._arriving.busiest + self._arriving.others * self._all_weights
        self._move(at, np.minimum(self._given, self._most)[at])
        self._find_net(at)

    def members(self, lanes: Indexes) -> Counts:
        """Returns how many members have partitions, or share all of them; UNKNOWN: the group rebalances."""
        there = np.where(self._is_shared[lanes], self._given[lanes], self._members[lanes])
        return np.where(self._stopped[lanes] > 0, UNKNOWN, there)

    def owners(self, lanes: Indexes) -> Indexes:
        """Returns the member that has each partition (columns); negative: nobody."""
        return self._owners[lanes].astype(np.intp) - _NOBODY - 1

    def weights(self, lanes: Indexes) -> tuple[Messages, Counts]:
        """Returns those of the partitions (columns), where the first one's has no meaning, and how many exist."""
        return self._weights[lanes], self._width[lanes]

    def step(self, now: float, seconds: float, members: Counts) -> Messages:
        """Lets so many members of each group read for some seconds, until `now`. Returns what each group read."""
        if members is not self._given:
            self._rebalance(members)
        loads = self._loads[: self._rows]
        loads += self._net[: self._rows] * seconds
        self._make_up_for_stops(seconds)
        np.maximum(loads, 0.0, out=loads)
        self._seconds += seconds
        waited = self.lag + self._in_all * seconds
        self.lag = np.add.reduce(loads, axis=0)
        read: Messages = waited - self.lag
        self._commit_some(now, seconds, read)
        return read

    @property
    def busiest(self) -> Messages:
        """What waits in the first partition of each lane."""
        self._share(_ALL)
        left = self._left[self._owners[:, 0], self._lanes]
        waiting: Messages = self._partitions[:, 0] * left + self._busiest_gathered
        return waiting

    @property
    def longest(self) -> Messages:
        """What waits in the other partition of each lane in which most waits for its weight, divided by the weight."""
        self._share(_ALL)
        rows = slice(self._rows)
        waiting = self._longest[rows] * self._left[rows]
        waiting += self._gathered[rows]
        waiting *= self._weight_of[rows] > 0
        longest: Messages = waiting.max(axis=0)
        return longest

    def waiting(self, lanes: Indexes) -> Messages:
        """Returns what waits in each partition (columns) of some lanes (rows)."""
        self._share(lanes)
        owners, at = self._owners[lanes], lanes[:, np.newaxis]
        waiting: Messages = self._partitions[lanes] * self._left[owners, at]
        waiting += self._weights[lanes] * self._gathered[owners, at]
        waiting[:, 0] += self._busiest_gathered[lanes]
        return waiting

    def _weigh(self, lanes: Indexes) -> None:
        weights = self._weights[lanes]
        self._by_weight[lanes] = np.divide(1, weights, out=np.zeros_like(weights), where=weights > 0)
        self._all_weights[lanes] = weights.sum(axis=1)

    def _share(self, lanes: Indexes | slice) -> None:
        """Computes what is left of each message that waited, or has arrived since this was done last."""
        seconds, rows = self._seconds[lanes], slice(self._rows)
        if not seconds.any():
            return
        busiest, others = self._arriving.busiest[lanes] * seconds, self._arriving.others[lanes] * seconds
        owner, at = self._owners[lanes, 0], self._lanes[: len(seconds)]
        unread = self._loads[rows, lanes]
        left = self._weight_of[rows, lanes] * others
        left += self._before[rows, lanes]
        left[owner, at] += busiest
        np.maximum(left, _TINY, out=left)
        np.divide(unread, left, out=left)
        left[_NOBODY] = 1.0
        self._busiest_gathered[lanes] = (self._busiest_gathered[lanes] + busiest) * left[owner, at]
        self._left[rows, lanes] *= left
        left *= self._gathered[rows, lanes] + others
        self._gathered[rows, lanes], self._before[rows, lanes], self._seconds[lanes] = left, unread, 0.0

    def _make_up_for_stops(self, seconds: float) -> None:
        """Adds what members did not read in a step because of rebalances."""
        if not self._is_stopped:
            return
        (stopped,) = np.nonzero(self._stopped)
        lost = np.minimum(self._stopped[stopped], seconds)
        self._loads[_NOBODY + 1 : self._rows, stopped] += lost * self._work(stopped)
        self._stopped[stopped] -= lost
        self._is_stopped = bool(self._stopped.any())

    def _work(self, lanes: Indexes | slice) -> Messages:
        """Returns what one member reads in a second. In a share group, all are one."""
        return self._working[lanes] * np.where(self._is_shared[lanes], self._given[lanes], 1)

    def _find_net(self, lanes: Indexes | slice) -> None:
        busiest, rows = self._arriving.busiest[lanes], slice(self._rows)
        net = self._weight_of[rows, lanes] * self._arriving.others[lanes]
        net[self._owners[lanes, 0], self._lanes[: len(busiest)]] += busiest
        net[_NOBODY + 1 :] -= self._work(lanes)
        self._net[rows, lanes] = net

    def _rebalance(self, members: Counts) -> None:
        """In a share group, only the work changes."""
        (changed,) = np.nonzero(members != self._given)
        if not len(changed):
            return
        self._given = members
        divided = changed[np.minimum(members, self._most)[changed] != self._members[changed]]
        self._move(divided, np.minimum(members, self._most)[divided])
        self._find_net(changed)

    def _move(self, lanes: Indexes, members: Counts) -> None:
        owners = self._owners_of(lanes, members)
        moved = np.count_nonzero(owners != self._owners[lanes], axis=1) / self._width[lanes]
        self._stopped[lanes] += np.where(self._stops_all[lanes], 1.0, moved) * self._pause[lanes]
        self._is_stopped = self._is_stopped or bool(len(lanes))
        self._settle(lanes)
        self._owners[lanes], self._members[lanes] = owners, members
        self._make_rows(int(self._members.max()) + 1)
        self._divide(lanes)

    def _make_rows(self, rows: int) -> None:
        """Empties the rows that are used again: they have what was there when a lane last had as many members."""
        new = slice(self._rows, rows)
        for column in (self._loads, self._weight_of, self._longest, self._before, self._gathered, self._net):
            column[new] = 0.0
        self._left[new] = 1.0
        self._rows = rows

    def _settle(self, lanes: Indexes) -> None:
        """Computes what waits in each partition, so that partitions may move."""
        self._partitions[lanes] = self.waiting(lanes)
        rows = slice(self._rows)
        self._left[rows, lanes], self._gathered[rows, lanes], self._busiest_gathered[lanes] = 1.0, 0.0, 0.0

    def _divide(self, lanes: Indexes) -> None:
        """Assigns the partitions of some lanes to members."""
        number, before, weights = len(lanes), self._partitions[lanes], self._weights[lanes]
        slots = (self._owners[lanes] * number + np.arange(number)[:, np.newaxis]).ravel()
        rows = slice(self._rows)
        shape = self._rows, number
        loads, weight_of = (
            np.bincount(slots, column.ravel(), shape[0] * number).reshape(shape) for column in (before, weights)
        )
        longest = np.zeros(shape[0] * number)
        np.maximum.at(longest, slots, (before * self._by_weight[lanes]).ravel())
        self._longest[rows, lanes], self._weight_of[rows, lanes] = longest.reshape(shape), weight_of
        self._loads[rows, lanes], self._before[rows, lanes] = loads, loads

    def _commit_some(self, now: float, seconds: float, read: Messages) -> None:
        """The latest commit within the step has all that was read until then."""
        since = np.mod(now, self._commits)[self._commit_of]
        self.uncommitted = np.where(since < seconds, read * since / seconds, self.uncommitted + read)

    def _owners_of(self, lanes: Indexes, members: Counts) -> Owners:
        owners: Owners = self._tables[self._first_rows[lanes] + np.minimum(members, self._most[lanes])]
        return owners


def _tables(groups: Sequence[Consumers], width: int) -> tuple[Indexes, Owners]:
    """Returns the first row of each group in one table of the rows of owners."""
    kinds = {(group.partitions, group.assignor, id(group.table)): group for group in groups}
    tables, firsts, first = [], {}, 0
    for kind, group in kinds.items():
        table = _table(group)
        padded = np.full((len(table), width), _NOBODY, np.int32)
        padded[:, : group.width] = np.where(table == NOBODY, _NOBODY, table + 1)
        tables.append(padded)
        firsts[kind], first = first, first + len(table)
    rows = np.array([firsts[group.partitions, group.assignor, id(group.table)] for group in groups], np.intp)
    return rows, np.concatenate(tables)


def _table(group: Consumers) -> Owners:
    if group.table is not None:
        return group.table
    return _OF_ALL if group.assignor is None else owners_table(group.partitions, group.assignor)
