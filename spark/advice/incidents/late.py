"""Pure: messages that wait longer than agreed on, and why that may be no trouble."""

from collections.abc import Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np

from adapter.verdicts.causes import Verdict
from spark.advice.demand import Load
from spark.advice.finding import Finding, Severity
from spark.advice.incidents.words import lasting, named
from spark.figures import formatting
from spark.figures.model import Above, Group, Times, TopicFigures, overlap
from spark.figures.periods import between

MUCH_OF_THE_TIME = 0.05
LONG_SECONDS = 3600.0
"""An episode that is said although such time is seldom."""
QUIET = timedelta(hours=24)
"""After the last episode, and longer than ever between two: it is over."""
ALWAYS = 0.9
"""Of the time."""
SAME_WAIT = 0.1
"""Of the median wait: with no more between p50 and p95, it is always the same."""
COMMITS_EXPLAIN = 1.25
"""Times the time between two commits: a wait that is not longer follows from them alone."""


def above_threshold(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    """Time that another finding explains does not count."""
    if group.agreement.pauses:
        return _above_threshold_at_work(group)
    topics = [topic for topic in group.topics if _counts(topic)]
    left = {topic.name: topic.above.seconds - 3600.0 * _explained(group, topic) for topic in topics}
    share_of = {topic.name: left[topic.name] / topic.above.known_seconds for topic in topics}
    late = [
        topic
        for topic in topics
        if share_of[topic.name] > MUCH_OF_THE_TIME or min(topic.above.longest_seconds, left[topic.name]) >= LONG_SECONDS
    ]
    # What goes on must not be hidden by what is over in another topic.
    late.sort(key=lambda topic: (_is_over(topic), -share_of[topic.name]))
    return _above(late, zone, is_seldom=share_of[late[0].name] <= MUCH_OF_THE_TIME) if late else None


def _counts(topic: TopicFigures) -> bool:
    return topic.above.known_seconds > 0 and has_threshold(topic) and topic.incidents.unread is None


def _explained(group: Group, topic: TopicFigures) -> int:
    return len(np.intersect1d(explained_hours(group, topic), topic.hours_left))


def _above(topics: Sequence[TopicFigures], zone: ZoneInfo, *, is_seldom: bool) -> Finding:
    """`topics`: the worst one first."""
    topic, *others = topics
    above = topic.above
    share, threshold = _share(above), formatting.plural(above.threshold, "message")
    is_over, lag = _is_over(topic), _lag_of(topic, others)
    longest = above.longest_from and lasting(
        above.longest_from, above.longest_from + timedelta(seconds=above.longest_seconds), zone, is_over=True
    )
    stretch = f"the longest stretch was {longest or formatting.duration(above.longest_seconds)}"
    if is_over and above.last_until is not None:
        since = formatting.moment(above.last_until, zone)
        brief = "Lag above its threshold in the past"
        words = f"Over since {since}: until then the {lag} was above {threshold}; {stretch}."
    else:
        brief = f"Lag above its threshold {formatting.share(share)} of the time"
        words = f"The {lag} was above {threshold} for {formatting.share(share)} of the time; {stretch}."
    return Finding(
        Verdict.ABOVE_THRESHOLD,
        Severity.NOTE if is_over or is_seldom else Severity.WATCH,
        brief,
        words + _as_well([_for_how_long(other) for other in others]),
        "Nothing now: it is over, and no HPA is needed for what is past." if is_over else "",
        since=above.first_from,
        until=above.last_until if is_over else None,
        subject=named([topic.name, *(other.name for other in others if _is_over(other) is is_over)]),
        evidence=f"{formatting.plural(above.episodes or 0, 'episode')} above the threshold",
    )


def _is_over(topic: TopicFigures) -> bool:
    """Whether the lag has been below its threshold for longer than ever between two episodes."""
    last, above = topic.lag, topic.above
    if last is None or above.last_until is None:
        return False
    quiet = last.until - above.last_until
    return quiet > max(QUIET, timedelta(seconds=above.longest_quiet_seconds))


def _above_threshold_at_work(group: Group) -> Finding | None:
    """By the median of each hour, since a planned pause is no trouble, and the time above has all hours in it."""
    at_work = group.hours.start[~group.is_paused]
    shares = [(topic, _share_of_hours(group, topic, at_work)) for topic in group.topics if has_threshold(topic)]
    late = sorted((each for each in shares if each[1] > MUCH_OF_THE_TIME), key=lambda each: -each[1])
    if not late:
        return None
    (worst, share), *others = late
    lag = _lag_of(worst, others)
    return Finding(
        Verdict.ABOVE_THRESHOLD,
        Severity.WATCH,
        f"Lag above its threshold in {formatting.share(share)} of the hours",
        f"Outside of planned pauses, the median {lag} was above "
        f"{formatting.plural(worst.above.threshold, 'message')} in {formatting.share(share)} of the hours."
        + _as_well([f"{topic.name} ({formatting.share(share)} of the hours)" for topic, share in others]),
        subject=named([topic.name for topic, _ in late]),
    )


def _share_of_hours(group: Group, topic: TopicFigures, at_work: Times) -> float:
    counted = np.setdiff1d(at_work, explained_hours(group, topic))
    hours = between(topic.hours, np.isin(topic.hours.start, counted) & (topic.hours.samples > 0))
    return float(np.mean(hours.lag_p50 > topic.above.threshold)) if len(hours) else 0.0


def _lag_of(topic: TopicFigures, others: Sequence[object]) -> str:
    return f"lag of {topic.name}" if others else "lag"


def _for_how_long(topic: TopicFigures) -> str:
    past = ", in the past" if _is_over(topic) else ""
    return f"{topic.name} ({formatting.share(_share(topic.above))} of the time{past})"


def _as_well(others: Sequence[str]) -> str:
    return f" Other topics were above their thresholds as well: {named(others)}." if others else ""


def explained_hours(group: Group, topic: TopicFigures) -> Times:
    """Hours in which messages waited without a member, or partitions of the topic stood still."""
    hours = group.hours
    is_waiting = ((hours.members_max == 0) | (hours.consumed == 0)) & (hours.lag_p50 > 0)
    if topic.still is not None:
        is_waiting |= overlap(hours.start, topic.still.since, topic.still.until)
    explained: Times = hours.start[is_waiting]
    return explained


def has_threshold(topic: TopicFigures) -> bool:
    """One that was given, or derived from a production that is known."""
    return topic.above.is_given or float(np.nansum(topic.hours.covered_seconds)) > 0


def rare_commits(group: Group, _: Load) -> Finding | None:
    if group.commit_seconds is None:
        return None
    waits = [topic.waits.p95 for topic in group.topics if topic.waits]
    bound = COMMITS_EXPLAIN * group.commit_seconds + group.interval_seconds
    is_cause = bool(waits) and max(waits) <= bound
    is_late = is_cause and any(_share(topic.above) > MUCH_OF_THE_TIME for topic in group.topics if _counts(topic))
    return Finding(
        Verdict.RARE_COMMITS,
        Severity.WATCH if is_late else Severity.NOTE,
        "Commits are rarer than samples",
        f"Commits are rarer than samples: about one every {formatting.duration(group.commit_seconds)}, sampled every "
        f"{formatting.duration(group.interval_seconds)}. The lag includes what is processed but not committed, and "
        "moves in steps" + (", which alone are above its threshold." if is_late else "."),
        "Commit more often, or agree on a longer wait (maxWait); more replicas do not help." if is_late else "",
        is_cause=is_cause,
        evidence=f"commits moved in {group.pace.moving} of {formatting.plural(group.pace.lagging, 'sample')}",
    )


def reads_late(group: Group, _: Load) -> Finding | None:
    """A consumer that waits on purpose keeps up, and its messages wait all the same."""
    late = [topic for topic in group.topics if topic.waits and _share(topic.above) >= ALWAYS and _counts(topic)]
    if group.capacity is not None or not late:
        return None
    topic = max(late, key=lambda it: it.waits.p50 if it.waits else 0.0)
    waits = topic.waits
    if waits is None or waits.p95 - waits.p50 > max(SAME_WAIT * waits.p50, 2 * group.interval_seconds):
        return None
    return Finding(
        Verdict.READS_LATE,
        Severity.WATCH,
        f"Reads {formatting.duration(waits.p50)} late",
        f"Messages of {topic.name} always wait about {formatting.duration(waits.p50)}, however many there are "
        f"({formatting.duration(waits.p95)} at most for {formatting.share(0.95)} of the time): members keep up and "
        "read late, as if on purpose.",
        is_cause=True,
        subject=topic.name,
        evidence=f"{formatting.plural(topic.lag.samples if topic.lag else 0, 'sample')}",
    )


def _share(above: Above) -> float:
    return above.seconds / above.known_seconds if above.known_seconds > 0 else 0.0
