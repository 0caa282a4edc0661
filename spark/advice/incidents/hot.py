"""Pure: a partition that gets far more than its fair share of a topic's messages, or several that do in turn."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

from adapter.verdicts.causes import Verdict
from spark.advice.demand import Load, keeps_up, well_covered
from spark.advice.finding import Finding, Severity
from spark.advice.incidents.times import severity_of_past
from spark.advice.incidents.words import or_earlier, over
from spark.figures import formatting
from spark.figures.incidents import HotHours
from spark.figures.model import Flags, Group, Periods, TopicFigures
from spark.figures.newest import begin_of
from spark.figures.periods import NUMPY_HOUR, between, time_of
from spark.tables.layout import HOUR

HOT = 2.0
"""A partition with this many times its fair share is hot."""
FEW_MESSAGES = 100
"""Below this, shares of partitions are chance."""
QUIET_HOURS = 24
"""Hours in a row that have messages and no hot partition: it is over."""
SPREAD_IN_TIME = "Spread the keys over the partitions, before it is more than one member can read."
MOVES = 0.5
"""Of the hot hours: a partition that is the hottest in fewer is not the cause."""
SEVERAL = 3


@dataclass(frozen=True, slots=True)
class _Hot:
    topic: TopicFigures
    share: float
    """The largest partition's, in the median hour."""
    times: float
    """Of its fair share, in the median hour."""
    since: datetime
    until: datetime
    is_over: bool
    hours: int
    """Since then, those in which a partition was hot."""
    seen: int
    """Since then, those whose shares are known."""


def hot_partition(group: Group, load: Load, *, zone: ZoneInfo) -> Finding | None:
    """Of several topics, one that is hot still comes before one that was hot, and then the hottest one."""
    hot = [it for topic in group.topics if (it := _hot_of(topic)) is not None]
    if not hot:
        return None
    worst = min(hot, key=lambda it: (it.is_over, -it.times))
    moving = moving_hot(worst.topic)
    if worst.is_over:
        return _past(group, worst, moving, zone)
    reading = _reading_of(group, load, worst, moves=moving is not None)
    return _one(group, worst, reading, zone) if moving is None else _moving(group, worst, moving, reading, zone)


def _hot_of(topic: TopicFigures) -> _Hot | None:
    """In the median hour, a partition is hot."""
    hours = _told(topic)
    if not len(hours):
        return None
    times = hours.skew * hours.partitions
    if float(np.median(times)) <= HOT:
        return None
    places = np.flatnonzero(times > HOT)
    is_far = np.flatnonzero(np.diff(places) > QUIET_HOURS)
    places = places[is_far[-1] + 1 :] if len(is_far) else places
    first, last = int(places[0]), int(places[-1])
    return _Hot(
        topic,
        share=float(np.median(hours.skew)),
        times=float(np.median(times)),
        since=time_of(hours.start[first]),
        until=time_of(hours.start[last]) + HOUR,
        is_over=len(hours) - 1 - last >= QUIET_HOURS,
        hours=len(places),
        seen=last - first + 1,
    )


def _told(topic: TopicFigures) -> Periods:
    """Hours whose shares are no chance."""
    hours = well_covered(topic.hours)
    is_told: Flags = (hours.produced >= FEW_MESSAGES) & (hours.partitions > 1) & ~np.isnan(hours.skew)
    return between(hours, is_told)


def moving_hot(topic: TopicFigures) -> HotHours | None:
    """The hot hours of a topic whose hottest partition changes; None: it does not."""
    hot = topic.incidents.hot
    moves = hot is not None and hot.partitions >= SEVERAL and hot.most_hours <= MOVES * hot.hours
    return hot if moves else None


def falls_behind_alone(topic: TopicFigures) -> bool:
    """Whether in the busiest hour the partition that got most fell behind, beyond the threshold, while the others kept
    up: a member cannot read it, whatever members did with all of their partitions together."""
    shares = topic.shares.of if topic.shares else ()
    hot = max(shares, key=lambda share: share.produced, default=None)
    if hot is None or keeps_up(hot.consumed, hot.produced) or (hot.lag or 0) <= topic.above.threshold:
        return False
    others = [share for share in shares if share is not hot]
    return keeps_up(sum(share.consumed for share in others), sum(share.produced for share in others))


@dataclass(frozen=True, slots=True)
class _Reading:
    """Whether one member can read the hot partition."""

    words: str
    exceeds: bool
    """Whether in the last day it got more than a member can do."""
    is_helpless: bool
    """Whether more replicas do not help, as far as is known."""


def _reading_of(group: Group, load: Load, it: _Hot, *, moves: bool) -> _Reading:
    if load.capacity is None or (moves and falls_behind_alone(it.topic)):
        return _Reading("more replicas do not help it", exceeds=False, is_helpless=True)
    hours, most = _told(it.topic), load.capacity.p95
    today = between(hours, hours.start > group.hours.start[-1] - QUIET_HOURS * NUMPY_HOUR)
    exceeded, exceeds = (it.share * each.production_rate.max(initial=0) > most for each in (hours, today))
    if not exceeded:
        words = "one can read this one, and more replicas help only with the others"
        return _Reading(words, exceeds=False, is_helpless=False)
    words = (
        "in the busiest hour it got more than a member did while saturated (a mean, with those that had little to do)"
        + (", and more replicas do not help it" if exceeds else ". In the last day, it did not")
    )
    return _Reading(words, bool(exceeds), bool(exceeds))


def _one(group: Group, it: _Hot, reading: _Reading, zone: ZoneInfo) -> Finding:
    which, share = _hottest(it.topic), formatting.share(it.share)
    return Finding(
        Verdict.HOT_PARTITION,
        Severity.URGENT if reading.exceeds else Severity.WATCH,
        f"{which[0].upper()}{which[1:]} gets {share} of the messages",
        f"Hot partition: {which} gets {share} of the topic's messages, {_far(it)}, since "
        f"{or_earlier(it.since, begin_of(group), zone)}. Members carry whole partitions: {reading.words}.",
        None if reading.is_helpless else SPREAD_IN_TIME,
        is_cause=reading.exceeds,
        since=it.since,
        subject=which,
        evidence=_evidence(it),
    )


def _moving(group: Group, it: _Hot, hot: HotHours, reading: _Reading, zone: ZoneInfo) -> Finding:
    return Finding(
        Verdict.HOT_PARTITION,
        Severity.WATCH,
        f"The hot partition of {it.topic.name} moves",
        f"The hot partition of {it.topic.name} moves: in {formatting.plural(it.hours, 'hour')} since "
        f"{or_earlier(it.since, begin_of(group), zone)} {_in_turn(it, hot)}. Members carry whole partitions: "
        f"{reading.words}.",
        "Look for what sends so many messages with one key, or to one partition at a time"
        + ("; more replicas do not help." if reading.is_helpless else "."),
        is_cause=reading.is_helpless,
        since=it.since,
        subject=it.topic.name,
        evidence=_evidence(it),
    )


def _past(group: Group, it: _Hot, moving: HotHours | None, zone: ZoneInfo) -> Finding:
    """`moving`: None if it was one partition."""
    which, share = _hottest(it.topic), formatting.share(it.share)
    got = f"got {share} of the "
    moved = f"the hot partition of {it.topic.name} moved"
    return Finding(
        Verdict.HOT_PARTITION,
        severity_of_past(group, it.until),
        f"{which[0].upper()}{which[1:]} {got}messages" if moving is None else f"{moved[0].upper()}{moved[1:]}",
        f"{over(it.since, it.until, zone, is_exact=it.since > begin_of(group))} "
        + (
            f"{which} {got}topic's messages, {_far(it)}."
            if moving is None
            else f"{moved}: in {formatting.plural(it.hours, 'hour')}, {_in_turn(it, moving)}."
        ),
        since=it.since,
        until=it.until,
        subject=which if moving is None else it.topic.name,
        evidence=_evidence(it),
    )


def _far(it: _Hot) -> str:
    return f"{formatting.decimal(it.times)} times its fair share"


def _in_turn(it: _Hot, hot: HotHours) -> str:
    return (
        f"one partition got more than twice its fair share, {formatting.share(it.share)} in the median hour, and "
        f"{hot.partitions} of {it.topic.partitions} partitions did in turn"
    )


def _evidence(it: _Hot) -> str:
    return f"{formatting.count(it.hours)} of {formatting.plural(it.seen, 'hour')}"


def _hottest(topic: TopicFigures) -> str:
    """The partition that is hot in the busiest hour; that of other hours may have been another one."""
    produced = {share.partition: share.produced for share in topic.shares.of} if topic.shares else {}
    hottest = max(produced, key=lambda partition: produced[partition], default=None)
    if hottest is None or produced[hottest] * len(produced) <= HOT * sum(produced.values()):
        return f"one partition of {topic.name}"
    return f"partition {hottest} of {topic.name}"
