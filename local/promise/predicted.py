"""The same run in the simulator: the same load, consumers and HPAs, and nothing that was measured in it."""

from collections.abc import Callable

import numpy as np

from adapter.verdicts.assignment import Sharing
from adapter.verdicts.controllers import ControllerFlags, Controllers
from adapter.verdicts.hpa import hpa_of
from adapter.verdicts.owners import Assignor
from adapter.verdicts.plant import Arrivals, Consumers, Messages, Plant
from adapter.verdicts.required import Course, Demand, Promise, following_a_rise, quick_window_of, required
from adapter.verdicts.waits import beyond_flight
from local.promise import scenario
from local.promise.figures import Run

JOIN_SECONDS, PAUSE_SECONDS = 5, 2.0
"""Of a consumer as a process of this machine, after its start, and of a rebalance of a few of them."""
RATE_SECONDS = 64
"""Over which the adapter has a rate at this interval."""
QUICK_SECONDS = int(quick_window_of(scenario.INTERVAL_SECONDS))
"""Over which it sees that a load rises."""
DESCRIBED_SECONDS = 60
"""Between two looks at a group's members."""

Value = Callable[[int, Plant, Messages, int, int], float]
"""Second, plant, what arrived in each second so far, members and replicas -> what the HPA reads; NaN: nothing."""


def predicted(group: str) -> Run:
    """Returns what the simulator says of one of the groups."""
    value = _lag if group == scenario.BY_LAG else _Required().value
    rates = scenario.rates()
    consumers = Consumers(
        scenario.CAPACITY, (scenario.PARTITIONS,), Assignor.RANGE, pause_seconds=PAUSE_SECONDS, commit_seconds=0.2
    )
    controllers = Controllers(
        [hpa_of({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **_spec(group)})],
        ControllerFlags(sync_seconds=scenario.SYNC_SECONDS),
    )
    wanted = [scenario.REPLICAS]
    lane, share = np.array([0]), 1 / scenario.PARTITIONS
    plant = Plant([consumers], np.zeros((1, scenario.PARTITIONS)), np.array(wanted))
    waiting = np.zeros((len(rates), scenario.PARTITIONS))
    for second, rate in enumerate(rates.tolist()):
        plant.arrive(Arrivals(np.array([rate * share]), np.array([rate * share])))
        delay = scenario.START_SECONDS + JOIN_SECONDS
        members = min(wanted[-delay:]) if second else wanted[0]
        plant.step(float(second + 1), 1.0, np.array([members]))
        waiting[second] = plant.waiting(lane)[0]
        replicas = wanted[-1]
        if second % scenario.SYNC_SECONDS == 0:
            milli = np.array([[np.ceil(1000 * value(second, plant, rates, members, replicas))]])
            now = np.array([replicas])
            replicas = int(controllers.sync(float(second), milli, now, now, now)[0])
        wanted.append(replicas)
    return _run(rates * share, waiting, wanted[1:])


def _spec(group: str) -> dict[str, object]:
    return {"spec": scenario.hpa(group)["spec"]}


def _lag(_second: int, plant: Plant, _rates: Messages, _members: int, _replicas: int) -> float:
    return float(plant.lag[0] + plant.uncommitted[0])


class _Required:
    """The number that the adapter serves, by what it sees every few seconds."""

    def __init__(self) -> None:
        self._course: Course | None = None
        self._members = scenario.REPLICAS
        self._described_at = 0

    def value(self, second: int, plant: Plant, rates: Messages, members: int, replicas: int) -> float:
        if second < RATE_SECONDS:
            return float("nan")
        if second - self._described_at >= DESCRIBED_SECONDS:
            self._members, self._described_at = members, second
        usual, lately = (
            np.full(scenario.PARTITIONS, rates[second - seconds : second].mean() / scenario.PARTITIONS)
            for seconds in (RATE_SECONDS, QUICK_SECONDS)
        )
        arriving = following_a_rise(usual, lately, QUICK_SECONDS)
        waiting = plant.waiting(np.array([0]))[0]
        demand = Demand(
            arriving=arriving,
            lag=waiting,
            beyond=beyond_flight(waiting, arriving, float(scenario.INTERVAL_SECONDS)),
            capacity=scenario.CAPACITY,
            partitions=(scenario.PARTITIONS,),
            sharing=Sharing.BY_TOPIC,
            members=self._members,
            expected_members=replicas,
        )
        promise = Promise.of(scenario.MAX_WAIT, Sharing.BY_TOPIC, scenario.INTERVAL_SECONDS)
        found, self._course = required(float(second), demand, promise, self._course)
        return float(found.members)


def _run(arriving: Messages, waiting: Messages, replicas: list[int]) -> Run:
    """Messages of a partition are read in their order: the last one that was read in a second came when as many had
    arrived as are read by then."""
    arrived = np.concatenate([[0.0], np.cumsum(arriving)])
    times = np.arange(len(arrived), dtype=np.float64)
    read = np.maximum(arrived[1:, np.newaxis] - waiting, 0.0)
    now = np.broadcast_to(times[1:, np.newaxis], read.shape)
    waits = now - np.interp(read, arrived, times)
    weights = np.diff(read, axis=0, prepend=0.0)
    is_read = weights > 0
    return Run(np.array(replicas, np.int64), now[is_read], waits[is_read], weights[is_read])
