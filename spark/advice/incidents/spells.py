"""Pure: when the lag of a topic was above its threshold, whether that is over, and whether it may return."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from spark.advice.demand import well_covered
from spark.figures import formatting
from spark.figures.incidents import SlowPartitions
from spark.figures.model import Above, Group, Periods, Times, TopicFigures, overlap
from spark.figures.periods import NUMPY_HOUR, median, time_of
from spark.tables.layout import HOUR

MUCH_OF_THE_TIME = 0.05
QUIET = timedelta(hours=24)
"""After the last spell, and longer than ever between the beginnings of two: it is over."""
WEEK = timedelta(days=7)
ENOUGH_SLOW_HOURS = 2
"""In which one partition has the lag: a single one may be a member that restarts."""


@dataclass(frozen=True, slots=True)
class Spells:
    """When the lag of a topic was above its threshold."""

    first: datetime
    """The beginning of the first spell."""
    last: datetime
    """The end of the last one."""
    longest: timedelta
    longest_quiet: timedelta
    """Between two."""
    since: datetime
    """When the first sample was taken, and the end of the last one."""
    until: datetime

    @property
    def is_over(self) -> bool:
        """Whether it has been quiet for more than a day, and for longer than it ever took from the beginning of one
        spell to the beginning of the next. A spell counts for a day at most."""
        return self.until - self.last > max(QUIET, self.longest_quiet + min(self.longest, QUIET))

    @property
    def goes_on(self) -> bool:
        """Whether the lag is above its threshold in the last sample."""
        return self.last >= self.until

    @property
    def may_be_weekly(self) -> bool:
        """Whether neither the week before nor the week after was seen, in which it would have come as well."""
        return self.first - WEEK < self.since and self.last + WEEK > self.until

    @property
    def seen(self) -> str:
        return formatting.duration((self.until - self.since).total_seconds())


def spells_of(topic: TopicFigures) -> Spells | None:
    """None: when they were is not known."""
    above, lag = topic.above, topic.lag
    if lag is None or above.first_from is None or above.last_until is None:
        return None
    longest, quiet = (timedelta(seconds=it) for it in (above.longest_seconds, above.longest_quiet_seconds))
    return Spells(above.first_from, above.last_until, longest, quiet, lag.since, lag.until)


def spells_in(topic: TopicFigures, hours: Periods) -> Spells | None:
    """By hours; None: the lag was above its threshold in none of them."""
    late = hours.start[hours.lag_p50 > topic.above.threshold]
    if not len(late):
        return None
    apart = np.flatnonzero(np.diff(late) > NUMPY_HOUR)
    begins, ends = late[np.append(0, apart + 1)], late[np.append(apart, len(late) - 1)] + NUMPY_HOUR
    return Spells(
        first=time_of(begins[0]),
        last=time_of(ends[-1]),
        longest=_longest(ends - begins),
        longest_quiet=_longest(begins[1:] - ends[:-1]),
        since=time_of(hours.start[0]),
        until=time_of(hours.start[-1]) + HOUR,
    )


def _longest(lengths: NDArray[np.timedelta64]) -> timedelta:
    return timedelta(hours=float((lengths / NUMPY_HOUR).max(initial=0)))


def times_the_usual(topic: TopicFigures, spells: Spells) -> float:
    """Production in the busiest hour of these spells, as times that of the median hour; 0 where nothing is known."""
    hours = well_covered(topic.hours)
    then = hours.production_rate[overlap(hours.start, spells.first, spells.last)]
    usual, busiest = median(hours.production_rate), float(then.max(initial=0))
    return 0.0 if not busiest else busiest / usual if usual > 0 else math.inf


def slow_of(topic: TopicFigures) -> SlowPartitions | None:
    """None: no partition was slow for long enough."""
    slow = topic.incidents.slow
    return slow if slow is not None and slow.hours >= ENOUGH_SLOW_HOURS and topic.incidents.unread is None else None


def has_threshold(topic: TopicFigures) -> bool:
    """One that was given, or derived from a production that is known."""
    return topic.above.is_given or float(np.nansum(topic.hours.covered_seconds)) > 0


def counts(topic: TopicFigures) -> bool:
    return topic.above.known_seconds > 0 and has_threshold(topic) and topic.incidents.unread is None


def share_above(above: Above) -> float:
    return above.seconds / above.known_seconds if above.known_seconds > 0 else 0.0


def explained_hours(group: Group, topic: TopicFigures) -> Times:
    """Hours in which messages waited without a member, or partitions of the topic stood still or were slow."""
    hours = group.hours
    is_waiting = ((hours.members_max == 0) | (hours.consumed == 0)) & (hours.lag_p50 > 0)
    for it in (topic.still, slow_of(topic)):
        if it is not None:
            is_waiting |= overlap(hours.start, it.since, it.until)
    explained: Times = hours.start[is_waiting]
    return explained
