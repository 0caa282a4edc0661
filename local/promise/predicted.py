"""The same run in the simulator: the same load, consumers and HPAs, and what was measured of the machine."""

import math
from typing import Protocol

import numpy as np

from adapter.columns import NOT_KNOWN, Seconds
from adapter.lag.demand import rates_by
from adapter.lag.replicas import LONGEST_COMMIT_INTERVAL
from adapter.lag.ring import ENDS, NOT_SEEN, Track, extended, past_of
from adapter.metrics.demand import window_of
from adapter.verdicts.assignment import Sharing
from adapter.verdicts.controllers import ControllerFlags, Controllers
from adapter.verdicts.courses import Course
from adapter.verdicts.demands import Demand, Promise
from adapter.verdicts.hpa import hpa_of
from adapter.verdicts.owners import Assignor, owners_table
from adapter.verdicts.recent import Counts
from adapter.verdicts.required import following_a_rise, quick_window_of, required
from adapter.verdicts.simulation.consumers import Messages
from adapter.verdicts.waits import beyond_flight
from local.promise import scenario
from local.promise.environment import Environment
from local.promise.figures import Run
from local.promise.readers import BATCH_SECONDS, Readers

RUNS = 15
DESCRIBED_SECONDS = 60
"""Between two looks at a group's members."""
BEFORE_SECONDS = scenario.START_SECONDS
"""For so long the adapter has followed the topic when the load begins."""
PARTS = np.arange(scenario.PARTITIONS)
INTERVAL = scenario.INTERVAL_SECONDS
BATCHES = round(1 / BATCH_SECONDS)
"""In a second."""
OWNERS = owners_table((scenario.PARTITIONS,), Assignor.RANGE)


class _Metric(Protocol):
    """What the HPA reads of one group."""

    def look(self, now: float, ends: Counts, commits: Counts) -> None:
        """Takes what a cycle of the adapter finds in each partition."""

    def value(self, now: float, members: int, replicas: int) -> float:
        """Returns NaN if it is not known. `members`: of the group now; `replicas`: that its HPA has."""


def predicted(group: str, environment: Environment | None = None, number: int = RUNS) -> list[Run]:
    """Returns what the simulator says of one of the groups, several times.

    Nobody knows when cycles of the adapter begin, which members get which partitions, and which pods start a little
    later than others. Where the decision of an HPA is a close one, that decides between two courses."""
    return [_predicted(group, environment or Environment(), np.random.default_rng(seed)) for seed in range(number)]


def _predicted(group: str, environment: Environment, chance: np.random.Generator) -> Run:
    metric = _Lag() if group == scenario.BY_LAG else RequiredNumber(chance)
    rates, pods = scenario.rates(), _Pods(environment.starts, chance)
    readers = Readers(scenario.CAPACITY, OWNERS, environment.pause, chance)
    controllers = Controllers([hpa_of(scenario.hpa(group))], ControllerFlags(sync_seconds=scenario.SYNC_SECONDS))
    replicas, written, due = np.zeros(len(rates), np.int64), 0, 0.0
    first_cycle = int(chance.integers(INTERVAL * BATCHES))
    for batch in range(-BEFORE_SECONDS * BATCHES, len(rates) * BATCHES):
        now, second = batch * BATCH_SECONDS, batch // BATCHES
        if batch % (INTERVAL * BATCHES) == first_cycle:
            metric.look(now, readers.ends, readers.ends - readers.waiting)
        if batch < 0:
            continue
        if batch % BATCHES == 0 and is_sync(second, environment):
            milli = np.array([[np.ceil(1000 * metric.value(now, len(pods.members(now)), pods.wanted))]])
            there = np.array([pods.wanted])
            pods.want(int(controllers.sync(now, milli, there, there, there)[0]), now)
        replicas[second] = pods.wanted
        due += rates[second] / BATCHES
        readers.write(now, [message % scenario.PARTITIONS for message in range(written, int(due))])
        written = int(due)
        readers.read(now, pods.members(now))
    return Run(replicas, np.array(readers.committed_at), np.array(readers.waits), np.ones(len(readers.waits)))


def is_sync(second: int, environment: Environment) -> bool:
    first = round(environment.first_sync)
    return second >= first and (second - first) % scenario.SYNC_SECONDS == 0


class _Pods:
    """Those of one group. They take as long to start as one of those that were measured; the youngest are the first to
    go. Kafka sorts members by ids that nobody chooses."""

    def __init__(self, starts: tuple[float, ...], chance: np.random.Generator) -> None:
        self._starts, self._chance = starts, chance
        self._pods = [(-math.inf, chance.random()) for _ in range(scenario.REPLICAS)]
        """When each joins its group, and its id."""

    @property
    def wanted(self) -> int:
        return len(self._pods)

    def want(self, replicas: int, now: float) -> None:
        # One rebalance brings in all that start at the same time.
        joined_at = now + float(self._chance.choice(self._starts))
        self._pods[replicas:] = [(joined_at, self._chance.random()) for _ in range(self.wanted, replicas)]

    def members(self, now: float) -> list[float]:
        """Returns the ids of those that have joined, in order."""
        return sorted(each for joined_at, each in self._pods if joined_at <= now)


class _Lag:
    def __init__(self) -> None:
        self._lag = math.nan

    def look(self, _now: float, ends: Counts, commits: Counts) -> None:
        self._lag = float((ends - commits).sum())

    def value(self, _now: float, _members: int, _replicas: int) -> float:
        return self._lag


class RequiredNumber:
    """The number that the adapter serves, by what it sees every few seconds."""

    def __init__(self, chance: np.random.Generator) -> None:
        self._course: Course | None = None
        self._members, self._described_at = scenario.REPLICAS, -chance.uniform(0, DESCRIBED_SECONDS)
        self._ends = Track((), np.full(len(PARTS), NOT_KNOWN, np.int64), np.full(len(PARTS), NOT_SEEN))
        self._commits, self._lag = np.zeros((2, len(PARTS)), np.int64)
        self._read_at, self._moved_at = -math.inf, np.full(len(PARTS), -math.inf)

    def look(self, now: float, ends: Counts, commits: Counts) -> None:
        received, is_read = np.full(len(PARTS), now), np.ones(len(PARTS), np.bool_)
        self._ends = extended(self._ends, now, ends, received, is_read, ENDS)
        self._moved_at = np.where(commits != self._commits, now, self._moved_at)
        self._commits, self._lag, self._read_at = commits, ends - commits, now

    def value(self, now: float, members: int, replicas: int) -> float:
        if now - self._described_at >= DESCRIBED_SECONDS:
            self._members = members
            self._described_at += DESCRIBED_SECONDS * ((now - self._described_at) // DESCRIBED_SECONDS)
        arriving, lag = self._arriving(), self._lag.astype(float)
        if np.isnan(arriving).any():
            return math.nan
        demand = Demand(
            arriving=arriving,
            lag=lag,
            beyond=beyond_flight(lag, arriving, self._flight_seconds()),
            capacity=scenario.CAPACITY,
            partitions=(scenario.PARTITIONS,),
            sharing=Sharing.BY_TOPIC,
            members=self._members,
            expected_members=replicas,
        )
        promise = Promise.of(scenario.MAX_WAIT, Sharing.BY_TOPIC, INTERVAL)
        found, self._course = required(now, demand, promise, self._course)
        return float(found.members)

    def _arriving(self) -> Messages:
        """The rates as the adapter computes them, by the log ends that it remembers."""
        past, quick = past_of(self._ends, PARTS), quick_window_of(INTERVAL)
        usual, lately = (rates_by(past, window - INTERVAL / 2).per_second for window in (window_of(INTERVAL), quick))
        return usual if np.isnan(usual).any() else following_a_rise(usual, lately, quick)

    def _flight_seconds(self) -> Seconds:
        """As the adapter has it: while a member reads one partition, the commits of its others do not move."""
        return np.clip(self._read_at - self._moved_at, 0.0, LONGEST_COMMIT_INTERVAL) + INTERVAL
