"""What happened to a group and its topics, as the samples of a range show it: each with a beginning."""

from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SlowPartition:
    """Hours in which one partition had most of its topic's lag, and no more than its fair share of the messages."""

    partition: int
    since: datetime
    until: datetime
    """The end of the last of these hours."""
    hours: int
    lag: int
    """In the hour with the most lag, as are the shares."""
    lag_share: float
    """Of the topic's lag."""
    produced_share: float
    """Of the topic's messages."""
    owner: str | None
    """The member that it was assigned to, as far as it is known."""


@dataclass(frozen=True, slots=True)
class UnreadTopic:
    """Since this hour no member reads any partition of the topic, although members read other topics."""

    since: datetime
    produced: int
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

    slow: SlowPartition | None = None
    unread: UnreadTopic | None = None
    hot: HotHours | None = None
    uncommitted_produced: int = 0
    """Messages that arrived in partitions without a commit, since these had none."""
    uncommitted_since: datetime | None = None
    """The first hour in which they arrived there."""


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
