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
from adapter.verdicts.hpa import hpa_of
from adapter.verdicts.owners import Assignor
from adapter.verdicts.plant import Arrivals, Consumers, Messages, Plant
from adapter.verdicts.required import Course, Demand, Promise, following_a_rise, quick_window_of, required
from adapter.verdicts.waits import beyond_flight
from local.promise import scenario
from local.promise.environment import Environment
from local.promise.figures import Replicas, Run

DESCRIBED_SECONDS = 60
"""Between two looks at a group's members."""
BEFORE_SECONDS = 90
"""For so long the adapter has followed the topic when the load begins."""
LANE = np.array([0])
PARTS = np.arange(scenario.PARTITIONS)
INTERVAL = scenario.INTERVAL_SECONDS

Value = Callable[[int, Messages, int, int], float]
"""Second, what waits in each partition, members and replicas -> what the HPA reads; NaN: nothing."""


def predicted(group: str, environment: Environment | None = None) -> Run:
    """Returns what the simulator says of one of the groups."""
    environment = environment or Environment()
    value = _lag if group == scenario.BY_LAG else _Required().value
    rates, pods = scenario.rates(), _Pods(environment.starts)
    plant = _plant(environment)
    controllers = Controllers([hpa_of(scenario.hpa(group))], ControllerFlags(sync_seconds=scenario.SYNC_SECONDS))
    waiting, replicas = np.zeros((len(rates), scenario.PARTITIONS)), np.zeros(len(rates), np.int64)
    seen = waiting[0]
    for second, rate in enumerate(rates.tolist()):
        if second % INTERVAL == 0:
            seen = plant.waiting(LANE)[0]
        if is_sync(second, environment):
            milli = np.array([[np.ceil(1000 * value(second, seen, pods.members(second), pods.wanted))]])
            now = np.array([pods.wanted])
            pods.want(int(controllers.sync(float(second), milli, now, now, now)[0]), second)
        each = rate / scenario.PARTITIONS
        plant.arrive(Arrivals(np.array([each]), np.array([each])))
        plant.step(float(second + 1), 1.0, np.array([pods.members(second)]))
        waiting[second], replicas[second] = plant.waiting(LANE)[0], pods.wanted
    return _run(rates / scenario.PARTITIONS, waiting, replicas)


def is_sync(second: int, environment: Environment) -> bool:
    first = round(environment.first_sync)
    return second >= first and (second - first) % scenario.SYNC_SECONDS == 0


def _plant(environment: Environment) -> Plant:
    consumers = Consumers(
        scenario.CAPACITY,
        (scenario.PARTITIONS,),
        Assignor.RANGE,
        pause_seconds=environment.pause,
        commit_seconds=0.2,
    )
    return Plant([consumers], np.zeros((1, scenario.PARTITIONS)), np.array([scenario.REPLICAS]))


class _Pods:
    """Those of one group: of several that are made together, each takes as long as one of those that were measured.
    The youngest are the first to go."""

    def __init__(self, starts: tuple[float, ...]) -> None:
        self._starts = np.array(starts)
        self._joined_at = [-math.inf] * scenario.REPLICAS

    @property
    def wanted(self) -> int:
        return len(self._joined_at)

    def want(self, replicas: int, second: int) -> None:
        more = replicas - self.wanted
        ranks = (np.arange(max(more, 0)) + 0.5) / max(more, 1)
        self._joined_at[replicas:] = (second + np.quantile(self._starts, ranks)).tolist()

    def members(self, second: int) -> int:
        return sum(at <= second for at in self._joined_at)


def _lag(_second: int, waiting: Messages, _members: int, _replicas: int) -> float:
    return float(waiting.sum())


class _Required:
    """The number that the adapter serves, by what it sees every few seconds."""

    def __init__(self) -> None:
        self._course: Course | None = None
        self._members, self._described_at = scenario.REPLICAS, 0
        self._ends = Track((), np.full(len(PARTS), NOT_KNOWN, np.int64), np.full(len(PARTS), NOT_SEEN))
        self._read_at = -BEFORE_SECONDS
        self._arrived = np.concatenate([[0.0], np.cumsum(scenario.rates())]) / scenario.PARTITIONS

    def value(self, second: int, waiting: Messages, members: int, replicas: int) -> float:
        if second - self._described_at >= DESCRIBED_SECONDS:
            self._members, self._described_at = members, second
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
        for at in range(self._read_at, second + 1, INTERVAL):
            end = np.full(len(PARTS), int(self._arrived[max(at, 0)]))
            received, is_read = np.full(len(PARTS), float(at)), np.ones(len(PARTS), np.bool_)
            self._ends = extended(self._ends, float(at), end, received, is_read, ENDS)
            self._read_at = at + INTERVAL
        past, quick = past_of(self._ends, PARTS), float(quick_window_of(INTERVAL))
        usual, lately = (rates_by(past, window - INTERVAL / 2).per_second for window in (window_of(INTERVAL), quick))
        return following_a_rise(usual, lately, quick)


def _run(arriving: Messages, waiting: Messages, replicas: Replicas) -> Run:
    """Messages of a partition are read in their order: the last one that was read in a second came when as many had
    arrived as are read by then."""
    arrived = np.concatenate([[0.0], np.cumsum(arriving)])
    times = np.arange(len(arrived), dtype=np.float64)
    read = np.maximum(arrived[1:, np.newaxis] - waiting, 0.0)
    now = np.broadcast_to(times[1:, np.newaxis], read.shape)
    waits = now - np.interp(read, arrived, times)
    weights = np.diff(read, axis=0, prepend=0.0)
    is_read = weights > 0
    return Run(replicas, now[is_read], waits[is_read], weights[is_read])
