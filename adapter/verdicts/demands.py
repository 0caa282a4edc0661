"""What a group is promised and what it has to read: the values from which the required number of members follows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags, Indexes
from adapter.verdicts.assignment import Asked, Counts, Sharing

Messages = NDArray[np.float64]

SHORTEST_SECONDS = 60.0
"""Messages that wait are worked off in no less: a quicker reaction overshoots, because new members need time."""
DELAY_SECONDS = 60.0
"""A sync of the HPA controller (15 s), the start of a pod (30 s) and its joining (10 s), rounded up."""
PAUSE_SECONDS = 3.0
"""For which a rebalance stops all members, as the assignor `range` does."""
CALMING = 1.05
"""The number falls only if the rates could grow by this factor without raising it again."""


@dataclass(frozen=True, slots=True)
class Promise:
    max_wait: float
    """Seconds that a message waits at most."""
    utilization: float = 0.9
    """Of the capacity, the share that is planned with."""
    pause_seconds: float = 0.0
    """For which a rebalance stops all members."""
    delay_seconds: float = 65.0
    """From the offsets that ask for a member until it reads."""

    @classmethod
    def of(cls, max_wait: float, sharing: Sharing, interval_seconds: float) -> Self:
        """Returns the promise of a group whose offsets are read at this interval."""
        pause = PAUSE_SECONDS if sharing is Sharing.BY_TOPIC else 0.0
        return cls(max_wait, pause_seconds=pause, delay_seconds=DELAY_SECONDS + interval_seconds / 2)

    @property
    def drain_seconds(self) -> float:
        """The time in which messages that wait are worked off."""
        return max(self.max_wait, SHORTEST_SECONDS, self.delay_seconds)


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Of one group at one time; columns have an entry for each partition, one topic after another."""

    arriving: Messages
    """Messages per second."""
    lag: Messages
    beyond: Messages
    """Of the lag, what waits beyond messages on their way (`beyond_flight`)."""
    capacity: float
    """Messages per second of one member."""
    partitions: tuple[int, ...]
    """Of each topic."""
    sharing: Sharing = Sharing.TOGETHER
    is_still: Flags | None = None
    """Partitions whose commits stand still; None: none."""
    read: float = math.nan
    """Messages per second that the group reads; NaN: not known."""
    members: int | None = None
    """None: not known, or the group rebalances."""
    expected_members: int | None = None
    """By the replicas that are there; None: not known."""
    owners: Indexes | None = None
    """The member that has each partition, from 0; negative: nobody. None: not known."""
    measured: Messages | None = None
    """What arrives now, where `arriving` is what is expected to; None: the same."""

    @property
    def arriving_now(self) -> Messages:
        return self.arriving if self.measured is None else self.measured


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """As `Demand`, with a row for each group. Partitions are columns; those that a group lacks have 0 of everything."""

    arriving: Messages
    lag: Messages
    beyond: Messages
    capacity: Messages
    read: Messages
    members: Counts
    """UNKNOWN where they are not known, also if they are expected."""
    expected_members: Counts
    is_still: Flags | None = None
    owners: Indexes | None = None
    measured: Messages | None = None

    @property
    def arriving_now(self) -> Messages:
        return self.arriving if self.measured is None else self.measured

    def among(self, rows: Indexes) -> "Demands":
        """Returns those of some groups."""
        return Demands(
            self.arriving[rows],
            self.lag[rows],
            self.beyond[rows],
            self.capacity[rows],
            self.read[rows],
            self.members[rows],
            self.expected_members[rows],
            None if self.is_still is None else self.is_still[rows],
            None if self.owners is None else self.owners[rows],
            None if self.measured is None else self.measured[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Promises:
    """The fields of a promise, each with an entry for every group."""

    utilization: Messages
    pause_seconds: Messages
    drain_seconds: Messages

    @classmethod
    def of(cls, promises: Sequence[Promise]) -> Self:
        return cls(*(np.array([getattr(promise, it.name) for promise in promises]) for it in fields(cls)))

    def among(self, rows: Indexes) -> "Promises":
        """Returns those of some groups."""
        return Promises(*(getattr(self, it.name)[rows] for it in fields(self)))


class Wanting(Asked, Protocol):
    """Groups whose numbers of members depend on nothing else."""

    @property
    def is_idle(self) -> Flags:
        """Whether nothing waits and nothing arrives."""


class Known(Wanting, Protocol):
    """What is known of many groups (rows) at one time."""

    @property
    def read(self) -> Messages:
        """Messages per second; NaN where they are not known."""

    @property
    def expected_members(self) -> Counts: ...

    def drains(self) -> Messages:
        """Returns the messages per second to read beside those that arrive (`drains_of`)."""

    def measured(self) -> tuple[Messages, Messages]:
        """Returns the messages per second that arrive now, and of these what members could read."""

    def busier(self, rows: Indexes) -> Wanting:
        """Returns some of them, with rates that have grown by CALMING."""
