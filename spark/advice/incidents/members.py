"""Pure: incidents of a group's members: they come and go, or there are none."""

from zoneinfo import ZoneInfo

import numpy as np

from adapter.verdicts.causes import Verdict
from spark.advice.demand import Load
from spark.advice.finding import Finding, Severity
from spark.advice.incidents.partitions import RECENT, end_of
from spark.advice.incidents.words import lasting
from spark.figures import formatting
from spark.figures.incidents import MemberHours
from spark.figures.model import Flags, Group, Times
from spark.figures.periods import NUMPY_HOUR, between, time_of
from spark.tables.layout import HOUR

MANY_CHANGES = 6
"""In an hour: an HPA that changes the replicas every ten minutes, or a rolling update."""
LONG_WITHOUT_SECONDS = 300.0
"""In an hour that has members too."""
ENOUGH_HOURS = 3
"""A rolling update is over sooner."""
ONE_INCIDENT_HOURS = 3
"""Between two hours of one incident."""
MANY_MORE = 1.5
"""In an incident's last hour: above its threshold."""


def unsteady_members(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    it = group.member_hours
    is_unsteady = (it.changes >= MANY_CHANGES) | (
        (it.without_seconds >= LONG_WITHOUT_SECONDS) & (it.most > 0) & (it.changes > 1)
    )
    last = _last_stretch(it.start, is_unsteady & ~_is_planned(group, it.start))
    if np.count_nonzero(last) < ENOUGH_HOURS:
        return None
    since, until = time_of(it.start[last][0]), time_of(it.start[last][-1]) + HOUR
    end = end_of(group)
    is_over = end - until >= ONE_INCIDENT_HOURS * HOUR
    return Finding(
        Verdict.UNSTEADY_MEMBERS,
        Severity.URGENT if not is_over and _is_late(group) else Severity.WATCH,
        "Members come and go",
        f"Members {'came and went' if is_over else 'have been coming and going'} "
        f"{lasting(since, until if is_over else end, zone, is_over=is_over)}: {_changes(it, last)}.",
        is_cause=end - until < RECENT,
        since=since,
        until=until if is_over else None,
        evidence=f"{formatting.plural(int(np.count_nonzero(last)), 'hour')}",
    )


def _changes(it: MemberHours, last: Flags) -> str:
    changes, without = np.median(it.changes[last]), np.median(it.without_seconds[last])
    fewest, most = int(it.fewest[last].min()), int(it.most[last].max())
    said = f"{formatting.plural(round(float(changes)), 'change')} an hour, between {fewest} and {most}"
    return said + (f"; {formatting.duration(float(without))} of each hour without any" if without else "")


def _is_late(group: Group) -> bool:
    """Whether messages wait longer than agreed on, in the last hour."""
    return bool(group.hours.wait_p50[-1] > group.agreement.max_wait_seconds) or any(
        topic.lag is not None and topic.lag.last > topic.above.threshold for topic in group.topics
    )


def lag_without_members(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    hours = between(group.hours, ~group.is_paused)
    alone = (hours.lag_p50 > 0) & (hours.members_max == 0)
    if not alone.any():
        return None
    last = _last_stretch(hours.start, alone)
    since, until = time_of(hours.start[last][0]), time_of(hours.start[last][-1]) + HOUR
    is_over = not bool(alone[-1])
    number, in_last = int(alone.sum()), int(np.count_nonzero(last))
    lag = round(float(hours.lag_max[last][-1]))
    had_members = bool(np.nanmax(hours.members_max) > 0)
    return Finding(
        Verdict.LAG_WITHOUT_MEMBERS,
        Severity.WATCH if is_over else Severity.URGENT,
        f"{'There was' if is_over else 'There has been'} no member for {formatting.plural(in_last, 'hour')}",
        f"The group {'had no member' if is_over else 'has had no member'} "
        f"{lasting(since, until, zone, is_over=is_over)}, while messages waited, {formatting.count(lag)} at the end."
        + (f" There were {formatting.plural(number, 'such hour')} in all." if number > in_last else "")
        + (" That ended before the last hour." if is_over else ""),
        ""
        if not had_members
        else "Nothing now: its members are back."
        if is_over
        else "Start its consumers, or let an HPA on their lag do it.",
        is_cause=end_of(group) - until < RECENT,
        since=since,
        until=until if is_over else None,
        evidence=f"{formatting.plural(number, 'hour')} with a lag and without a member",
    )


def _last_stretch(start: Times, flags: Flags) -> Flags:
    """The last of these hours, and those before it that are not far from one another."""
    places = np.flatnonzero(flags)
    last: Flags = np.zeros(len(start), np.bool_)
    if len(places):
        is_far = np.diff(start[places]) > ONE_INCIDENT_HOURS * NUMPY_HOUR
        first = int(np.flatnonzero(is_far)[-1]) + 1 if is_far.any() else 0
        last[places[first:]] = True
    return last


def _is_planned(group: Group, start: Times) -> Flags:
    planned: Flags = np.isin(start, group.hours.start[group.is_paused])
    return planned
