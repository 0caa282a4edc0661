"""Pure: incidents of a group's members: they come and go, or there are none."""

from zoneinfo import ZoneInfo

import numpy as np

from adapter.verdicts.causes import Verdict
from spark.advice.demand import Load
from spark.advice.finding import Finding, Severity
from spark.advice.incidents.times import ONE_INCIDENT_HOURS, explains_now, last_stretch, severity_of_past
from spark.advice.incidents.words import lasting, or_earlier, over
from spark.figures import formatting
from spark.figures.incidents import MemberHours
from spark.figures.model import Flags, Group, Periods, Times
from spark.figures.newest import begin_of, end_of
from spark.figures.periods import between, time_of
from spark.tables.layout import HOUR

MANY_CHANGES = 6
"""In an hour: an HPA that changes the replicas every ten minutes, or a rolling update."""
LONG_WITHOUT_SECONDS = 300.0
"""In an hour that has members too."""
ENOUGH_HOURS = 3
"""A rolling update is over sooner."""
SELDOM_HOURS = 24
"""Between two hours with idle members: an HPA that asks for too many does so at each day's peak."""


def unsteady_members(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    it = group.member_hours
    is_unsteady = (it.changes >= MANY_CHANGES) | (
        (it.without_seconds >= LONG_WITHOUT_SECONDS) & (it.most > 0) & (it.changes > 1)
    )
    last = last_stretch(it.start, is_unsteady & ~_is_planned(group, it.start))
    if np.count_nonzero(last) < ENOUGH_HOURS:
        return None
    since, until = time_of(it.start[last][0]), time_of(it.start[last][-1]) + HOUR
    end, is_exact = end_of(group), since > begin_of(group)
    is_over = end - until >= ONE_INCIDENT_HOURS * HOUR
    changes = _changes(it, last)
    return Finding(
        Verdict.UNSTEADY_MEMBERS,
        severity_of_past(group, until) if is_over else Severity.URGENT if _is_late(group) else Severity.WATCH,
        "Members came and went" if is_over else "Members come and go",
        (
            f"{over(since, until, zone, is_exact=is_exact)} members came and went, {changes}."
            if is_over
            else f"Members have been coming and going {lasting(since, end, zone, is_exact=is_exact)}: {changes}."
        ),
        is_cause=not is_over or explains_now(group, until),
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
    last = last_stretch(hours.start, alone)
    since, until = time_of(hours.start[last][0]), time_of(hours.start[last][-1]) + HOUR
    is_over, is_exact = not bool(alone[-1]), since > begin_of(group)
    number, in_last = int(alone.sum()), int(np.count_nonzero(last))
    waiting = f"while messages waited, {formatting.count(round(float(hours.lag_max[last][-1])))} at the end."
    past = f"{over(since, until, zone, is_exact=is_exact)} the group had no member"
    still = f"The group has had no member {lasting(since, until, zone, is_exact=is_exact)}"
    if in_last * HOUR < until - since:
        whole = formatting.plural((until - since) // HOUR, "hour")
        past += f" in {in_last} of these hours"
        still = f"The group had no member in {in_last} of the {whole} since {or_earlier(since, begin_of(group), zone)}"
    had_members = bool(np.nanmax(hours.members_max) > 0)
    return Finding(
        Verdict.LAG_WITHOUT_MEMBERS,
        severity_of_past(group, until) if is_over else Severity.URGENT,
        f"{'There was' if is_over else 'There has been'} no member for {formatting.plural(in_last, 'hour')}",
        (f"{past} {waiting}" if is_over else f"{still}, {waiting}")
        + (f" There were {formatting.plural(number, 'such hour')} in all." if number > in_last else ""),
        _after_absence(hours) if is_over else "Start its consumers." if had_members else None,
        is_cause=not is_over or explains_now(group, until),
        since=since,
        until=until if is_over else None,
        evidence=f"{formatting.plural(number, 'hour')} with a lag and without a member",
    )


def _after_absence(hours: Periods) -> str | None:
    """None: members are back."""
    if hours.members_max[-1] > 0:
        return None
    return "Nothing now: no message waits." if hours.lag_p50[-1] == 0 else "See whether its members are back."


def idle_members(group: Group, load: Load, *, zone: ZoneInfo) -> Finding | None:
    """More members than can have a partition, for longer than a rolling update takes."""
    hours = group.hours
    last = last_stretch(hours.start, hours.members_max > load.most_members, SELDOM_HOURS)
    if np.count_nonzero(last) < ENOUGH_HOURS:
        return None
    since, until = time_of(hours.start[last][0]), time_of(hours.start[last][-1]) + HOUR
    is_over, is_exact = end_of(group) - until >= SELDOM_HOURS * HOUR, since > begin_of(group)
    most = (
        f"of {round(float(hours.members_max[last].max()))} members, {load.most_members} can have a partition"
        + ("" if load.most_members == load.partitions else " (as many as the largest topic has)")
        + "; the rest"
    )
    return Finding(
        Verdict.IDLE_MEMBERS,
        Severity.NOTE if is_over else Severity.WATCH,
        "There were more members than partitions" if is_over else "More members than partitions",
        (
            f"{over(since, until, zone, is_exact=is_exact)} there were more members than partitions: {most} had "
            "nothing to read."
            if is_over
            else f"More members than partitions: {most} have had nothing to read since "
            f"{or_earlier(since, begin_of(group), zone)}."
        ),
        since=since,
        until=until if is_over else None,
        evidence=f"{formatting.plural(int(np.count_nonzero(last)), 'hour')}",
    )


def _is_planned(group: Group, start: Times) -> Flags:
    planned: Flags = np.isin(start, group.hours.start[group.is_paused])
    return planned
