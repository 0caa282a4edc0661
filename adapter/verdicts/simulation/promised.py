"""The number of members that keeps a promise as the metric of HPAs in a replay, with what the adapter would know.

As in `following`, each group is taken through many minutes before the next one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from adapter.records import Column, Records, records_of
from adapter.verdicts import courses, demands, required, whole_partitions
from adapter.verdicts.assignment import Sharing, most_members
from adapter.verdicts.controllers import ControllerFlags
from adapter.verdicts.courses import Course
from adapter.verdicts.demands import Need, Promise, able_of, drain_of
from adapter.verdicts.recent import Counts
from adapter.verdicts.required import decided, quick_window_of, rise_of
from adapter.verdicts.simulation import compiled
from adapter.verdicts.simulation.compiled import kernel, rule
from adapter.verdicts.simulation.consumers import Consumers, Messages
from adapter.verdicts.simulation.following import Followers, Times, decide, take_step
from adapter.verdicts.simulation.groups import Arrivals, Ends, Groups
from adapter.verdicts.simulation.plant import Plant
from adapter.verdicts.simulation.reading import begin_minute, end_minute, find_owners_of, members_there
from adapter.verdicts.simulation.scalers import Followed, Lane, SightOf, Stretch
from adapter.verdicts.simulation.sights import (
    RATE_SECONDS,
    find_lag_of,
    nothing_read,
    rates_over,
    read_over,
    spread,
    total_of,
)
from adapter.verdicts.waits import beyond_flight


@dataclass(frozen=True, slots=True)
class Promised:
    """`kafka_consumergroup_required_replicas`, with the capacity that the consumers have from the start."""

    max_wait: float
    """Seconds."""

    def scaler(self, lanes: Sequence[Lane], flags: ControllerFlags) -> "_Promising":
        return _Promising(lanes, flags)


class _AskedRecord(Need):
    """One group."""

    inflow: int
    """The row of the curves of what arrives."""
    quick_seconds: float
    """Over which a load that rises is seen."""
    flight_seconds: float
    """For which messages may be on their way: read, and not committed."""
    moves: int
    """How often its partitions had been divided when their owners were seen last; 0: they never were."""


class Asked(NamedTuple):
    """What is asked with, of each group (rows)."""

    needs: Records[_AskedRecord]
    courses: Records[Course]
    read: Messages
    """In each of the last steps (columns; `read_over`)."""
    sizes: Counts
    """Of its parts (columns)."""
    weights: Messages
    """Of its partitions (columns)."""
    owners: Counts
    """Of these."""
    arriving: Messages
    """Room for what is computed of one group's partitions, like the following."""
    lag: Messages
    room: Messages


class _Promising(Followed):
    """HPAs on the number that keeps a promise."""

    def __init__(self, lanes: Sequence[Lane], flags: ControllerFlags) -> None:
        super().__init__(lanes, flags)
        self._groups = [lane.consumers for lane in lanes]
        self._sharings = [sharing_of(group) for group in self._groups]
        self._needs = it = records_of(_AskedRecord, len(lanes))
        it["capacity"] = [group.capacity for group in self._groups]
        it["is_exclusive"] = [sharing is not Sharing.SEVERAL_READERS for sharing in self._sharings]
        it["is_by_topic"] = [sharing is Sharing.BY_TOPIC for sharing in self._sharings]
        it["has_owners"] = True
        intervals = [group.interval_seconds for group in self._groups]
        it["quick_seconds"] = list(map(quick_window_of, intervals))
        it["flight_seconds"] = [group.interval_seconds + group.commit_seconds for group in self._groups]
        max_waits = [lane.rule.max_wait for lane in lanes if isinstance(lane.rule, Promised)]
        promises = [Promise.of(*of) for of in zip(max_waits, self._sharings, intervals, strict=True)]
        for name in ("utilization", "pause_seconds", "drain_seconds"):
            it[name] = [getattr(promise, name) for promise in promises]
        self._courses = _courses_of(lanes)
        self._read = nothing_read(len(lanes), flags.sync_seconds)
        self._grown: int | None = None
        """How often groups of the plant had got more partitions when these were divided last."""

    def run(self, stretch: Stretch, plant: Plant, sight_of: SightOf) -> None:  # noqa: ARG002 - what it sees is compiled
        if self._grown != plant.grown:
            self._grown = plant.grown
            lanes = np.arange(len(self._groups))
            self._divide(plant.widths(lanes), plant.weights(lanes))
        self._needs["inflow"] = stretch.inflow_of
        of, times = self.through(stretch)
        inflows, ends = stretch.inflows.curves, stretch.ends
        follow_promises(plant.groups, of, self._asked, inflows, stretch.arriving, times, ends, stretch.first)

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
        self._needs["most"] = [most_members(*of) for of in zip(partitions, self._sharings, strict=True)]
        self._needs["moves"] = 0
        sizes: Counts = np.zeros((len(parts), max(map(len, parts))), np.int64)
        for row, of in enumerate(parts):
            sizes[row, : len(of)] = of
        places = max(int(widths.max()), sizes.shape[1])
        owners: Counts = np.empty((len(parts), places), np.int64)
        rooms = np.empty(places), np.empty(places), np.empty(places)
        self._asked = Asked(self._needs, self._courses, self._read, sizes, weights, owners, *rooms)


def _courses_of(lanes: Sequence[Lane]) -> Records[Course]:
    courses = records_of(Course, len(lanes))
    at_first = [Course(lane.replicas) for lane in lanes]
    for it in fields(Course):
        courses[it.name] = [getattr(course, it.name) for course in at_first]
    return courses


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
def follow_promises(
    groups: Groups,
    of: Followers,
    asked: Asked,
    inflows: tuple[Messages, Messages],
    arriving: Arrivals,
    times: Times,
    ends: Ends,
    first: int,
) -> None:
    """Takes all groups of HPAs on a promise through some minutes, and writes what there is at their ends, from the
    column `first` on."""
    minutes = len(times.is_known)
    syncs = len(times.ends) // minutes
    for at in range(len(groups.lanes)):
        it, need, course = of.followers[at], asked.needs[at], asked.courses[at]
        for minute in range(minutes):
            begin_minute(groups, at, arriving, minute)
            of.hpas.specs[at].least = times.least[minute, at]
            for sync in range(minute * syncs, (minute + 1) * syncs):
                now, read = times.ends[sync], take_step(groups, of, at, times, sync)
                need.read, need.expected_members = read_over(asked.read[at], read, now, times.step), it.replicas
                number = _asked_for(now, now - times.ages[it.samples, sync], groups, at, asked, need, course, inflows)
                decide(of, at, float(number), times.is_known[minute, at], now)
            end_minute(groups, at, it.replicas, ends, first + minute)


@rule
def _asked_for(
    now: float,
    sampled: float,
    groups: Groups,
    at: int,
    asked: Asked,
    need: _AskedRecord,
    course: Course,
    inflows: tuple[Messages, Messages],
) -> int:
    """Returns the number of members that one group wants. `sampled`: when the adapter's latest sample was taken."""
    lanes, members, partitions, _ = groups
    lane = lanes[at]
    busiest, others = inflows
    arriving, lag = asked.arriving[: lane.width], asked.lag[: lane.width]
    weights, owners = asked.weights[at, : lane.width], asked.owners[at, : lane.width]
    rates = rates_over(busiest, others, need.inflow, sampled, RATE_SECONDS)
    lately = rates_over(busiest, others, need.inflow, sampled, need.quick_seconds)
    usual = total_of(lane, rates)
    spread(rates, weights, arriving)
    # Where nothing waits but what was read and not committed in the time that messages are on their way, nothing is
    # to be worked off.
    need.waits = lane.lag > 0 or lane.uncommitted > usual * need.flight_seconds
    if need.waits:
        find_lag_of(lane, members, partitions, at, arriving, usual, lag)
    _raise(rise_of(usual, total_of(lane, lately), need.quick_seconds), lately, weights, arriving)
    need.drain = _drain_of(need, lag, arriving) if need.waits else 0.0
    need.members = members_there(lane)
    if need.moves != lane.moves:
        find_owners_of(lane, partitions, at, owners)
        need.moves = lane.moves
    sizes = asked.sizes[at]
    number, _ = decided(now, need, course, arriving, arriving, owners, sizes, asked.room[: max(lane.width, len(sizes))])
    return number


@rule
def _raise(rise: float, lately: tuple[float, float], weights: Column[float], arriving: Column[float]) -> None:
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
