"""Pure: the loads on which ways to scale are compared: what arrives, who reads it, and what happens meanwhile.

Nothing is random between two runs: noise comes from a generator with a fixed seed."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.verdicts.owners import Assignor
from adapter.verdicts.simulation.consumers import Consumers, Messages
from adapter.verdicts.simulation.load import NO_EVENTS, Events, Load

Minutes = NDArray[np.int64]

CAPACITY = 100.0
"""Messages per second of one member."""
PARTITIONS = 40
SEED = 20_260_101
HOURS = 6
SHORT_DAY = 360
"""Minutes of a day in the week, which would take long otherwise."""
HOT: Messages = np.append(6.0, np.ones(PARTITIONS - 1))
"""The first of 40 partitions gets 13 % of all messages."""
_BY_RANK: Messages = np.arange(1.0, PARTITIONS + 1) ** -0.7
ZIPF: Messages = np.append(_BY_RANK[:1], np.random.default_rng(SEED).permutation(_BY_RANK[1:]))
"""By Zipf's law, in no order but for the first, as hashes of keys divide them."""
STARTS = (10.0, 30.0, 120.0)
"""Seconds from a replica that is wanted to a pod that is ready."""
USUAL_START = 30.0
JOINS = 10.0
PAUSES = {Assignor.RANGE: 6.0, Assignor.COOPERATIVE_STICKY: 6.0, Assignor.UNIFORM: 3.0}
"""Seconds of a rebalance. With `range`, all members stop; with the others, those partitions that move. The consumer
protocol (KIP-848) moves them without waiting for all members."""
USUAL_ASSIGNOR = Assignor.COOPERATIVE_STICKY


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    name: str
    load: Load
    partitions: int = PARTITIONS
    capacity: float = CAPACITY
    events: Events = NO_EVENTS
    lag_is_known: Messages | None = None
    """1 in minutes in which the metric has a value; None: always."""
    least: int = 1
    """minReplicas."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A workload with one assignor and one start time."""

    workload: Workload
    assignor: Assignor
    start_seconds: float

    @property
    def consumers(self) -> Consumers:
        return Consumers(
            self.workload.capacity,
            (self.workload.partitions,),
            self.assignor,
            start_seconds=self.start_seconds,
            join_seconds=JOINS,
            pause_seconds=PAUSES[self.assignor],
        )

    @property
    def is_usual(self) -> bool:
        return self.assignor is USUAL_ASSIGNOR and self.start_seconds == USUAL_START


def settings(hours: int = HOURS) -> Iterator[Setting]:
    for workload in workloads(hours):
        for assignor in PAUSES:
            for start in STARTS:
                yield Setting(workload, assignor, start)


def workloads(hours: int = HOURS) -> Iterator[Workload]:
    minutes = np.arange(60 * hours)
    wave = _wave(minutes)
    yield Workload("constant 85K", Load(np.full(len(minutes), 85_000.0)))
    yield Workload("steps 40K and 110K", Load(np.where(minutes // 30 % 2 == 1, 110_000.0, 40_000.0)))
    yield Workload("spikes to 120K", Load(np.where(minutes % 120 // 5 == 12, 120_000.0, 30_000.0)))
    yield Workload("a day with noise", Load(_day(np.arange(1440 * hours // HOURS))))
    yield Workload("a week of short days", Load(_week(np.arange(7 * SHORT_DAY * hours // HOURS))))
    yield Workload("sawtooth of 10 min", Load(20_000 + 100_000 * (minutes % 10) / 9))
    yield Workload("wave 20K to 120K", Load(wave))
    yield Workload("60 s per message", Load(_slow(minutes)), partitions=10, capacity=1 / 60)
    yield Workload("10K at once", Load(np.where(minutes % 120 == 10, 10_000.0, 0.0)), partitions=3)
    yield Workload("sparse bursts to zero", Load(np.where(minutes % 45 == 20, 30_000.0, 0.0)), least=0)
    yield Workload("one hot partition", Load(wave, weights=HOT))
    yield Workload("partitions by Zipf's law", Load(wave, weights=ZIPF))
    yield Workload("capacity falls by 30 %", Load(0.7 * wave), events=Events(capacity=_drift(minutes)))
    yield Workload("no metric for 5 min", Load(wave), lag_is_known=_without(minutes, 130, 5))
    yield Workload(
        "broker restarts",
        Load(wave),
        events=Events(stopped_seconds=_at(minutes, 130, 1, 20.0)),
        lag_is_known=_without(minutes, 130, 1),
    )
    yield Workload("20 partitions become 40", Load(0.9 * wave), events=Events(partitions=(20, len(minutes) // 2)))
    yield Workload("rolling update", Load(wave), events=Events(replaced=_at(minutes, 120, 10, 2.0)))


def _noise(minutes: Minutes, spread: float) -> Messages:
    return np.random.default_rng(SEED).lognormal(0.0, spread, len(minutes))


def _wave(minutes: Minutes) -> Messages:
    """Between 20,000 and 120,000 messages in a minute, 85,000 on average, every two hours."""
    swing = (1 - np.cos(2 * np.pi * minutes / 120)) / 2
    return np.clip((20_000 + 100_000 * swing**0.47) * _noise(minutes, 0.03), 20_000, 120_000)


def _day(minutes: Minutes, length: int = 1440) -> Messages:
    swing = (1 - np.cos(2 * np.pi * minutes / length)) / 2
    return (20_000 + 90_000 * swing) * _noise(minutes, 0.05)


def _week(minutes: Minutes) -> Messages:
    """Half as much on two days of seven."""
    return _day(minutes, SHORT_DAY) * np.where(minutes // SHORT_DAY % 7 >= 5, 0.5, 1.0)


def _slow(minutes: Minutes) -> Messages:
    """2 to 8 messages a minute. Each takes a member one minute."""
    return 5 - 3 * np.cos(2 * np.pi * minutes / 120)


def _drift(minutes: Minutes) -> Messages:
    return np.where(minutes < len(minutes) // 2, 1.0, 0.7)


def _at(minutes: Minutes, first: int, number: int, value: float) -> Messages:
    return np.where((minutes >= first) & (minutes < first + number), value, 0.0)


def _without(minutes: Minutes, first: int, number: int) -> Messages:
    return 1.0 - _at(minutes, first, number, 1.0)
