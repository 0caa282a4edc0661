"""The number of members that keeps a promise as the metric of HPAs in a replay, with what the adapter would know.

Most of what the number follows from does not depend on what HPAs do: what arrives, which is computed for many syncs at
once, and only once for all partitions that get the same number. What waits is only looked at where it is more than
messages on their way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from adapter.columns import Flags, Indexes, Seconds
from adapter.verdicts.assignment import Counts, Divisions, Rates, Reading, Sharing, held_at_most
from adapter.verdicts.courses import Course, Courses
from adapter.verdicts.demands import CALMING, Promise, Promises, Wanting
from adapter.verdicts.required import decided, drains_of, following_a_rise, quick_window_of
from adapter.verdicts.simulation.consumers import Consumers, Messages
from adapter.verdicts.simulation.scalers import Lane
from adapter.verdicts.simulation.sights import Sight
from adapter.verdicts.waits import beyond_flight

MOST_SYNCS, MOST_CELLS = 16, 200_000
"""That are computed at once, and kinds of partitions of groups at these, to bound the memory."""


@dataclass(frozen=True, slots=True)
class Promised:
    """`kafka_consumergroup_required_replicas`, with the capacity that the consumers have from the start."""

    max_wait: float
    """Seconds."""

    def together(self, lanes: Sequence[Lane]) -> "_Required":
        return _Required(lanes)


class _Required:
    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._groups = [lane.consumers for lane in lanes]
        self._sharings = [sharing_of(group) for group in self._groups]
        intervals: Seconds = np.array([group.interval_seconds for group in self._groups])
        waits = [lane.rule.max_wait for lane in lanes if isinstance(lane.rule, Promised)]
        self._promises = Promises.of(
            [Promise.of(*it) for it in zip(waits, self._sharings, intervals.tolist(), strict=True)]
        )
        self._capacity = np.array([group.capacity for group in self._groups])
        self._flight = intervals + [group.commit_seconds for group in self._groups]
        self._courses: Courses | None = None
        self._ahead: _Ahead | None = None
        self._widths: Counts = np.zeros(len(lanes), np.int64)

    def values(self, sight: Sight) -> Messages:
        widths = sight.plant.widths(sight.lanes)
        if (widths != self._widths).any():
            self._know_divisions(sight, widths)
        if self._ahead is None or sight.now not in self._ahead.times:
            self._ahead = _Ahead.of(sight, self._able, self._divisions, self._kinds)
        sync = self._ahead.at(sight.now)
        known = _Known(sight, sync, self._kinds, self._capacity, self._able, self._promises, self._flight)
        known.hold(self._held)
        courses = self._courses or Courses.of([Course(replicas) for replicas in sight.replicas.tolist()])
        wanted, _, self._courses = decided(sight.now, known, self._divisions, self._promises, courses)
        return wanted.astype(np.float64)

    def _know_divisions(self, sight: Sight, widths: Counts) -> None:
        """Partitions are added to groups of one topic alone."""
        partitions = [
            group.partitions if width == group.width else (width,)
            for group, width in zip(self._groups, widths.tolist(), strict=True)
        ]
        self._widths, self._divisions = widths, Divisions.of(partitions, self._sharings)
        self._kinds = _Kinds.among(sight.plant.weights(sight.lanes), self._divisions.part)
        self._able = np.where(self._divisions.is_exclusive, self._capacity, np.inf)
        self._held = _Held(len(partitions))
        self._ahead = None


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """Partitions (columns) of groups (rows) that are divided together and get as much as one another. The first one of
    each group is a kind of its own."""

    weight: Messages
    part: Indexes
    number: Counts
    """Of partitions."""
    of: Indexes
    """Of each partition (columns): the place of its kind among those of all groups."""

    @classmethod
    def among(cls, weights: Messages, parts: Indexes) -> Self:
        """`weights` and `parts`: of the partitions (columns). Those that a group lacks have no weight."""
        kinds = np.zeros(parts.shape, np.intp)
        of_groups = [_kinds_of(*it) for it in zip(weights.tolist(), parts.tolist(), strict=True)]
        shape = len(of_groups), max(map(len, of_groups))
        weight, part, number = np.zeros(shape), np.zeros(shape, np.intp), np.zeros(shape, np.int64)
        for row, places in enumerate(of_groups):
            for column, ((_, each_part, each_weight), alike) in enumerate(places.items()):
                weight[row, column], part[row, column], number[row, column] = each_weight, each_part, len(alike)
                kinds[row, alike] = row * shape[1] + column
        return cls(weight, part, number, kinds)

    def spread(self, rates: Messages, rows: Indexes) -> Messages:
        """Returns the rates of some groups, which are those of kinds, by partition (columns)."""
        spread: Messages = rates.take(self.of.take(rows, axis=0))
        return spread


def _kinds_of(weights: Sequence[float], parts: Sequence[int]) -> Mapping[tuple[bool, int, float], list[int]]:
    """Returns the partitions of each kind of one group, which may have more weights than parts."""
    places: dict[tuple[bool, int, float], list[int]] = {}
    for place, (weight, part) in enumerate(zip(weights, parts, strict=False)):
        places.setdefault((place == 0, part, weight), []).append(place)
    return places


@dataclass(frozen=True, slots=True, eq=False)
class _Sync:
    """What arrives in the groups (rows) at one sync, as far as the adapter knows."""

    measured: Messages
    """Messages per second in a partition of each kind (columns), over the last minute."""
    total: Messages
    """Of these."""
    arriving: Messages
    """The same, following a rise."""
    pattern: Counts
    """Which partitions get messages: the first one, others, both or none."""
    rates: Rates
    busier: Rates
    """Grown by CALMING."""


@dataclass(frozen=True, slots=True, eq=False)
class _Ahead:
    """Production at the next syncs: it does not depend on the decisions made until then."""

    times: Sequence[float]
    syncs: Sequence[_Sync]

    @classmethod
    def of(cls, sight: Sight, able: Messages, divisions: Divisions, kinds: _Kinds) -> Self:
        groups, columns = kinds.weight.shape
        number = max(1, min(MOST_SYNCS, MOST_CELLS // (groups * columns)))
        times = sight.now + sight.sync_seconds * np.arange(number)
        measured, lately = sight.arriving(times, kinds.weight), sight.arriving_lately(times, kinds.weight)
        arriving = following_a_rise(measured, lately, quick_window_of(sight.intervals), kinds.number)
        rows = np.tile(np.arange(groups), number)
        cells, of = arriving.reshape(len(rows), columns), (divisions.size[rows], kinds.part[rows], kinds.number[rows])
        rates, busier = (Rates.of(each, able[rows], *of) for each in (cells, cells * CALMING))
        pattern = (arriving[..., 0] > 0) + 2 * (arriving[..., 1:] > 0).any(axis=2)
        total = (measured * kinds.number).sum(axis=2)
        parts = [slice(groups * at, groups * (at + 1)) for at in range(number)]
        syncs = [
            _Sync(measured[at], total[at], arriving[at], pattern[at], rates.among(part), busier.among(part))
            for at, part in enumerate(parts)
        ]
        return cls(times.tolist(), syncs)

    def at(self, now: float) -> _Sync:
        return self.syncs[self.times.index(now)]


class _Held:
    """The most partitions with messages that a member of each group has, as it was last computed."""

    def __init__(self, groups: int) -> None:
        self.numbers: Counts = np.zeros(groups, np.int64)
        self._known: Counts = np.full(groups, -1, np.int64)

    def renew(self, sight: Sight, sync: _Sync, kinds: _Kinds) -> None:
        """Where partitions have moved, or others get messages."""
        key = 4 * sight.plant.moves[sight.lanes] + sync.pattern
        rows = np.flatnonzero(key != self._known)
        if len(rows):
            arriving = kinds.spread(sync.arriving, rows)
            owners = sight.plant.owners(sight.lanes[rows])[:, : arriving.shape[1]]
            self.numbers[rows], self._known = held_at_most(arriving, owners), key


class _Known:
    """What required.Known asks for."""

    def __init__(
        self,
        sight: Sight,
        sync: _Sync,
        kinds: _Kinds,
        capacity: Messages,
        able: Messages,
        promises: Promises,
        flight: Seconds,
    ) -> None:
        self._sight, self._sync, self._kinds = sight, sync, kinds
        self._able, self._promises, self._flight = able, promises, flight
        self.capacity, self.read, self.rates = capacity, sight.read, sync.rates
        self.members, self.expected_members = sight.plant.members(sight.lanes), sight.replicas
        self._has_lag: Flags = np.zeros(len(capacity), np.bool_)
        self._drains = self._computed_drains()

    @property
    def is_idle(self) -> Flags:
        idle: Flags = ~(self._has_lag | (self.rates.largest > 0))
        return idle

    def hold(self, held: _Held) -> None:
        held.renew(self._sight, self._sync, self._kinds)
        self._held = held.numbers

    def held(self) -> Counts:
        return self._held

    def reading(self, rows: Indexes) -> Reading:
        return self._reading(rows, self._arriving(rows))

    def drains(self) -> Messages:
        return self._drains

    def measured(self) -> tuple[Messages, Messages]:
        return self.rates.total, self.rates.carried

    def busier(self, rows: Indexes) -> Wanting:
        return _Busier(self, rows)

    def _arriving(self, rows: Indexes) -> Messages:
        return self._kinds.spread(self._sync.arriving, rows)

    def _reading(self, rows: Indexes, arriving: Messages) -> Reading:
        owners = self._sight.plant.owners(self._sight.lanes[rows])[:, : arriving.shape[1]]
        return Reading(arriving, self.capacity[rows], self.members[rows], owners)

    def _computed_drains(self) -> Messages:
        """Where nothing waits but what was read and not committed in the time that messages are on their way, nothing
        is to be worked off."""
        plant, lanes = self._sight.plant, self._sight.lanes
        uncommitted, total = plant.uncommitted[lanes], self._sync.total
        seconds = np.divide(uncommitted, total, out=np.full(len(lanes), np.inf), where=total > 0)
        rows = np.flatnonzero((plant.lag[lanes] > 0) | ((uncommitted > 0) & (seconds > self._flight)))
        drains = np.zeros(len(lanes))
        if len(rows):
            arriving = self._arriving(rows)
            lag = self._sight.lag(rows, self._kinds.spread(self._sync.measured, rows))
            beyond = beyond_flight(lag, arriving, self._flight[rows, np.newaxis])
            self._has_lag[rows] = lag.any(axis=1)
            drains[rows] = drains_of(beyond, arriving, self._able[rows], self._promises.drain_seconds[rows])
        return drains


class _Busier:
    """Some of the groups with rates that have grown by CALMING."""

    def __init__(self, it: _Known, rows: Indexes) -> None:
        self._it, self._rows = it, rows
        self.rates, self.capacity, self.members = it._sync.busier.among(rows), it.capacity[rows], it.members[rows]
        self.is_idle: Flags = it.is_idle[rows]

    def held(self) -> Counts:
        return self._it.held()[self._rows]

    def reading(self, rows: Indexes) -> Reading:
        at = self._rows[rows]
        return self._it._reading(at, self._it._arriving(at) * CALMING)


def sharing_of(group: Consumers) -> Sharing:
    if group.assignor is None:
        return Sharing.SEVERAL_READERS
    return Sharing.BY_TOPIC if group.assignor.divides_each_topic else Sharing.TOGETHER
