"""Pure: what the newest samples of a group show, which is what "now" means in a report."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from spark.figures.model import STALE_SECONDS, Group, ReportData
from spark.figures.periods import time_of
from spark.tables.layout import HOUR


@dataclass(frozen=True, slots=True)
class Newest:
    lag: float | None
    """The topics' last known lags, added up; None: no topic has one."""
    wait_seconds: float | None
    """Of the slowest topic; None: not known."""
    wait_is_bound: bool
    """Whether a message may have waited longer."""
    at: datetime | None
    """The end of the oldest of these samples."""
    unknown_topics: int
    """Topics without a lag, which `lag` leaves out."""
    members_min: float
    """The fewest in the newest hour; NaN: not counted."""
    members_max: float


def is_now(newest: Newest, data: ReportData) -> bool:
    """Whether it shows what is now, as far as the report can: not where the group has ended, or is unknown since."""
    is_recent = newest.at is None or data.until - newest.at <= timedelta(seconds=STALE_SECONDS)
    return is_recent and not data.is_stale


def begin_of(group: Group) -> datetime:
    """The beginning of its first hour in the range."""
    return time_of(group.hours.start[0])


def end_of(group: Group) -> datetime:
    """The end of its newest hour."""
    return time_of(group.hours.start[-1]) + HOUR


def newest_of(group: Group) -> Newest:
    known = [topic.lag for topic in group.topics if topic.lag]
    waits = [topic.waits.last for topic in group.topics if topic.waits]
    return Newest(
        lag=sum(lag.last for lag in known) if known else None,
        wait_seconds=max(waits, default=None),
        wait_is_bound=any("last" in topic.at_least for topic in group.topics),
        at=min((lag.until for lag in known), default=None),
        unknown_topics=len(group.topics) - len(known),
        members_min=float(group.hours.members_min[-1]),
        members_max=float(group.hours.members_max[-1]),
    )
