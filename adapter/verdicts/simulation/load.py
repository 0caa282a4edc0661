"""What arrives in a group and happens to it, minute by minute, and how long what waits has waited."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Indexes, Seconds
from adapter.verdicts.simulation.consumers import Messages

MINUTE = 60.0
_ROUNDED = 1 - 1e-9
"""Of what waits: otherwise, rounding would make a message as old as the one that came before a pause."""
_SOME = 1e-9
"""The weight of no other partition."""
WAITS_FROM = 0.5
"""Messages: fewer are a remainder of the arithmetic."""


@dataclass(frozen=True, slots=True)
class Load:
    """What arrived in a group in each minute."""

    produced: Messages
    """In all partitions."""
    largest_share: NDArray[np.float64] | None = None
    """Of `produced`, what the busiest partition got; None: all got the same."""
    lag: float = 0.0
    """Messages that waited at the start."""
    wait_seconds: float = 0.0
    """How long the oldest of these had waited."""
    weights: Messages | None = None
    """How much partitions get, compared with one another; None: all but the busiest get the same."""


@dataclass(frozen=True, slots=True)
class Events:
    """What happens to a group besides its load, minute by minute; None: nothing."""

    capacity: Messages | None = None
    """What a member can do, as a share of its usual capacity."""
    stopped_seconds: Seconds | None = None
    """For which no member reads, from the beginning of the minute on."""
    replaced: Messages | None = None
    """Members that a new one takes the place of, as in a rolling update: each leaves, and the new one joins."""
    partitions: tuple[int, int] | None = None
    """How many partitions there are at first, and the minute in which the others are added. For one topic."""


NO_EVENTS = Events()


@dataclass(frozen=True, slots=True)
class Curves:
    """How many messages have arrived in a partition, by time; negative before the replay's start."""

    started: float
    """Seconds before the replay."""
    busiest: Messages
    """Before the replay, at its start, and at the end of each minute."""
    others: Messages
    """In each of the other partitions, for a weight of 1."""

    @classmethod
    def of(cls, load: Load, partitions: int, events: Events = NO_EVENTS) -> Self:
        produced = _filled(load.produced)
        share, others = _shares(load, partitions, events)
        usual = float((produced * share).sum() / produced.sum()) if produced.any() else float(share[0])
        started = load.wait_seconds or (load.lag * MINUTE / max(float(produced.mean()), 1.0)) or 1.0
        first = (load.lag * usual, load.lag * (1 - usual) / others[0])
        return cls(
            started,
            *(
                np.concatenate([[-waiting], np.zeros(1), np.cumsum(produced * of_one)])
                for waiting, of_one in zip(first, (share, (1 - share) / others), strict=True)
            ),
        )

    def wait(self, first: int, busiest: Messages, others: Messages) -> Seconds:
        """Returns the age of the oldest message at the end of each minute (columns) from `first` on, from what waits
        where most waits for its weight: the messages of a partition are read in their order."""
        return np.maximum(self._ages(first, self.busiest, busiest), self._ages(first, self.others, others))

    def _ages(self, first: int, curve: Messages, waiting: Messages) -> Seconds:
        """Looks only at the part of a curve in which what waits has come."""
        ages = np.zeros(waiting.shape)
        lanes, minutes = np.nonzero(waiting > WAITS_FROM)
        if len(lanes):
            ends = first + 2 + minutes
            read = curve[ends] - waiting[lanes, minutes] * _ROUNDED
            last = int(ends.max()) + 1
            since = min(max(int(np.searchsorted(curve, read.min(), side="right")) - 1, 0), last - 1)
            times = self._times(since, last)
            ages[lanes, minutes] = times[ends - since] - np.interp(read, curve[since:last], times)
        return ages

    def _times(self, since: int, last: int) -> Seconds:
        """Returns the seconds at which some rows of the curves are."""
        times = np.arange(since - 1.0, last - 1.0) * MINUTE
        if since == 0:
            times[0] = -self.started
        return times


def arrived_in(curves: Messages, minutes: range, load_of: Indexes) -> Messages:
    """Returns what arrived for each lane (columns) in each of some minutes (rows). `curves`: as those of `Curves`, of
    each load (rows); `load_of`: the load of each lane."""
    arrived: Messages = np.diff(curves[:, minutes.start + 1 : minutes.stop + 2]).T.take(load_of, axis=1)
    return arrived


def _filled(produced: Messages) -> Messages:
    """Replaces unknown minutes (NaN) by what lies between those around them; by 0 where nothing is known."""
    known = ~np.isnan(produced)
    if known.all() or not known.any():
        return np.nan_to_num(produced)
    minutes = np.arange(len(produced))
    return np.interp(minutes, minutes[known], produced[known])


def _shares(load: Load, partitions: int, events: Events) -> tuple[Messages, Messages]:
    """Returns the busiest partition's share in each minute, and the weight of all others together."""
    weights = np.ones(partitions) if load.weights is None else load.weights
    minutes = np.arange(len(load.produced))
    first, since = events.partitions or (partitions, 0)
    others = np.where(minutes < since, weights[1:first].sum(), weights[1:].sum())
    least = weights[0] / (weights[0] + others)
    share = least if load.largest_share is None else np.nan_to_num(load.largest_share, nan=-1.0)
    share = np.clip(np.where(share < 0, least, share), least, 1.0) if partitions > 1 else np.ones(len(minutes))
    return share, np.maximum(others, _SOME)
