"""HPAs with the groups that they follow, compiled: what an HPA on the lag reads, what any HPA decides, and when a
replica that it wants is a member.

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
from adapter.verdicts.simulation.groups import Arrivals, Ends, Groups
from adapter.verdicts.simulation.reading import advance, begin_minute, end_minute, served_lag

for each in (*recent.RULES, *controllers.RULES):
    rule(each)


class FollowerRecord:
    """An HPA."""

    reads_ready: bool
    """Whether it matters to the HPA how many replicas are ready."""
    commits: int
    """The row of `Times.ages` for the group's commits."""
    samples: int
    """That for the adapter's samples."""
    replicas: int
    """That are wanted."""
    changes: int
    """Of these."""


class ReaderRecord:
    """How an HPA reads the lag, and what it has seen of it."""

    most: float
    """Messages, above which more lag is not served."""
    messages_per_replica: float
    """0: the metric is messages, and not replicas."""
    seen: float
    """The lag in the latest sample."""
    before: float
    """The lag at the latest sync."""


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
    is_known: Flags
    """Whether each HPA (columns) gets a value in each minute (rows)."""
    least: NDArray[np.int64]
    """Its least replicas then."""


@kernel
def follow_lags(
    groups: Groups,
    of: Followers,
    readers: Records[ReaderRecord],
    arriving: Arrivals,
    times: Times,
    ends: Ends,
    first: int,
) -> None:
    """Takes all groups of HPAs on the lag through some minutes, and writes what there is at their ends, from the column
    `first` on."""
    minutes = len(times.is_known)
    syncs = len(times.ends) // minutes
    for at in range(len(groups.lanes)):
        it, reader = of.followers[at], readers[at]
        for minute in range(minutes):
            begin_minute(groups, at, arriving, minute)
            of.hpas.specs[at].least = times.least[minute, at]
            for sync in range(minute * syncs, (minute + 1) * syncs):
                take_step(groups, of, at, times, sync)
                value = _read(reader, served_lag(groups.lanes[at]), times.step, times.ages[it.samples, sync])
                decide(of, at, value, times.is_known[minute, at], times.ends[sync])
            end_minute(groups, at, it.replicas, ends, first + minute)


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
def take_step(groups: Groups, of: Followers, at: int, times: Times, sync: int) -> float:
    """Takes one group through the step before a sync. Returns the messages that it read."""
    it = of.followers[at]
    given = wanted_long(of.joins, at, times.begins[sync], it.replicas)
    return advance(groups, at, given, times.step, times.ages[it.commits, sync])


@rule
def decide(of: Followers, at: int, value: float, is_known: bool, now: float) -> None:  # noqa: FBT001 - as compiled code calls it
    """Lets one HPA sync. `value`: of each of its metrics, if it gets one."""
    it = of.followers[at]
    of.values[:] = np.ceil(value * 1000) if is_known else np.nan
    ready = wanted_long(of.starts, at, now, it.replicas) if it.reads_ready else it.replicas
    wanted = sync_one(now, of.hpas, at, of.values, it.replicas, it.replicas, ready)
    it.changes += wanted != it.replicas
    it.replicas = wanted
    remember(of.joins.windows, of.joins.counts, at, now, wanted)
    if it.reads_ready:
        remember(of.starts.windows, of.starts.counts, at, now, wanted)


@rule
def _read(it: ReaderRecord, lag: float, seconds: float, age: float) -> float:
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
