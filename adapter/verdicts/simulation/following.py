"""HPAs that follow the lag of their groups, compiled: what an HPA reads, what it decides, and when a replica that it
wants is a member.

A group depends on no other one, so each is taken through many minutes before the next one. All that is known of it is
then in the processor's fastest cache."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags, Seconds
from adapter.records import Records
from adapter.verdicts import controllers, recent
from adapter.verdicts.controllers import Hpas, Milli, sync_one
from adapter.verdicts.recent import NONE, CountRecord, WindowRecord, extreme, remember
from adapter.verdicts.simulation.compiled import kernel, rule
from adapter.verdicts.simulation.consumers import Messages
from adapter.verdicts.simulation.reading import Arrivals, Groups, LaneRecord, advance, begin_minute, longest_of

for each in (*recent.RULES, *controllers.RULES):
    rule(each)


class FollowerRecord:
    """An HPA on the lag, and what it has seen of its group."""

    most: float
    """Messages, above which more lag is not served."""
    messages_per_replica: float
    """0: the metric is messages, and not replicas."""
    reads_ready: bool
    """Whether it matters to the HPA how many replicas are ready."""
    commits: int
    """The row of `Times.ages` for the group's commits."""
    samples: int
    """That for the adapter's samples."""
    seen: float
    """The lag in the latest sample."""
    before: float
    """The lag at the latest sync."""
    replicas: int
    """That are wanted."""
    changes: int
    """Of these."""


class Delays(NamedTuple):
    """The replicas that have been wanted without a break for so many seconds, which differ between HPAs."""

    windows: Records[WindowRecord]
    counts: Records[CountRecord]


class Followers(NamedTuple):
    """What there is of each HPA (rows)."""

    followers: Records[FollowerRecord]
    hpas: Hpas
    joins: Delays
    """Until a replica is a member."""
    starts: Delays
    """Until it is ready."""
    values: Milli
    """Of the metrics of one HPA, at a sync."""


class Times(NamedTuple):
    """The syncs of some minutes, one after another."""

    step: float
    """Seconds from one to the next."""
    begins: Seconds
    """Of the step before each sync."""
    ends: Seconds
    ages: Seconds
    """Since the latest multiple of several periods (rows) at each sync (columns)."""


class Ends(NamedTuple):
    """What there is of lanes (rows) at the end of each minute (columns)."""

    lag: NDArray[np.float32]
    """As the adapter serves it: with what was read and not committed."""
    replicas: NDArray[np.int32]
    busiest: Messages
    """What waits in the first partition."""
    others: Messages
    """What waits in the other one in which most waits for its weight, divided by the weight."""


@kernel
def follow_all(
    groups: Groups,
    of: Followers,
    arriving: Arrivals,
    is_known: Flags,
    least: NDArray[np.int64],
    times: Times,
    ends: Ends,
    first: int,
) -> None:
    """Takes all groups through some minutes, and writes what there is at their ends, from the column `first` on.
    `is_known`: whether each HPA (columns) gets a value in each minute (rows); `least`: its least replicas then."""
    minutes = len(is_known)
    syncs = len(times.ends) // minutes
    for at in range(len(groups.lanes)):
        for minute in range(minutes):
            begin_minute(groups, at, arriving, minute)
            of.hpas.specs[at].least = least[minute, at]
            for sync in range(minute * syncs, (minute + 1) * syncs):
                _follow(groups, of, at, is_known[minute, at], times, sync)
            ends.lag[at, first + minute] = served_lag(groups.lanes[at])
            ends.replicas[at, first + minute] = of.followers[at].replicas
            ends.busiest[at, first + minute], ends.others[at, first + minute] = longest_of(groups, at)


@kernel
def want_all(delays: Delays, now: float, replicas: NDArray[np.int64]) -> None:
    """Remembers how many replicas are wanted of each lane."""
    for at in range(len(delays.windows)):
        remember(delays.windows, delays.counts, at, now, replicas[at])


@kernel
def find_all(delays: Delays, now: float, otherwise: NDArray[np.int64], found: NDArray[np.int64]) -> None:
    """Writes how many replicas of each lane have been wanted for long enough (`wanted_long`)."""
    for at in range(len(delays.windows)):
        found[at] = wanted_long(delays, at, now, otherwise[at])


@rule
def _follow(
    groups: Groups,
    of: Followers,
    at: int,
    is_known: bool,  # noqa: FBT001 - as compiled code calls it
    times: Times,
    sync: int,
) -> None:
    """Takes one group through a step and the sync after it."""
    it, now = of.followers[at], times.ends[sync]
    given = wanted_long(of.joins, at, times.begins[sync], it.replicas)
    advance(groups, at, given, times.step, times.ages[it.commits, sync])
    value = _read(it, served_lag(groups.lanes[at]), times.step, times.ages[it.samples, sync])
    of.values[:] = np.ceil(value * 1000) if is_known else np.nan
    ready = wanted_long(of.starts, at, now, it.replicas) if it.reads_ready else it.replicas
    wanted = sync_one(now, of.hpas, at, of.values, it.replicas, it.replicas, ready)
    it.changes += wanted != it.replicas
    it.replicas = wanted
    remember(of.joins.windows, of.joins.counts, at, now, wanted)
    if it.reads_ready:
        remember(of.starts.windows, of.starts.counts, at, now, wanted)


@rule
def served_lag(lane: LaneRecord) -> float:
    """Returns what waits and what was read after the latest commit."""
    return lane.lag + lane.uncommitted


@rule
def _read(it: FollowerRecord, lag: float, seconds: float, age: float) -> float:
    """Returns what an HPA reads: the adapter's latest sample, which is so many seconds old. In the step of so many
    seconds, the lag has changed evenly."""
    if age < seconds:
        it.seen = lag + (it.before - lag) * (age / seconds)
    it.before = lag
    value = min(it.seen, it.most)
    return np.ceil(value / max(it.messages_per_replica, 1.0)) if it.messages_per_replica > 0 else value


@rule
def wanted_long(delays: Delays, at: int, now: float, otherwise: int) -> int:
    """Returns how many replicas of one lane have been wanted for long enough; `otherwise`: if that is no time."""
    wanted = extreme(delays.windows, delays.counts, at, now)
    return otherwise if wanted == NONE else wanted
