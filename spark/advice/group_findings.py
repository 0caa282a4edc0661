"""Pure: trouble in a group that its history shows. One rule a function; each gives a `Finding` or nothing."""

from __future__ import annotations

import numpy as np

from spark.advice.demand import Load, well_covered
from spark.advice.finding import Finding, Severity
from spark.figures import formatting
from spark.figures.model import Group, Periods, Topic
from spark.figures.periods import between, last_hours

MUCH_OF_THE_TIME = 0.05
HOT = 2.0
"""A partition with this many times its fair share is hot."""
RECENT_HOURS = 24
WORTH_WATCHING_HOURS = 7 * 24
"""An event before the last week of the range is only noted."""
MOST_NAMES = 3
FEW_MESSAGES = 100
"""Below this, shares of partitions are chance."""


def _at_work(group: Group) -> Periods:
    """Its hours outside of planned pauses."""
    return between(group.hours, ~group.is_paused) if group.agreement.pauses else group.hours


def stuck(group: Group, _: Load) -> Finding | None:
    hours = well_covered(_at_work(group))
    still = (hours.consumed == 0) & (hours.lag_p50 > 0) & (hours.members_max > 0)
    number = int(still.sum())
    if not number:
        return None
    return Finding(
        "stuck",
        Severity.URGENT if still[-1] else Severity.WATCH,
        f"Commits stood still for {formatting.plural(number, 'hour')} while messages waited",
        f"Stuck: in {formatting.plural(number, 'hour')} members were there and messages waited, but no commit moved. "
        "More replicas do not help: look for a message that cannot be processed, or work that takes longer than "
        "max.poll.interval.ms." + ("" if still[-1] else " At the end it was over."),
        is_over=not still[-1],
    )


def lag_without_members(group: Group, _: Load) -> Finding | None:
    hours = _at_work(group)
    alone = (hours.lag_p50 > 0) & (hours.members_max == 0)
    number = int(alone.sum())
    if not number:
        return None
    had_members = np.nanmax(hours.members_max) > 0
    return Finding(
        "lag_without_members",
        Severity.URGENT if alone[-1] else Severity.WATCH,
        f"Messages waited for {formatting.plural(number, 'hour')} without a member",
        f"Messages waited through {formatting.plural(number, 'hour')} in which the group had no member at all."
        + ("" if alone[-1] else " At the end it was over."),
        "Start its consumers, or let an HPA on their lag do it." if had_members else "",
        is_over=not alone[-1],
    )


def falling_behind(group: Group, _: Load) -> Finding | None:
    hours = well_covered(last_hours(_at_work(group), RECENT_HOURS))
    produced, consumed = np.nansum(hours.produced), np.nansum(hours.consumed)
    behind = [
        topic for topic in group.topics if topic.lag and topic.lag.last > max(topic.above.threshold, topic.lag.p50)
    ]
    if not behind or len(hours) < 2 or consumed >= 0.98 * produced:
        return None
    return Finding(
        "falling_behind",
        Severity.URGENT,
        "Falling behind",
        f"Falling behind: {formatting.share(1 - consumed / produced)} of the {formatting.count(produced)} "
        f"messages of the last "
        f"{_how_many(group.hours, len(hours))} were not consumed in that time, and at the end the lag was "
        "above its threshold.",
    )


def _how_many(hours: Periods, seen: int) -> str:
    """Hours by the clock, and how many of them the figures are of: `24 hours (10 of them seen)`."""
    number = min(RECENT_HOURS, int((hours.start[-1] - hours.start[0]) / np.timedelta64(1, "h")) + 1)
    return formatting.plural(number, "hour") + (f" ({seen} of them seen)" if seen < number else "")


def above_threshold(group: Group, _: Load) -> Finding | None:
    if group.agreement.pauses:
        return _above_threshold_at_work(group)
    above = [topic.above for topic in group.topics if topic.above.known_seconds > 0 and _has_threshold(topic)]
    worst = max(above, key=lambda it: it.seconds / it.known_seconds, default=None)
    if worst is None or worst.seconds / worst.known_seconds <= MUCH_OF_THE_TIME:
        return None
    return Finding(
        "above_threshold",
        Severity.WATCH,
        f"Lag above its threshold {formatting.share(worst.seconds / worst.known_seconds)} of the time",
        f"The lag was above {formatting.plural(worst.threshold, 'message')} for "
        f"{formatting.share(worst.seconds / worst.known_seconds)} "
        f"of the time; the longest time on end was {formatting.duration(worst.longest_seconds)}.",
    )


def _above_threshold_at_work(group: Group) -> Finding | None:
    """By the median of each hour, since a planned pause is no trouble, and the time above has all hours in it."""
    worst, threshold = 0.0, 0
    for topic in group.topics:
        hours = between(topic.hours, np.isin(topic.hours.start, _at_work(group).start) & (topic.hours.samples > 0))
        share = float(np.mean(hours.lag_p50 > topic.above.threshold)) if len(hours) and _has_threshold(topic) else 0.0
        if share > worst:
            worst, threshold = share, topic.above.threshold
    if worst <= MUCH_OF_THE_TIME:
        return None
    return Finding(
        "above_threshold",
        Severity.WATCH,
        f"Lag above its threshold in {formatting.share(worst)} of the hours",
        f"Outside of planned pauses, the median lag was above {formatting.plural(threshold, 'message')} in "
        f"{formatting.share(worst)} of the hours.",
    )


def _has_threshold(topic: Topic) -> bool:
    """One that was given, or derived from a production that is known."""
    return topic.above.is_given or float(np.nansum(topic.hours.covered_seconds)) > 0


def hot_partition(group: Group, load: Load) -> Finding | None:
    hottest, times = None, HOT
    for topic in group.topics:
        hours = well_covered(topic.hours)
        told = (hours.produced >= FEW_MESSAGES) & (hours.partitions > 1) & ~np.isnan(hours.skew)
        if told.any():
            larger = float(np.median(hours.skew[told] * hours.partitions[told]))
            if larger > times:
                hottest, times = (topic, float(np.median(hours.skew[told])), hours.production_rate[told].max()), larger
    if hottest is None:
        return None
    topic, largest, peak = hottest
    beyond = load.capacity is not None and largest * peak > load.capacity.p95
    return Finding(
        "hot_partition",
        Severity.URGENT if beyond else Severity.WATCH,
        f"One partition of {topic.name} gets {formatting.share(largest)}",
        f"Hot partition: one partition of {topic.name} gets {formatting.share(largest)} of its messages, "
        f"{formatting.decimal(times)} times its fair share. Members carry whole partitions: "
        + (
            "in the busiest hour it got more than a member did while saturated (a mean, with those that had little to "
            "do), so more replicas are unlikely to help; spread the keys."
            if beyond
            else "replicas beyond what that partition needs bring little; spread the keys."
        ),
    )


def idle_members(_: Group, load: Load) -> Finding | None:
    if load.members_max is None or load.members_max <= load.partitions:
        return None
    return Finding(
        "idle_members",
        Severity.WATCH,
        "More members than partitions",
        f"More members than partitions: {load.members_max} members for "
        f"{formatting.plural(load.partitions, 'partition')}; "
        "the rest had nothing to read.",
    )


def _severity_of(hours: Periods, events: str) -> Severity:
    """What happened once and long ago is history."""
    recent = last_hours(hours, WORTH_WATCHING_HOURS)
    return Severity.WATCH if np.nansum(getattr(recent, events)) > 0 else Severity.NOTE


def rewinds(group: Group, _: Load) -> Finding | None:
    number = int(np.nansum(group.hours.rewinds))
    if not number:
        return None
    return Finding(
        "rewinds",
        _severity_of(group.hours, "rewinds"),
        "Commits went backward",
        f"Commits went backward {formatting.plural(number, 'time')}: messages were read again. What was read again is "
        "not counted as consumed.",
    )


def skips(group: Group, _: Load) -> Finding | None:
    number = int(np.nansum(group.hours.skips))
    if not number:
        return None
    return Finding(
        "skips",
        _severity_of(group.hours, "skips"),
        "Messages were skipped",
        f"Commits skipped messages {formatting.plural(number, 'time')}: from before the start of the log, where "
        "messages were deleted unread, or to behind its end. What was skipped is not counted as consumed.",
    )


def recreations(group: Group, _: Load) -> Finding | None:
    made = [topic for topic in group.topics if np.nansum(topic.hours.recreations)]
    if not made:
        return None
    named = ", ".join(topic.name for topic in made[:MOST_NAMES]) + (" and others" if len(made) > MOST_NAMES else "")
    return Finding(
        "recreations",
        _severity_of(group.hours, "recreations"),
        f"{formatting.plural(len(made), 'topic')} deleted and made again",
        f"Deleted and made again: {named}. What was not read of the old one is lost, and commits made for it mean "
        "nothing to the new one. Differences across the step are not counted.",
    )
