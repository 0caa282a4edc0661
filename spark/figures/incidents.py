"""What happened to a group and its topics, as the samples of a range show it: each with a beginning."""

from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SlowPartitions:
    """Hours in which one partition, or a few together, had most of their topic's lag, and none of them more than its
    fair share of the messages."""

    partitions: tuple[int, ...]
    """In the hour with the most lag, as are the lag and the shares."""
    since: datetime
    until: datetime
    """The end of the last of these hours."""
    hours: int
    lag: int
    lag_share: float
    """Of the topic's lag."""
    produced_share: float
    """Of the topic's messages."""
    owners: tuple[str, ...]
    """The members that they were assigned to when they alone were last slow; none unless all are known."""


@dataclass(frozen=True, slots=True)
class UnreadTopic:
    """No member reads any partition of the topic, although members read other topics."""

    since: datetime
    produced: int
    """In whole hours since then."""
    lag: int
    """In the last hour; 0 as well if it is not known."""
    was_read: bool
    """Whether members read it before, within the range."""


@dataclass(frozen=True, slots=True)
class HotHours:
    """Hours in which one partition got far more than its fair share of the messages."""

    hours: int
    partition: int
    """The one that was it most often."""
    most_hours: int
    """In how many hours it was."""
    partitions: int
    """How many partitions were it."""
    since: datetime


@dataclass(frozen=True, slots=True)
class TopicIncidents:
    """None: there was none."""

    slow: SlowPartitions | None = None
    unread: UnreadTopic | None = None
    hot: HotHours | None = None
    uncommitted_produced: int = 0
    """Messages that arrived in partitions without a commit, since these had none."""
    uncommitted_since: datetime | None = None
    """The first hour at whose end one of these partitions had no commit."""


@dataclass(frozen=True, slots=True)
class Happened:
    """Something that happened to a group as a whole, however many partitions it had."""

    number: int
    first: datetime
    last: datetime


def _none() -> NDArray[np.float64]:
    return np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class MemberHours:
    """Columns: the hours in which members came, went or were not there."""

    start: NDArray[np.datetime64] = field(default_factory=lambda: np.empty(0, "datetime64[us]"))
    changes: NDArray[np.float64] = field(default_factory=_none)
    """Samples in which the number of members was another one than before."""
    without_seconds: NDArray[np.float64] = field(default_factory=_none)
    fewest: NDArray[np.float64] = field(default_factory=_none)
    most: NDArray[np.float64] = field(default_factory=_none)
