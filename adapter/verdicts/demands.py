"""What a group is promised and what it has to read: the values from which the required number of members follows."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags, Indexes
from adapter.records import Column
from adapter.verdicts.assignment import Sharing

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


@dataclass(slots=True)
class Need:
    """What one group has at one time, beside its columns, for rules that replays compile: its fields can be those of a
    record (adapter.records)."""

    capacity: float
    """Messages per second of one member."""
    most: int
    """Members that can have a partition."""
    is_exclusive: bool
    """Whether one member at most reads each partition."""
    is_by_topic: bool
    """Whether each topic is divided by itself."""
    utilization: float
    pause_seconds: float
    drain_seconds: float
    """As `Promise` has them."""
    waits: bool
    """Whether anything waits."""
    drain: float
    """Messages per second to read beside those that arrive (`drain_of`)."""
    read: float
    """Messages per second that the group reads; NaN: not known."""
    members: int
    """UNKNOWN: not known, or the group rebalances."""
    expected_members: int
    """By the replicas that are there, or UNKNOWN."""
    has_owners: bool
    """Whether it is known which member has which partition."""


def able_of(need: Need) -> float:
    """Returns the messages per second that members can read of one partition."""
    return need.capacity if need.is_exclusive else math.inf


def drain_of(beyond: Column[float], arriving: Column[float], able: float, seconds: float) -> float:
    """Returns the messages per second to read beside those that arrive, so that what waits beyond messages on their way
    is worked off in so many seconds. A member of its own could read no more of a partition than what is left of its
    capacity."""
    drain = 0.0
    for place in range(len(beyond)):
        drain += min(beyond[place] / seconds, max(able - arriving[place], 0.0))
    return drain


RULES: tuple[Callable[..., object], ...] = (able_of, drain_of)
"""What kernels may call, of this module."""
