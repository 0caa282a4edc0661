"""What the adapter knows of groups when an HPA asks for a number that does not follow from the lag alone."""

from dataclasses import dataclass

import numpy as np

from adapter.columns import Indexes, Seconds
from adapter.verdicts.recent import Counts
from adapter.verdicts.required import quick_window_of
from adapter.verdicts.simulation.consumers import Messages
from adapter.verdicts.simulation.load import arrived_between
from adapter.verdicts.simulation.plant import Plant

RATE_SECONDS = 75.0
"""Over which the adapter computes rates: between 60 and 95."""


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """All that is known of some groups (rows). Partitions are columns; those that a group lacks have nothing."""

    now: float
    lag: Messages
    """In each partition."""
    arriving: Messages
    """Messages per second in each partition, over the last minute."""
    lately: Messages
    """The same over the last seconds (`quick_window_of`)."""
    read: Messages
    """Messages per second that each group read, over the last minute."""
    members: Counts
    """UNKNOWN: the group rebalances."""
    owners: Indexes
    """The member that has each partition; negative: nobody."""
    replicas: Counts
    widths: Counts
    """Partitions that each group has."""


@dataclass(frozen=True, slots=True, eq=False)
class Inflows:
    """How much has arrived in groups (columns), in rows as `Curves` has them."""

    busiest: Messages
    """In the first partition."""
    others: Messages
    """In each other partition of weight 1."""

    def between(self, groups: Indexes, first: Seconds, last: Seconds) -> tuple[Messages, Messages]:
        """Returns the messages per second in the first partition and in others. Groups are the last axis of all."""
        over = np.maximum(last - first, 1.0)
        busiest, others = (arrived_between(each, groups, first, last) / over for each in (self.busiest, self.others))
        return busiest, others


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """Some groups (rows) at one time."""

    now: float
    sync_seconds: float
    """Until it is asked again."""
    plant: Plant
    lanes: Indexes
    """Of the plant."""
    inflows: Inflows
    groups: Indexes
    """Columns of `inflows`."""
    intervals: Seconds
    """Between two samples of each."""
    read: Messages
    replicas: Counts

    def among(self, rows: Indexes) -> "Sight":
        """Returns what is known of some groups."""
        return Sight(
            self.now,
            self.sync_seconds,
            self.plant,
            self.lanes[rows],
            self.inflows,
            self.groups[rows],
            self.intervals[rows],
            self.read[rows],
            self.replicas[rows],
        )

    def views(self) -> Views:
        lanes, times, weights = self.lanes, np.array([self.now]), self.plant.weights(self.lanes)
        (arriving,), (lately,) = self.arriving(times, weights), self.arriving_lately(times, weights)
        return Views(
            self.now,
            self.lag(np.arange(len(lanes)), arriving),
            arriving,
            lately,
            self.read,
            self.plant.members(lanes),
            self.plant.owners(lanes),
            self.replicas,
            self.plant.widths(lanes),
        )

    def arriving(self, times: Seconds, weights: Messages) -> Messages:
        """Returns the messages per second in each partition (last axis) of each group at some times (first axis), over
        the last minute. The sample may be some seconds old. `weights`: of the partitions; the first one's has no
        meaning."""
        return self._arriving(times, RATE_SECONDS, weights)

    def arriving_lately(self, times: Seconds, weights: Messages) -> Messages:
        """The same over the last seconds (`quick_window_of`)."""
        return self._arriving(times, quick_window_of(self.intervals), weights)

    def _arriving(self, times: Seconds, seconds: Seconds | float, weights: Messages) -> Messages:
        sampled = times[:, np.newaxis] - np.mod(times[:, np.newaxis], self.intervals)
        busiest, others = self.inflows.between(self.groups, np.maximum(sampled - seconds, 0.0), sampled)
        arriving: Messages = weights * others[..., np.newaxis]
        arriving[..., 0] = busiest
        return arriving

    def lag(self, rows: Indexes, arriving: Messages) -> Messages:
        """Returns the lag in each partition (columns) of some of the groups. What was read after the latest commit
        counts as not read. `arriving`: over the last minute."""
        lanes, total = self.lanes[rows], arriving.sum(axis=1)
        uncommitted, widths = self.plant.uncommitted[lanes], self.plant.widths(lanes)
        shares = np.divide(uncommitted, total, out=np.zeros(len(rows)), where=total > 0)
        lag = arriving * shares[:, np.newaxis]
        if (idle := (total <= 0) & (uncommitted > 0)).any():
            exists = np.arange(arriving.shape[1]) < widths[idle, np.newaxis]
            lag[idle] += exists * (uncommitted / widths)[idle, np.newaxis]
        (waiting,) = np.nonzero(self.plant.lag[lanes])
        if len(waiting):
            lag[waiting] += self.plant.waiting(lanes[waiting])[:, : lag.shape[1]]
        return lag
