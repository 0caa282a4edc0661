"""A group of consumers as an autoscaler sees it, for many groups at once: replicas that start, join and leave, whole
partitions that are divided among them, and what waits in each partition.

Each group is a column ("lane") of numpy arrays, and its members are rows. A member reads the same share of what waits
in each of its partitions. So a step computes only how much waits for each member. What waits in a partition follows
from the share that is left, and is computed when rates change or partitions move. In between, all rates are constant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from adapter.columns import Indexes, Seconds
from adapter.verdicts.assignment import UNKNOWN
from adapter.verdicts.owners import Owners
from adapter.verdicts.recent import Counts
from adapter.verdicts.simulation.consumers import ROW_OF_NOBODY, Consumers, Messages, owner_rows
from adapter.verdicts.simulation.slots import Entries, Slots, Strides

_TINY = 1e-300
"""Messages: no member has less to read without having nothing."""
_ALL = slice(None)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Messages per second of each lane."""

    busiest: Messages
    """In the first partition."""
    others: Messages
    """In each other partition of weight 1."""


class Plant:
    """Moves all lanes from step to step."""

    def __init__(
        self,
        groups: Sequence[Consumers],
        waiting: Messages,
        members: Counts,
        weights: Messages | None = None,
        rooms: Sequence[int] | None = None,
    ) -> None:
        """`waiting`: messages in each partition (columns) of each group (rows) at the start, as wide as the widest.
        `weights`: how much the partitions get, compared with others of the group; the first one's has no meaning. None:
        all get the same. `rooms`: the most partitions that each group will have; None: as many as the widest."""
        lanes, width = waiting.shape
        self.uncommitted: Messages = np.zeros(lanes)
        """Messages that were read after the latest commit."""
        self._capacity, self._pause, self._commit = (
            np.array([getattr(group, name) for group in groups])
            for name in ("capacity", "pause_seconds", "commit_seconds")
        )
        self._stops_all = np.array([group.assignor is not None and group.assignor.stops_all for group in groups])
        self._is_shared = np.array([group.assignor is None for group in groups])
        self._is_any_shared = bool(self._is_shared.any())
        self._commits, self._commit_of = np.unique(self._commit, return_inverse=True)
        self._most: Counts = np.array([1 if group.assignor is None else group.width for group in groups])
        self._width: Counts = np.array([group.width for group in groups])
        self._first_rows, self._tables = owner_rows(groups, width)
        self._lanes: Indexes = np.arange(lanes)
        own = np.array([width] * lanes if rooms is None else rooms, np.intp)
        self._cells = Strides(width * self._lanes, np.ones(lanes, np.intp), own)
        """The partitions that each lane will have, in columns of all partitions."""
        exists = np.arange(width) < self._width[:, np.newaxis]
        self._weights: Messages = exists.astype(float) if weights is None else np.where(exists, weights, 0.0)
        self._weights[:, 0] = 0.0
        self._by_weight, self._all_weights = np.zeros((lanes, width)), np.zeros(lanes)
        self._weigh(self._lanes)
        self._given = members
        self._members = np.minimum(members, self._most)
        self._owners: Owners = self._tables.take(self._first_rows + self._members, axis=0)
        self._partitions: Messages = waiting.copy()
        """What waited in each of them when this was computed last."""
        self._slots = Slots(np.where(self._is_shared, 2, 1 + own))
        """Of nobody, and of the most members that each lane will have."""
        self._columns = _Columns(self._slots)
        self._first: Indexes = np.zeros(lanes, np.intp)
        """The slot of the owner of each lane's first partition."""
        self.moves: Counts = np.zeros(lanes, np.int64)
        """How often the partitions of each lane were divided anew."""
        self._step_seconds = 0.0
        self._arriving = Arrivals(np.zeros(lanes), np.zeros(lanes))
        self._in_all: Messages = np.zeros(lanes)
        """Messages per second that arrive in all partitions together."""
        self._working: Messages = self._capacity
        self._seconds: Seconds = np.zeros(lanes)
        """Since the shares were computed last."""
        self._busiest_gathered: Messages = np.zeros(lanes)
        self._stopped: Seconds = np.zeros(lanes)
        self._is_stopped = False
        self._divide(self._lanes, self._slots.rows.of(self._lanes), self._cells.of(self._lanes))
        self.lag: Messages = self._sum_of_loads()
        """Messages that nobody has read."""

    def arrive(self, arriving: Arrivals, capacity: Messages | None = None) -> None:
        """Lets so many messages arrive from now on. `capacity`: that of a member, as a share of the usual one."""
        self._share_all()
        self._arriving = arriving
        self._in_all = arriving.busiest + arriving.others * self._all_weights
        self._working = self._capacity if capacity is None else self._capacity * capacity
        self._find_growth_of_all()

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
        self._partitions[at] = self.waiting(at)
        slots = self._slots.rows.of(at).at
        self._columns.left[slots], self._columns.gathered[slots], self._busiest_gathered[at] = 1.0, 0.0, 0.0
        self._first_rows[lane] = len(self._tables)
        self._tables = np.concatenate([self._tables, owner_rows([group], self._weights.shape[1])[1]])
        self._most[lane] = self._most[lane] if self._is_shared[lane] else group.width
        self._width[lane] = group.width
        self._weights[lane, 1 : group.width] = weights[1:]
        self._weigh(at)
        self._in_all = self._arriving.busiest + self._arriving.others * self._all_weights
        self._move(at, np.minimum(self._given, self._most)[at])

    def members(self, lanes: Indexes) -> Counts:
        """Returns how many members have partitions, or share all of them; UNKNOWN: the group rebalances."""
        there = np.where(self._is_shared[lanes], self._given[lanes], self._members[lanes])
        return np.where(self._stopped[lanes] > 0, UNKNOWN, there)

    def owners(self, lanes: Indexes) -> Indexes:
        """Returns the member that has each partition (columns); negative: nobody."""
        return self._owners[lanes].astype(np.intp) - ROW_OF_NOBODY - 1

    def weights(self, lanes: Indexes) -> Messages:
        """Returns those of the partitions (columns), where the first one's has no meaning."""
        return self._weights[lanes]

    def widths(self, lanes: Indexes) -> Counts:
        """Returns how many partitions exist."""
        return self._width[lanes]

    def step(self, now: float, seconds: float, members: Counts) -> Messages:
        """Lets so many members of each group read for some seconds, until `now`. Returns what each group read."""
        if seconds != self._step_seconds:
            self._step_seconds = seconds
            self._find_growth_of_all()
        if members is not self._given:
            self._rebalance(members)
        loads = self._columns.loads
        loads += self._columns.growth
        self._make_up_for_stops(seconds)
        np.maximum(loads, 0.0, out=loads)
        self._seconds += seconds
        read: Messages = self._in_all * seconds
        read += self.lag
        self.lag = self._sum_of_loads()
        read -= self.lag
        self._commit_some(now, seconds, read)
        return read

    @property
    def busiest(self) -> Messages:
        """What waits in the first partition of each lane."""
        self._share_all()
        waiting: Messages = self._partitions[:, 0] * self._columns.left.take(self._first) + self._busiest_gathered
        return waiting

    @property
    def longest(self) -> Messages:
        """What waits in the other partition of each lane in which most waits for its weight, divided by the weight."""
        self._share_all()
        its, waiting = self._columns, self._columns.scratch
        np.multiply(its.longest, its.left, out=waiting)
        waiting += its.gathered
        waiting *= its.reads_others
        return self._slots.gathered([np.maximum.reduce(table, axis=0) for table in its.scratch_tables])

    def waiting(self, lanes: Indexes) -> Messages:
        """Returns what waits in each partition (columns) of some lanes (rows)."""
        rows, cells = self._slots.rows.of(lanes), self._cells.of(lanes)
        waiting = np.zeros((len(lanes), self._partitions.shape[1]))
        places = cells.at + (waiting.shape[1] * (self._lanes[: len(lanes)] - lanes)).take(cells.lane)
        waiting.ravel()[places] = self._waiting(rows, cells, self._share(lanes, rows))
        return waiting

    def _waiting(self, rows: Entries, cells: Entries, shares: "_Shares") -> Messages:
        """Returns the same, one partition after another."""
        owners = self._owners.take(cells.at) + rows.first.take(cells.lane)
        waiting: Messages = self._partitions.take(cells.at) * shares.left.take(owners)
        waiting += self._weights.take(cells.at) * shares.gathered.take(owners)
        waiting[cells.first] += shares.busiest
        return waiting

    def _weigh(self, lanes: Indexes) -> None:
        weights = self._weights[lanes]
        self._by_weight[lanes] = np.divide(1, weights, out=np.zeros_like(weights), where=weights > 0)
        self._all_weights[lanes] = weights.sum(axis=1)

    def _share_all(self) -> None:
        """Computes what is left of each message that waited, or has arrived since this was done last."""
        if not self._seconds.any():
            return
        its, left = self._columns, self._columns.scratch
        busiest, others = (
            self._arriving.busiest * self._seconds,
            self._slots.spread(self._arriving.others * self._seconds),
        )
        for table, weight_of, arrived in zip(its.scratch_tables, its.weight_tables, others, strict=True):
            np.multiply(weight_of, arrived, out=table)
        left += its.before
        left[self._first] += busiest
        np.maximum(left, _TINY, out=left)
        np.divide(its.loads, left, out=left)
        for table in its.scratch_tables:
            table[ROW_OF_NOBODY] = 1.0
        self._busiest_gathered = (self._busiest_gathered + busiest) * left.take(self._first)
        its.left *= left
        for gathered, arrived in zip(its.gathered_tables, others, strict=True):
            np.add(gathered, arrived, out=gathered)
        its.gathered *= left
        its.before[:] = its.loads
        self._seconds[:] = 0.0

    def _share(self, lanes: Indexes, rows: Entries) -> "_Shares":
        """Does the same for some lanes, and returns what it comes to."""
        its, shares = self._columns, self._shares_of(lanes, rows)
        its.left[rows.at], its.gathered[rows.at] = shares.left, shares.gathered
        its.before[rows.at] = its.loads.take(rows.at)
        self._busiest_gathered[lanes], self._seconds[lanes] = shares.busiest, 0.0
        return shares

    def _shares_of(self, lanes: Indexes, rows: Entries) -> "_Shares":
        its, seconds = self._columns, self._seconds[lanes]
        shares = _Shares(its.left.take(rows.at), its.gathered.take(rows.at), self._busiest_gathered[lanes])
        if not seconds.any():
            return shares
        first = rows.first + self._owners[lanes, 0]
        busiest, others = self._arriving.busiest[lanes] * seconds, self._arriving.others[lanes] * seconds
        others = others.take(rows.lane)
        left = its.weight_of.take(rows.at) * others
        left += its.before.take(rows.at)
        left[first] += busiest
        np.maximum(left, _TINY, out=left)
        np.divide(its.loads.take(rows.at), left, out=left)
        left[rows.first] = 1.0
        return _Shares(shares.left * left, (shares.gathered + others) * left, (shares.busiest + busiest) * left[first])

    def _make_up_for_stops(self, seconds: float) -> None:
        """Adds what members did not read in a step because of rebalances."""
        if not self._is_stopped:
            return
        (stopped,) = np.nonzero(self._stopped)
        lost = np.minimum(self._stopped[stopped], seconds)
        rows = self._slots.rows.of(stopped)
        self._columns.loads[rows.at] += _of_members(lost * self._work(stopped), rows)
        self._stopped[stopped] -= lost
        self._is_stopped = bool(self._stopped.any())

    def _work(self, lanes: Indexes | slice) -> Messages:
        """Returns what one member reads in a second. In a share group, all are one."""
        working: Messages = self._working[lanes]
        return working * np.where(self._is_shared[lanes], self._given[lanes], 1) if self._is_any_shared else working

    def _find_growth_of_all(self) -> None:
        its, others = self._columns, self._slots.spread(self._arriving.others)
        for growth, weight_of, arriving in zip(its.growth_tables, its.weight_tables, others, strict=True):
            np.multiply(weight_of, arriving, out=growth)
        its.growth[self._first] += self._arriving.busiest
        for growth, work in zip(its.growth_tables, self._slots.spread(self._work(_ALL)), strict=True):
            growth[ROW_OF_NOBODY + 1 :] -= work
        its.growth *= self._step_seconds

    def _find_growth(self, lanes: Indexes) -> None:
        rows = self._slots.rows.of(lanes)
        self._columns.growth[rows.at] = self._growth_of(lanes, rows, self._columns.weight_of.take(rows.at))

    def _growth_of(self, lanes: Indexes, rows: Entries, weight_of: Messages) -> Messages:
        growth: Messages = weight_of * self._arriving.others[lanes].take(rows.lane)
        growth[rows.first + self._owners[lanes, 0]] += self._arriving.busiest[lanes]
        growth -= _of_members(self._work(lanes), rows)
        growth *= self._step_seconds
        return growth

    def _rebalance(self, members: Counts) -> None:
        """In a share group, only the work changes."""
        (changed,) = np.nonzero(members != self._given)
        if not len(changed):
            return
        self._given = members
        there = np.minimum(members[changed], self._most[changed])
        is_divided = there != self._members[changed]
        self._move(changed[is_divided], there[is_divided])
        if self._is_any_shared:
            self._find_growth(changed[self._is_shared[changed]])

    def _move(self, lanes: Indexes, members: Counts) -> None:
        if not len(lanes):
            return
        rows, cells = self._slots.rows.of(lanes), self._cells.of(lanes)
        owners = self._owners_among(lanes, cells, members)
        is_moved = owners != self._owners.take(cells.at)
        moved = np.bincount(cells.lane, is_moved, len(lanes)) / self._width[lanes]
        self._stopped[lanes] += np.where(self._stops_all[lanes], 1.0, moved) * self._pause[lanes]
        self._is_stopped = self._is_stopped or bool(self._stopped[lanes].any())
        self._partitions.ravel()[cells.at] = self._waiting(rows, cells, self._shares_of(lanes, rows))
        self._owners.ravel()[cells.at], self._members[lanes] = owners, members
        self._divide(lanes, rows, cells)

    def _divide(self, lanes: Indexes, rows: Entries, cells: Entries) -> None:
        """Assigns the partitions of some lanes to members, once it is known what waits in each."""
        its, number = self._columns, len(rows.at)
        owners = self._owners.take(cells.at) + rows.first.take(cells.lane)
        waiting, weights, by_weight = (
            column.take(cells.at) for column in (self._partitions, self._weights, self._by_weight)
        )
        loads, weight_of = (np.bincount(owners, column, number) for column in (waiting, weights))
        longest = np.zeros(number)
        np.maximum.at(longest, owners, waiting * by_weight)
        its.longest[rows.at], its.weight_of[rows.at], its.reads_others[rows.at] = longest, weight_of, weight_of > 0
        its.loads[rows.at] = its.before[rows.at] = loads
        its.growth[rows.at] = self._growth_of(lanes, rows, weight_of)
        its.left[rows.at], its.gathered[rows.at] = 1.0, 0.0
        self._busiest_gathered[lanes], self._seconds[lanes] = 0.0, 0.0
        self._first[lanes] = rows.at.take(owners.take(cells.first))
        self.moves[lanes] += 1

    def _sum_of_loads(self) -> Messages:
        return self._slots.gathered([np.add.reduce(table, axis=0) for table in self._columns.load_tables])

    def _commit_some(self, now: float, seconds: float, read: Messages) -> None:
        """The latest commit within the step has all that was read until then."""
        since = np.mod(now, self._commits)
        is_within = since < seconds
        if is_within.all():
            self.uncommitted = read * since[self._commit_of] / seconds
        else:
            each, within = since[self._commit_of], is_within[self._commit_of]
            self.uncommitted = np.where(within, read * each / seconds, self.uncommitted + read)

    def _owners_among(self, lanes: Indexes, cells: Entries, members: Counts) -> Owners:
        """Returns those of partitions among so many members of each lane, as many as can have one at most."""
        ahead = self._tables.shape[1] * (self._first_rows[lanes] + members - lanes)
        owners: Owners = self._tables.take(cells.at + ahead.take(cells.lane))
        return owners


class _Shares(NamedTuple):
    """Of the members of some lanes."""

    left: Messages
    """Of each message that waited when partitions moved last, the share that each member has not read."""
    gathered: Messages
    """Messages that have arrived since and wait in a partition of weight 1."""
    busiest: Messages
    """The same in the first partition of each lane."""


class _Columns:
    """What is known of each member, in slots."""

    def __init__(self, slots: Slots) -> None:
        self.loads, self.before, self.left, self.gathered = (slots.column() for _ in range(4))
        """What waits for each; what waited when the shares were computed last; and these shares."""
        self.growth = slots.column()
        """By how much the loads grow in a step if nobody stops."""
        self.weight_of, self.reads_others, self.longest = (slots.column() for _ in range(3))
        """The weights of all partitions together; 1 if any has one; and the most that waited in one, by its weight."""
        self.scratch = slots.column()
        self.load_tables, self.growth_tables, self.weight_tables, self.gathered_tables, self.scratch_tables = (
            slots.tables(column) for column in (self.loads, self.growth, self.weight_of, self.gathered, self.scratch)
        )
        """The same, as tables."""


def _of_members(values: Messages, rows: Entries) -> Messages:
    """Returns the values of lanes for each of their members, and nothing for nobody."""
    spread: Messages = values.take(rows.lane)
    spread[rows.first] = 0.0
    return spread
