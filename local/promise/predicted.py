"""The same run in the simulator: the same load, consumers and HPAs, and what was measured of the machine."""

import math
from collections.abc import Callable

import numpy as np

from adapter.columns import NOT_KNOWN
from adapter.lag.demand import rates_by
from adapter.lag.ring import ENDS, NOT_SEEN, Track, extended, past_of
from adapter.metrics.demand import window_of
from adapter.verdicts.assignment import Sharing
from adapter.verdicts.controllers import ControllerFlags, Controllers
from adapter.verdicts.courses import Course
from adapter.verdicts.demands import Demand, Promise
from adapter.verdicts.hpa import hpa_of
from adapter.verdicts.owners import Assignor, owners_table
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
BEFORE_SECONDS = 90
"""For so long the adapter has followed the topic when the load begins."""
PARTS = np.arange(scenario.PARTITIONS)
INTERVAL = scenario.INTERVAL_SECONDS
BATCHES = round(1 / BATCH_SECONDS)
"""In a second."""
OWNERS = owners_table((scenario.PARTITIONS,), Assignor.RANGE)

Value = Callable[[int, Messages, int, int], float]
"""Second, what waits in each partition, members and replicas -> what the HPA reads; NaN: nothing."""


def predicted(group: str, environment: Environment | None = None, number: int = RUNS) -> list[Run]:
    """Returns what the simulator says of one of the groups, several times.

    Nobody knows when cycles of the adapter begin, which members get which partitions, and which pods start a little
    later than others. Where the decision of an HPA is a close one, that decides between two courses."""
    return [_predicted(group, environment or Environment(), np.random.default_rng(seed)) for seed in range(number)]


def _predicted(group: str, environment: Environment, chance: np.random.Generator) -> Run:
    value = _lag if group == scenario.BY_LAG else _Required(chance).value
    rates, pods = scenario.rates(), _Pods(environment.starts, chance)
    readers = Readers(scenario.CAPACITY, OWNERS, environment.pause, chance)
    controllers = Controllers([hpa_of(scenario.hpa(group))], ControllerFlags(sync_seconds=scenario.SYNC_SECONDS))
    replicas, written, due = np.zeros(len(rates), np.int64), 0, 0.0
    cycle_at = round(chance.uniform(0, INTERVAL) * BATCHES)
    seen = readers.waiting
    for batch in range(len(rates) * BATCHES):
        now, second = batch * BATCH_SECONDS, batch // BATCHES
        if batch % (INTERVAL * BATCHES) == cycle_at:
            seen = readers.waiting
        if batch % BATCHES == 0 and is_sync(second, environment):
            milli = np.array([[np.ceil(1000 * value(second, seen.astype(float), len(pods.members(now)), pods.wanted))]])
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


def _lag(_second: int, waiting: Messages, _members: int, _replicas: int) -> float:
    return float(waiting.sum())


class _Required:
    """The number that the adapter serves, by what it sees every few seconds."""

    def __init__(self, chance: np.random.Generator) -> None:
        self._course: Course | None = None
        self._members, self._described_at = scenario.REPLICAS, -chance.uniform(0, DESCRIBED_SECONDS)
        self._ends = Track((), np.full(len(PARTS), NOT_KNOWN, np.int64), np.full(len(PARTS), NOT_SEEN))
        self._read_at = -BEFORE_SECONDS
        self._arrived = np.concatenate([[0.0], np.cumsum(scenario.rates())]) / scenario.PARTITIONS

    def value(self, second: int, waiting: Messages, members: int, replicas: int) -> float:
        if second - self._described_at >= DESCRIBED_SECONDS:
            self._members = members
            self._described_at += DESCRIBED_SECONDS * ((second - self._described_at) // DESCRIBED_SECONDS)
        arriving = self._arriving(second)
        demand = Demand(
            arriving=arriving,
            lag=waiting,
            beyond=beyond_flight(waiting, arriving, float(INTERVAL)),
            capacity=scenario.CAPACITY,
            partitions=(scenario.PARTITIONS,),
            sharing=Sharing.BY_TOPIC,
            members=self._members,
            expected_members=replicas,
        )
        promise = Promise.of(scenario.MAX_WAIT, Sharing.BY_TOPIC, INTERVAL)
        found, self._course = required(float(second), demand, promise, self._course)
        return float(found.members)

    def _arriving(self, second: int) -> Messages:
        """The rates as the adapter computes them, by the log ends that it remembers."""
        for at in range(self._read_at, second - INTERVAL // 2 + 1, INTERVAL):
            end = np.full(len(PARTS), int(self._arrived[max(at, 0)]))
            received, is_read = np.full(len(PARTS), float(at)), np.ones(len(PARTS), np.bool_)
            self._ends = extended(self._ends, float(at), end, received, is_read, ENDS)
            self._read_at = at + INTERVAL
        past, quick = past_of(self._ends, PARTS), float(quick_window_of(INTERVAL))
        usual, lately = (rates_by(past, window - INTERVAL / 2).per_second for window in (window_of(INTERVAL), quick))
        return following_a_rise(usual, lately, quick)
