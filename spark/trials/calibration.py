"""Pure: how a group's past is reproduced, from its minutes.

A replay of what might have been is worth something only where the members that really were there, replayed in the same
way, give the lag and the wait that were observed."""

from dataclasses import dataclass, replace

import numpy as np

from adapter.verdicts.simulation.consumers import Consumers
from adapter.verdicts.simulation.load import NO_EVENTS, Events, Load
from adapter.verdicts.simulation.replay import Replay
from adapter.verdicts.simulation.scalers import Lane
from spark.errors import Unusable
from spark.figures import formatting
from spark.figures.model import Flags, Floats
from spark.trials.minutes import Minutes

FITS_WITHIN = 0.25
"""Of the observed wait's 95th percentile."""
KNOWN_WITHIN = 0.5
"""Of the interval between two samples: when a message arrived between them is interpolated."""
UNSTEADY_SHARE = 0.05
"""Of the minutes, those in which the number of members changed, or since the one before."""
FEW_PARTITIONS = 0.25
"""Of all partitions: fewer have the lag while members have nothing else to do."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one course of events, over the minutes in which the lag was known."""

    minutes: int
    wait_p50: float
    wait_p95: float
    wait_p99: float
    wait_max: float
    minutes_above: int
    """Those in which a message waited longer than promised."""
    replica_hours: float
    changes_a_day: float
    lag_p95: float

    @property
    def kept_share(self) -> float:
        """Of the minutes, in which no message waited longer than promised."""
        return 1 - self.minutes_above / self.minutes

    @property
    def replicas_mean(self) -> float:
        return self.replica_hours * 60 / self.minutes


@dataclass(frozen=True, slots=True)
class Calibration:
    capacity: float
    """Messages per second of one member: the median of saturated windows."""
    windows: int
    observed: Figures
    replayed: Figures
    misfit: str
    """Why the past is not reproduced, as a sentence; empty: it is."""

    @property
    def off_seconds(self) -> float:
        """Between the 95th percentiles of the wait."""
        return abs(self.replayed.wait_p95 - self.observed.wait_p95)

    @property
    def is_close(self) -> bool:
        return self.off_seconds <= FITS_WITHIN * self.observed.wait_p95

    @property
    def doubt(self) -> str:
        """What is to be known of a past that is reproduced only as far as samples show it; else empty."""
        if self.is_close or self.misfit:
            return ""
        return (
            f"The wait p95 is off by {formatting.duration(self.off_seconds)}. That is more than "
            f"{formatting.share(FITS_WITHIN)} of it, but no more than half of the time between two samples, and no "
            f"more than {formatting.share(FITS_WITHIN)} of the wait that is promised."
        )


@dataclass(frozen=True, slots=True)
class Courses:
    """Minute by minute; NaN: not known."""

    lag: Floats
    wait_seconds: Floats
    replicas: Floats


def load_of(minutes: Minutes) -> Load:
    known = np.flatnonzero(minutes.is_known)
    lag, wait = (float(minutes.lag[known[0]]), float(minutes.wait_seconds[known[0]])) if len(known) else (0.0, 0.0)
    return Load(minutes.produced, minutes.skew, lag, wait, minutes.weights)


def events_of(minutes: Minutes) -> Events:
    return NO_EVENTS if minutes.pace is None else Events(capacity=minutes.pace)


def as_they_were(minutes: Minutes, consumers: Consumers) -> Lane:
    """The replay of the members that were there. Raises Unusable where they were not counted."""
    members = members_of(minutes).astype(np.int64)
    return Lane(load_of(minutes), consumers, members=members, events=events_of(minutes))


def calibration_of(
    minutes: Minutes, consumers: Consumers, promised: float, windows: int, result: Replay
) -> tuple[Calibration, Courses]:
    """From the result of `as_they_were`. Returns also the course that was observed, for charts; its figures count in
    minutes without a count of members those of the last count. `windows`: those of which the consumers' capacity is
    the median."""
    members = members_of(minutes)
    observed = Courses(minutes.lag, minutes.wait_seconds, members)
    known, changes = minutes.is_known, int(np.count_nonzero(np.diff(members)))
    was, again = (figures_of(it, known, promised, changes) for it in (observed, as_served(minutes, consumers, result)))
    calibration = Calibration(consumers.capacity, windows, was, again, misfit="")
    shown = replace(observed, replicas=minutes.members_max)
    if calibration.is_close or calibration.off_seconds <= unseen_seconds(consumers, promised):
        return calibration, shown
    return replace(calibration, misfit=_misfit(calibration, minutes, consumers)), shown


def unseen_seconds(consumers: Consumers, promised: float) -> float:
    """By which waits may be off although that is a larger share of them: what samples cannot show, as long as it is
    small beside the promise. An HPA that just keeps it may be off by as much, if the past is close."""
    return min(KNOWN_WITHIN * consumers.interval_seconds, FITS_WITHIN * promised)


def as_served(minutes: Minutes, consumers: Consumers, result: Replay) -> Courses:
    """With the time between reading and committing, in which a message still waits as far as anybody can see."""
    wait = result.wait_seconds.astype(float) + flights_of(minutes, consumers)
    return Courses(result.lag.astype(float), wait, result.replicas.astype(float))


def flights_of(minutes: Minutes, consumers: Consumers) -> Floats:
    """Returns the seconds between reading and committing, minute by minute."""
    return np.where(np.nan_to_num(minutes.produced) > 0, in_flight_seconds(minutes, consumers), 0.0)


def in_flight_seconds(minutes: Minutes, consumers: Consumers) -> float:
    """The lower quartile of the waits of busy minutes: what waits although members keep up. It is no longer than
    commits and samples explain: where members seldom keep up, that quartile is a backlog, which replays have anyway."""
    waits = minutes.wait_seconds[minutes.is_known & (minutes.produced > 0)]
    longest = consumers.commit_seconds + consumers.interval_seconds
    return min(float(np.percentile(waits, 25)), longest) if len(waits) else 0.0


def figures_of(course: Courses, known: Flags, promised: float, changes: int) -> Figures:
    """`known`: the minutes that are compared; there is one at least, and the course is known in all of them."""
    lag_p95, replicas = float(np.percentile(course.lag[known], 95)), float(course.replicas[known].sum())
    return figures_from(course.wait_seconds[known], lag_p95, replicas, promised, changes * 1440 / len(known))


def figures_from(
    waits: Floats, lag_p95: float, replica_minutes: float, promised: float, changes_a_day: float
) -> Figures:
    """`waits`: of the minutes that are compared."""
    p50, p95, p99 = np.percentile(waits, (50, 95, 99))
    return Figures(
        minutes=len(waits),
        wait_p50=float(p50),
        wait_p95=float(p95),
        wait_p99=float(p99),
        wait_max=float(waits.max()),
        minutes_above=int(np.count_nonzero(waits > promised)),
        replica_hours=replica_minutes / 60,
        changes_a_day=changes_a_day,
        lag_p95=lag_p95,
    )


def _misfit(it: Calibration, minutes: Minutes, consumers: Consumers) -> str:
    known = minutes.is_known
    changed = float(np.mean(_is_unsteady(minutes)[known]))
    if changed > UNSTEADY_SHARE:
        return f"members came and went in {formatting.share(changed)} of the minutes"
    late = known & (minutes.wait_seconds > max(it.replayed.wait_p95, it.observed.wait_p50))
    if late.any() and np.median(minutes.partitions_with_lag[late]) <= FEW_PARTITIONS * consumers.width:
        few = int(np.median(minutes.partitions_with_lag[late]))
        return f"in late minutes, {few} of {consumers.width} partitions had the lag: they were not read, or slowly"
    if it.replayed.wait_p95 < it.observed.wait_p95:
        return (
            "messages waited longer than the minutes explain: in bursts within a minute, in several busy partitions of "
            "one member, for slower members, or while members were away between two samples"
        )
    return (
        "messages waited shorter than the minutes explain: members did more than in the minutes in which they were "
        "saturated, or several busy partitions were those of different members"
    )


def _is_unsteady(minutes: Minutes) -> Flags:
    """In which minutes the number of members changed, or since the last count before. With one sample a minute, none
    is seen to change within one. Where members were not counted, nothing is known to have changed."""
    members = members_of(minutes)
    changed: Flags = (minutes.members_min < minutes.members_max) | (np.diff(members, prepend=members[0]) != 0)
    return changed


def members_of(minutes: Minutes) -> Floats:
    """Unknown minutes have those of the last known one."""
    members = minutes.members_max
    known = np.flatnonzero(~np.isnan(members))
    if not len(known):
        raise Unusable("the members of the group were not counted in the range")
    latest = np.maximum.accumulate(np.where(np.isnan(members), known[0], np.arange(len(members))))
    filled: Floats = members[latest]
    return filled
