"""When an incident began and ended, and how much it still matters."""

from datetime import datetime, timedelta

import numpy as np

from spark.advice.demand import keeps_up, well_covered
from spark.advice.finding import Severity
from spark.figures.model import Flags, Group, Times, as_column
from spark.figures.newest import end_of
from spark.figures.periods import NUMPY_HOUR, between, time_of
from spark.tables.layout import HOUR

ONE_INCIDENT_HOURS = 3
"""Between two hours of one incident."""
RECENT = 24 * HOUR
"""What ended longer ago explains nothing of now."""
ENOUGH_HOURS = 2
"""In which it is seen whether a group keeps up."""
WORTH_WATCHING = timedelta(days=7)
"""What ended longer before the end of the range is only noted."""


def severity_of_past(group: Group, until: datetime) -> Severity:
    """Of what ended then."""
    return Severity.WATCH if end_of(group) - until <= WORTH_WATCHING else Severity.NOTE


def explains_now(group: Group, until: datetime) -> bool:
    """Whether what ended then explains what the group is like now: it disturbed the last day, or the one before a
    planned pause at the end, and the group has kept up since."""
    at_work = between(group.hours, ~group.is_paused)
    hours = at_work if len(at_work) else group.hours
    if until <= time_of(hours.start[-1]) + HOUR - RECENT:
        return False
    since_then = well_covered(between(hours, hours.start >= as_column(until)))
    consumed, produced = (float(np.nansum(column)) for column in (since_then.consumed, since_then.produced))
    return len(since_then) < ENOUGH_HOURS or keeps_up(consumed, produced)


def last_stretch(start: Times, flags: Flags, most_hours: int = ONE_INCIDENT_HOURS) -> Flags:
    """The last of these hours, and those before it, back to the first gap of more than `most_hours`."""
    places = np.flatnonzero(flags)
    last: Flags = np.zeros(len(start), np.bool_)
    if len(places):
        is_far = np.diff(start[places]) > most_hours * NUMPY_HOUR
        first = int(np.flatnonzero(is_far)[-1]) + 1 if is_far.any() else 0
        last[places[first:]] = True
    return last
