"""The number of members that keeps a promise as the metric of HPAs in a replay, with what the adapter would know."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from adapter.records import Column, Records, records_of
from adapter.verdicts import courses, demands, required, whole_partitions
from adapter.verdicts.assignment import Sharing, most_members
from adapter.verdicts.courses import Course
from adapter.verdicts.demands import Need, Promise, able_of, drain_of
from adapter.verdicts.recent import Counts
from adapter.verdicts.required import decided, quick_window_of, rise_of
from adapter.verdicts.simulation import compiled
from adapter.verdicts.simulation.compiled import kernel, rule
from adapter.verdicts.simulation.consumers import Consumers, Messages
from adapter.verdicts.simulation.reading import Groups, find_owners_of, members_there
from adapter.verdicts.simulation.scalers import Lane
from adapter.verdicts.simulation.sights import RATE_SECONDS, Sight, find_lag_of, rates_over, spread, total_of
from adapter.verdicts.waits import beyond_flight


@dataclass(frozen=True, slots=True)
class Promised:
    """`kafka_consumergroup_required_replicas`, with the capacity that the consumers have from the start."""

    max_wait: float
    """Seconds."""

    def together(self, lanes: Sequence[Lane]) -> "_Required":
        return _Required(lanes)


class _AskedRecord(Need):
    """One group."""

    lane: int
    """Of the plant."""
    group: int
    """Column of the curves of what arrives."""
    interval: float
    """Seconds between two samples."""
    flight_seconds: float
    """For which messages may be on their way: read, and not committed."""
    moves: int
    """How often its partitions had been divided when their owners were seen last; 0: they never were."""


Asked = tuple[Records[_AskedRecord], Records[Course], Counts, Messages, Counts]
"""Of each group what is asked with, its course, the sizes of its parts (columns), and of its partitions (columns) the
weights and the owners."""


class _Required:
    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._groups = [lane.consumers for lane in lanes]
        self._sharings = [sharing_of(group) for group in self._groups]
        self._asked = it = records_of(_AskedRecord, len(lanes))
        it["capacity"] = [group.capacity for group in self._groups]
        it["is_exclusive"] = [sharing is not Sharing.SEVERAL_READERS for sharing in self._sharings]
        it["is_by_topic"] = [sharing is Sharing.BY_TOPIC for sharing in self._sharings]
        it["has_owners"] = True
        it["interval"] = [group.interval_seconds for group in self._groups]
        it["flight_seconds"] = it["interval"] + [group.commit_seconds for group in self._groups]
        max_waits = [lane.rule.max_wait for lane in lanes if isinstance(lane.rule, Promised)]
        promises = [Promise.of(*of) for of in zip(max_waits, self._sharings, it["interval"].tolist(), strict=True)]
        for name in ("utilization", "pause_seconds", "drain_seconds"):
            it[name] = [getattr(promise, name) for promise in promises]
        self._courses = records_of(Course, len(lanes))
        self._grown: int | None = None
        """How often groups of the plant had got more partitions when these were divided last."""

    def values(self, sight: Sight) -> Messages:
        if self._grown is None:
            self._begin(sight)
        if self._grown != sight.plant.grown:
            self._grown = sight.plant.grown
            self._divide(sight.plant.widths(sight.lanes), sight.plant.weights(sight.lanes))
        wanted = np.empty(len(self._asked))
        groups = self._asked, self._courses, self._sizes, self._weights, self._owners
        seen = sight.read, sight.replicas
        _ask_all(sight.now, groups, sight.plant.groups, sight.inflows.curves, seen, self._room, wanted)
        return wanted

    def _begin(self, sight: Sight) -> None:
        self._asked["lane"], self._asked["group"] = sight.lanes, sight.groups
        before = [Course(replicas) for replicas in sight.replicas.tolist()]
        for it in fields(Course):
            self._courses[it.name] = [getattr(course, it.name) for course in before]

    def _divide(self, widths: Counts, weights: Messages) -> None:
        """Partitions are added to groups of one topic alone."""
        partitions = [
            group.partitions if width == group.width else (width,)
            for group, width in zip(self._groups, widths.tolist(), strict=True)
        ]
        parts = [
            of if sharing is Sharing.BY_TOPIC else (sum(of),)
            for of, sharing in zip(partitions, self._sharings, strict=True)
        ]
        self._asked["most"] = [most_members(*of) for of in zip(partitions, self._sharings, strict=True)]
        self._sizes: Counts = np.zeros((len(parts), max(map(len, parts))), np.int64)
        for row, sizes in enumerate(parts):
            self._sizes[row, : len(sizes)] = sizes
        places = max(int(widths.max()), self._sizes.shape[1])
        self._owners: Counts = np.empty((len(parts), places), np.int64)
        self._weights, self._asked["moves"] = weights, 0
        self._room = np.empty(places), np.empty(places), np.empty(places)


def sharing_of(group: Consumers) -> Sharing:
    if group.assignor is None:
        return Sharing.SEVERAL_READERS
    return Sharing.BY_TOPIC if group.assignor.divides_each_topic else Sharing.TOGETHER


for function in (
    beyond_flight,
    *courses.RULES,
    *demands.RULES,
    *required.RULES,
    *whole_partitions.RULES,
):
    compiled.rule(function)


@kernel
def _ask_all(
    now: float,
    groups: Asked,
    plants: Groups,
    curves: tuple[Messages, Messages],
    seen: tuple[Messages, Counts],
    room: tuple[Messages, Messages, Messages],
    wanted: Messages,
) -> None:
    """Writes the number of members that each group wants. `seen`: what each group reads, and the replicas that it has.
    `room`: columns for what is computed of one group's partitions.

    What is known of all groups is taken apart only here: to hand it on for each group would cost more than the rest."""
    asked, all_courses, all_sizes, all_weights, all_owners = groups
    lanes, members, partitions, _ = plants
    busiest, others = curves
    read, replicas = seen
    all_arriving, all_lag, all_room = room
    for row in range(len(asked)):
        need = asked[row]
        at, lane = need.lane, lanes[need.lane]
        arriving, lag = all_arriving[: lane.width], all_lag[: lane.width]
        weights, owners = all_weights[row, : lane.width], all_owners[row, : lane.width]
        sampled, quick = now - now % need.interval, quick_window_of(need.interval)
        rates = rates_over(busiest, others, need.group, sampled, RATE_SECONDS)
        lately = rates_over(busiest, others, need.group, sampled, quick)
        usual = total_of(lane, rates)
        spread(rates, weights, arriving)
        # Where nothing waits but what was read and not committed in the time that messages are on their way, nothing is
        # to be worked off.
        need.waits = lane.lag > 0 or lane.uncommitted > usual * need.flight_seconds
        if need.waits:
            find_lag_of(lane, members, partitions, at, arriving, usual, lag)
        _follow(rise_of(usual, total_of(lane, lately), quick), lately, weights, arriving)
        need.drain = _drain_of(need, lag, arriving) if need.waits else 0.0
        need.read, need.members, need.expected_members = read[row], members_there(lane), replicas[row]
        if need.moves != lane.moves:
            find_owners_of(lane, partitions, at, owners)
            need.moves = lane.moves
        own_room = all_room[: max(lane.width, all_sizes.shape[1])]
        number, _ = decided(now, need, all_courses[row], arriving, arriving, owners, all_sizes[row], own_room)
        wanted[row] = number


@rule
def _follow(rise: float, lately: tuple[float, float], weights: Column[float], arriving: Column[float]) -> None:
    """Raises what arrives, as `following_a_rise` does."""
    if math.isinf(rise):
        spread(lately, weights, arriving)
    elif rise > 1:
        for place in range(len(arriving)):
            arriving[place] *= rise


@rule
def _drain_of(need: _AskedRecord, lag: Messages, arriving: Messages) -> float:
    """Returns what is to be worked off (`drain_of`). Of the lag, it leaves what is beyond messages on their way."""
    for place in range(len(lag)):
        lag[place] = beyond_flight(lag[place], arriving[place], need.flight_seconds)
    return drain_of(lag, arriving, able_of(need), need.drain_seconds)
