"""When an incident began and ended, and how much it still matters."""

from datetime import datetime, timedelta

import numpy as np

from spark.advice.finding import Severity
from spark.figures.model import Flags, Group, Times
from spark.figures.newest import end_of
from spark.figures.periods import NUMPY_HOUR
from spark.tables.layout import HOUR

ONE_INCIDENT_HOURS = 3
"""Between two hours of one incident."""
RECENT = 24 * HOUR
"""What ended longer ago explains nothing of now."""
WORTH_WATCHING = timedelta(days=7)
"""What ended longer before the end of the range is only noted."""


def severity_of_past(group: Group, until: datetime) -> Severity:
    """Of what ended then."""
    return Severity.WATCH if end_of(group) - until <= WORTH_WATCHING else Severity.NOTE


def last_stretch(start: Times, flags: Flags, most_hours: int = ONE_INCIDENT_HOURS) -> Flags:
    """The last of these hours, and those before it of which no two are more than `most_hours` apart."""
    places = np.flatnonzero(flags)
    last: Flags = np.zeros(len(start), np.bool_)
    if len(places):
        is_far = np.diff(start[places]) > most_hours * NUMPY_HOUR
        first = int(np.flatnonzero(is_far)[-1]) + 1 if is_far.any() else 0
        last[places[first:]] = True
    return last
