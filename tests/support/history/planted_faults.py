"""Histories with one planted fault each, sampled once a minute: partitions are written as what is produced and what can
be consumed in each minute."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from tests.support.history.written_history import Row, sample

MINUTES = NDArray[np.int64]
Rate = Callable[[MINUTES], NDArray[np.float64]]
HOURS = 30


def steady(per_second: float) -> Rate:
    return lambda minutes: np.full(len(minutes), per_second * 60)


TEN, HUNDRED = steady(10), steady(100)
"""Messages a second."""


def until(minute: int, rate: Rate, later: Rate | None = None) -> Rate:
    """Another rate from that minute on: none, unless one is given."""
    return lambda minutes: np.where(minutes < minute, rate(minutes), (later or steady(0))(minutes))


@dataclass(frozen=True)
class Partition:
    topic: str
    number: int
    produced: Rate = TEN
    consumed: Rate = HUNDRED
    """At most; what waits is worked off."""
    owner: str | None = None
    is_committed: bool = True
    offset_reset: str = "latest"


@dataclass(frozen=True)
class Plant:
    group: str
    partitions: tuple[Partition, ...]
    members: Callable[[int], int | None] = lambda _: 2
    """In a minute."""
    gap: range = range(0)
    """Minutes without a sample."""

    def rows(self) -> Iterator[Row]:
        for partition in self.partitions:
            yield from self._rows_of(partition)

    def _rows_of(self, of: Partition) -> Iterator[Row]:
        minutes = np.arange(HOURS * 60)
        end = 1000 + np.cumsum(of.produced(minutes)).astype(np.int64)
        can = of.consumed(minutes).astype(np.int64)
        committed = 1000
        for minute, log_end in zip(minutes.tolist(), end.tolist(), strict=True):
            committed = min(log_end, committed + int(can[minute]))
            if minute not in self.gap:
                yield sample(
                    60.0 * minute,
                    committed if of.is_committed else None,
                    log_end,
                    interval_seconds=60.0,
                    group=self.group,
                    topic=of.topic,
                    partition=of.number,
                    members=self.members(minute),
                    owner=of.owner,
                    offset_reset=of.offset_reset,
                )


def partitions(topic: str, number: int, **other: Partition) -> tuple[Partition, ...]:
    """All healthy, but those that are given as `p3=…`."""
    return tuple(other.get(f"p{each}", Partition(topic, each)) for each in range(number))


LENGTH = timedelta(hours=HOURS)
