"""Pure: a group's demand in the figures that advice is made from, and how many members a rate needs."""

import math
from dataclasses import dataclass, replace

import numpy as np

from adapter.verdicts.assignment import Sharing, most_members
from adapter.verdicts.capacity import Capacity
from spark.figures.model import Floats, Group, Periods
from spark.figures.periods import between
from spark.tables.contract import COVERED_SECONDS

HEADROOM = 1.5
"""Over the busiest hour: for peaks within it, and to work off what waited."""
USED_AT_MOST = 0.8
"""Of a member's capacity, where it has to hold for long."""
KEPT_UP = 0.98
"""Of what was produced: who consumed less of it fell behind. The rest may be what was not committed yet."""


@dataclass(frozen=True, slots=True)
class Load:
    """Rates are in messages per second, of hours that are covered well enough; NaN where there is none."""

    production: Floats
    off_peak: float
    """The tenth percentile of the hours' production."""
    usual: float
    """Their median."""
    peak: float
    """The busiest hour's."""
    steepest: float
    """The largest rate of five minutes by the clock, of the topic with most; no less than `peak`."""
    rise: float
    """The largest step from one hour to the next."""
    dips: int
    """How often an hour had less than half of the production of the hour before, of which four fifths were back within
    two hours."""
    idle_share: float
    """Of the hours, those in which nothing was produced."""
    covered_seconds: float
    """At most the hours themselves: what a gap before one counts in it was not seen."""
    partitions: int
    most_members: int
    """How many members can have a partition. Without a known assignment, no fewer than there were: in a share group,
    several members read one partition."""
    members_max: int | None
    members_now: int | None
    """In the newest hour in which they were counted, planned pauses left out."""
    capacity: Capacity | None
    at_least: float
    """What a member did in the hour in which it did most, without jumps of the commit: a capacity it has for sure."""

    @property
    def advised(self) -> float | None:
        """The capacity of one member to count with; None: it is not known, or it scatters and nothing explains it."""
        advised = self.capacity.advised if self.capacity else math.nan
        return None if math.isnan(advised) else advised

    @property
    def per_member(self) -> float:
        """What a member did for sure, where the capacity is not known."""
        return self.at_least if self.advised is None else self.advised


def load_of(group: Group) -> Load:
    counted = well_covered(group.hours)
    read_for_sure = well_covered(replace(group.hours, consumed=np.maximum(group.hours.consumed - group.jumped, 0)))
    production = production_of(group.hours)
    at_least = _done_for_sure(read_for_sure)
    members_max = _largest(group.hours.members_max)
    sharing = Sharing.TOGETHER if group.is_spread else Sharing.BY_TOPIC
    most = most_members([topic.partitions for topic in group.topics], sharing)
    return Load(
        production=production,
        off_peak=float(np.percentile(production, 10)),
        usual=float(np.median(production)),
        peak=float(production.max()),
        steepest=float(np.fmax(production.max(), np.fmax.reduce(group.hours.production_rate_max))),
        rise=_largest_rise(counted),
        dips=_dips(counted),
        idle_share=float(np.mean(production == 0)),
        covered_seconds=float(np.nansum(np.minimum(group.hours.covered_seconds, 3600))),
        partitions=group.partitions,
        most_members=max(most, members_max or 0) if group.is_spread is None else most,
        members_max=members_max,
        members_now=_members_now(group),
        capacity=group.capacity,
        at_least=at_least,
    )


def _members_now(group: Group) -> int | None:
    """Members that a planned pause sent home come back when it ends."""
    counted = ~np.isnan(group.hours.members_max)
    at_work = counted & ~group.is_paused
    return _largest(group.hours.members_max[at_work if at_work.any() else counted][-1:])


def production_of(hours: Periods) -> Floats:
    """Rates of the hours that are covered well enough; a NaN where there is none."""
    rates = well_covered(hours).production_rate
    return rates if len(rates) else np.full(1, np.nan)


def well_covered(hours: Periods) -> Periods:
    return between(hours, (hours.covered_seconds >= COVERED_SECONDS) & ~np.isnan(hours.produced))


def keeps_up(consumed: float, produced: float) -> bool:
    """Whether as much was consumed of what was produced in the same time, as far as commits show it."""
    return consumed >= KEPT_UP * produced


def members_needed(rate: float, per_member: float, partitions: int) -> int:
    """The least members that carry a rate spread evenly over whole partitions; all partitions where none do;
    one where the rate is not known.

    Members carry whole partitions, so 15 members of 40 partitions have one that carries 3, as 14 have.
    """
    if partitions < 1 or math.isnan(rate) or rate <= 0:
        return min(1, partitions)
    carried = math.floor(per_member * partitions / rate + 1e-9)
    return math.ceil(partitions / carried) if carried >= 1 else partitions


def _largest_rise(hours: Periods) -> float:
    following = np.diff(hours.start) == np.timedelta64(1, "h")
    rises = np.diff(hours.production_rate)[following]
    return float(rises.max(initial=0.0))


def _dips(hours: Periods) -> int:
    """Hours without a row are no dip."""
    rates = dict(zip(hours.start.astype("datetime64[h]").astype(np.int64).tolist(), hours.production_rate, strict=True))
    dips = 0
    for hour, rate in rates.items():
        before = rates.get(hour - 1, 0.0)
        after = max(rates.get(hour + number, 0.0) for number in (1, 2))
        dips += bool(rate < before / 2 and after >= 0.8 * before)
    return dips


def _done_for_sure(hours: Periods) -> float:
    """By as many members as there can have been: where they were not counted, one for each partition."""
    members = np.where(hours.members_max > 0, hours.members_max, np.maximum(hours.partitions, 1))
    working = np.where(hours.partitions > 0, np.fmin(members, hours.partitions), members)
    return float(np.fmax.reduce(hours.consumption_rate / working, initial=0.0))


def _largest(column: Floats) -> int | None:
    numbers = column[~np.isnan(column)]
    return int(numbers.max()) if len(numbers) else None
