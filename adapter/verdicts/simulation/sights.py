"""What the adapter knows of groups when an HPA asks for a number that does not follow from the lag alone.

The rules are about one group, and write what is known of its partitions into columns of them."""

from dataclasses import dataclass

import numpy as np

from adapter.columns import Indexes, Seconds
from adapter.records import Column
from adapter.verdicts.recent import Counts
from adapter.verdicts.required import quick_window_of
from adapter.verdicts.simulation.compiled import kernel, rule
from adapter.verdicts.simulation.consumers import Messages
from adapter.verdicts.simulation.groups import Groups, LaneRecord, Members, Partitions
from adapter.verdicts.simulation.load import MINUTE
from adapter.verdicts.simulation.plant import Plant
from adapter.verdicts.simulation.reading import find_owners_of, find_waiting_of, members_there

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
    """How much has arrived in groups (rows), in columns as `Curves` has them."""

    busiest: Messages
    """In the first partition."""
    others: Messages
    """In each other partition of weight 1."""

    @property
    def curves(self) -> tuple[Messages, Messages]:
        """What kernels look at."""
        return self.busiest, self.others


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """Some groups (rows) at one time."""

    now: float
    plant: Plant
    lanes: Indexes
    """Of the plant."""
    inflows: Inflows
    groups: Indexes
    """Rows of `inflows`."""
    intervals: Seconds
    """Between two samples of each."""
    read: Messages
    replicas: Counts

    def views(self) -> Views:
        widths = self.plant.widths(self.lanes)
        shape = len(widths), int(widths.max(initial=0))
        lag, arriving, lately = (np.zeros(shape) for _ in range(3))
        members, owners = np.empty(len(widths), np.int64), np.full(shape, -1, np.int64)
        _find_views(
            self.now,
            self.plant.groups,
            self.inflows.curves,
            (self.lanes, self.groups, self.intervals, self.plant.weights(self.lanes)),
            (lag, arriving, lately, members, owners),
        )
        return Views(self.now, lag, arriving, lately, self.read, members, owners, self.replicas, widths)


rule(quick_window_of)


@kernel
def _find_views(
    now: float,
    plants: Groups,
    curves: tuple[Messages, Messages],
    groups: tuple[Indexes, Indexes, Seconds, Messages],
    views: tuple[Messages, Messages, Messages, Counts, Counts],
) -> None:
    """Writes into `views` what the adapter would know of each group. `groups`: their places in the plant and among the
    curves, the seconds between two samples, and the weights of their partitions (columns)."""
    lanes, members, partitions, _ = plants
    busiest, others = curves
    places, columns, intervals, weights = groups
    lag, arriving, lately, there, owners = views
    for row in range(len(places)):
        at, group, interval = places[row], columns[row], intervals[row]
        # A sample may be some seconds old.
        lane, sampled = lanes[at], now - now % interval
        rates = rates_over(busiest, others, group, sampled, RATE_SECONDS)
        spread(rates, weights[row], arriving[row])
        find_lag_of(lane, members, partitions, at, arriving[row], total_of(lane, rates), lag[row])
        spread(rates_over(busiest, others, group, sampled, quick_window_of(interval)), weights[row], lately[row])
        there[row] = members_there(lane)
        find_owners_of(lane, partitions, at, owners[row])


def nothing_read(lanes: int, seconds: float) -> Messages:
    """Returns what `read_over` remembers of lanes (rows) before their first step of so many seconds."""
    return np.zeros((lanes, round(RATE_SECONDS / seconds)))


@kernel
def find_read_all(before: Messages, read: Messages, now: float, seconds: float, found: Messages) -> None:
    """Writes what each lane has read lately (`read_over`)."""
    for at in range(len(before)):
        found[at] = read_over(before[at], read[at], now, seconds)


@rule
def read_over(before: Column[float], read: float, now: float, seconds: float) -> float:
    """Returns the messages per second that a group has read over RATE_SECONDS, or since the start. `before`: what it
    read in each of the last steps of so many seconds; `read` is that of the latest, and takes its place there."""
    total = 0.0
    for place in range(1, len(before)):
        before[place - 1] = before[place]
        total += before[place]
    before[len(before) - 1] = read
    return (total + read) / min(now, len(before) * seconds)


@rule
def rates_over(busiest: Messages, others: Messages, group: int, last: float, seconds: float) -> tuple[float, float]:
    """Returns the messages per second that arrived over some seconds until the latest sample, in the first partition
    and in each other one of weight 1. `busiest` and `others`: those of `Inflows`."""
    first, of_busiest, of_others = max(last - seconds, 0.0), 0.0, 0.0
    for minute in range(int(first / MINUTE), min(int(last / MINUTE) + 1, busiest.shape[1] - 2)):
        begin = minute * MINUTE
        share = max(min(last, begin + MINUTE) - max(first, begin), 0.0) / MINUTE
        of_busiest += (busiest[group, minute + 2] - busiest[group, minute + 1]) * share
        of_others += (others[group, minute + 2] - others[group, minute + 1]) * share
    over = max(last - first, 1.0)
    return of_busiest / over, of_others / over


@rule
def total_of(lane: LaneRecord, rates: tuple[float, float]) -> float:
    """Returns the messages per second in all partitions. `rates`: as `rates_over` returns them."""
    return rates[0] + rates[1] * lane.weights


@rule
def spread(rates: tuple[float, float], weights: Column[float], arriving: Column[float]) -> None:
    """Writes the messages per second in each partition. `rates`: as `rates_over` returns them."""
    for place in range(1, len(arriving)):
        arriving[place] = rates[1] * weights[place]
    arriving[0] = rates[0]


@rule
def find_lag_of(
    lane: LaneRecord,
    members: Members,
    partitions: Partitions,
    at: int,
    arriving: Column[float],
    total: float,
    lag: Column[float],
) -> None:
    """Writes the lag in each partition. What was read after the latest commit counts as not read. `arriving`: over the
    last minute, `total` in all."""
    if lane.lag > 0:
        find_waiting_of(lane, members, partitions, at, lag)
    else:
        for place in range(lane.width):
            lag[place] = 0.0
    for place in range(lane.width):
        share = arriving[place] / total if total > 0 else 1 / lane.width
        lag[place] += share * lane.uncommitted
