"""Pure: lags above their thresholds: at times, or in the past alone."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np

from adapter.verdicts.causes import Verdict
from spark.advice.demand import Load
from spark.advice.finding import Finding, Severity
from spark.advice.incidents.spells import (
    MUCH_OF_THE_TIME,
    Spells,
    counts,
    explained_hours,
    has_threshold,
    share_above,
    spells_in,
    spells_of,
    times_the_usual,
)
from spark.advice.incidents.words import lasting, named, spanning
from spark.advice.weekly_pattern import STANDS_OUT
from spark.figures import formatting
from spark.figures.model import Above, Group, Periods, TopicFigures
from spark.figures.newest import begin_of
from spark.figures.periods import between

PAST = "Lag above its threshold in the past"
LONG_SECONDS = 3600.0
"""An episode that is said although such time is seldom."""


def above_threshold(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    """Time that another finding explains does not count."""
    if group.agreement.pauses:
        return _above_threshold_at_work(group, zone)
    topics = [topic for topic in group.topics if counts(topic)]
    left = {topic.name: topic.above.seconds - 3600.0 * _explained(group, topic) for topic in topics}
    share_of = {topic.name: left[topic.name] / topic.above.known_seconds for topic in topics}
    late = [
        topic
        for topic in topics
        if share_of[topic.name] > MUCH_OF_THE_TIME or min(topic.above.longest_seconds, left[topic.name]) >= LONG_SECONDS
    ]
    # What goes on must not be hidden by what is over in another topic.
    late.sort(key=lambda topic: (_is_over(topic), -share_of[topic.name]))
    return _above(group, late, zone, is_seldom=share_of[late[0].name] <= MUCH_OF_THE_TIME) if late else None


def _explained(group: Group, topic: TopicFigures) -> int:
    return len(np.intersect1d(explained_hours(group, topic), topic.hours_left))


def _above(group: Group, topics: Sequence[TopicFigures], zone: ZoneInfo, *, is_seldom: bool) -> Finding:
    """`topics`: the worst one first."""
    topic, *others = topics
    above, spells = topic.above, spells_of(topic)
    is_over = spells is not None and spells.is_over
    brief = f"Lag above its threshold {formatting.share(share_above(above))} of the time"
    finding = Finding(
        Verdict.ABOVE_THRESHOLD,
        Severity.NOTE if is_seldom else Severity.WATCH,
        PAST if is_over else brief,
        _in_words(above, spells, _lag_of(topic, others), zone),
        since=above.first_from or begin_of(group),
        subject=named([topic.name, *(other.name for other in others if _is_over(other) is is_over)]),
        evidence=f"{formatting.plural(above.episodes or 0, 'episode')} above the threshold",
    )
    if spells is not None and is_over:
        finding = _past(finding, topic, spells)
    return _as_well(finding, [_for_how_long(other) for other in others])


def _in_words(above: Above, spells: Spells | None, lag: str, zone: ZoneInfo) -> str:
    threshold = formatting.plural(above.threshold, "message")
    if spells is not None and spells.is_over:
        return _past_in_words(above, spells, f"the {lag} was above {threshold}", zone)
    if spells is not None and above.episodes == 1 and spells.goes_on:
        since = lasting(spells.first, spells.until, zone, is_exact=spells.first > spells.since)
        return f"The {lag} has been above {threshold} {since}."
    share = formatting.share(share_above(above))
    return f"The {lag} was above {threshold} for {share} of the time; {_how_often(above, spells, zone)}"


def _past_in_words(above: Above, spells: Spells, was_above: str, zone: ZoneInfo) -> str:
    first, number = formatting.moment(spells.first, zone), above.episodes or 0
    begin = f"Over since {formatting.moment(spells.last, zone)}: {was_above}"
    if number == 1:
        return f"{begin} once in {spells.seen}, for {formatting.duration(above.longest_seconds)} from {first} on."
    times = formatting.plural(number, "time")
    return f"{begin} {times} in {spells.seen}, first on {first}; the longest stretch was {_longest(above, zone)}."


def _how_often(above: Above, spells: Spells | None, zone: ZoneInfo) -> str:
    """The rest of a sentence, and another one of several episodes, of what is not over."""
    longest, number = f"the longest stretch was {_longest(above, zone)}", above.episodes or 0
    if spells is None or above.longest_from is None:
        return f"{longest}."
    if number == 1:
        return f"{longest}, the only one in {spells.seen}."
    first = formatting.moment(spells.first, zone)
    last = "goes on" if spells.goes_on else f"ended on {formatting.moment(spells.last, zone)}"
    return f"{longest}. The first of {formatting.count(number)} in {spells.seen} began on {first}, and the last {last}."


def _longest(above: Above, zone: ZoneInfo) -> str:
    length = timedelta(seconds=above.longest_seconds)
    begin = above.longest_from
    return formatting.duration(above.longest_seconds) if begin is None else spanning(begin, begin + length, zone)


def _past(finding: Finding, topic: TopicFigures, spells: Spells) -> Finding:
    """With its end, and what is known of its return."""
    times = times_the_usual(topic, spells)
    if not spells.may_be_weekly or times < STANDS_OUT:
        nothing = "Nothing now: it is over, and no HPA is needed for what is past."
        return replace(finding, severity=Severity.NOTE, until=spells.last, asks=nothing)
    again = (
        f" More was produced then{_many_times(times)}, and less than two weeks were seen: such a load may come each "
        "week."
    )
    asks = "See whether it returns: two weeks of history show it."
    return replace(finding, words=finding.words + again, until=spells.last, asks=asks, may_return=True)


def _many_times(times: float) -> str:
    return f", {formatting.decimal(times)} times the median hour" if math.isfinite(times) else ""


def _above_threshold_at_work(group: Group, zone: ZoneInfo) -> Finding | None:
    """By the median of each hour, since a planned pause is no trouble, and the time above has all hours in it."""
    topics = [(topic, _hours_at_work(group, topic)) for topic in group.topics if has_threshold(topic)]
    shares = [(topic, _share_above(topic, hours), spells_in(topic, hours)) for topic, hours in topics]
    late = [(topic, share, it) for topic, share, it in shares if share > MUCH_OF_THE_TIME and it is not None]
    if not late:
        return None
    late.sort(key=lambda each: (each[2].is_over, -each[1]))
    (worst, share, spells), *others = late
    lag, first = _lag_of(worst, others), formatting.moment(spells.first, zone)
    was_above = (
        f"the median {lag} was above {formatting.plural(worst.above.threshold, 'message')} in "
        f"{formatting.share(share)} of the hours, first on {first}."
    )
    words = (
        f"Over since {formatting.moment(spells.last, zone)}: outside of planned pauses, {was_above}"
        if spells.is_over
        else f"Outside of planned pauses, {was_above}"
    )
    finding = Finding(
        Verdict.ABOVE_THRESHOLD,
        Severity.WATCH,
        PAST if spells.is_over else f"Lag above its threshold in {formatting.share(share)} of the hours",
        words,
        since=spells.first,
        subject=named([topic.name for topic, *_ in late]),
    )
    if spells.is_over:
        finding = _past(finding, worst, spells)
    return _as_well(finding, [f"{topic.name} ({formatting.share(of)} of the hours)" for topic, of, _ in others])


def _hours_at_work(group: Group, topic: TopicFigures) -> Periods:
    counted = np.setdiff1d(group.hours.start[~group.is_paused], explained_hours(group, topic))
    return between(topic.hours, np.isin(topic.hours.start, counted) & (topic.hours.samples > 0))


def _share_above(topic: TopicFigures, hours: Periods) -> float:
    return float(np.mean(hours.lag_p50 > topic.above.threshold)) if len(hours) else 0.0


def _lag_of(topic: TopicFigures, others: Sequence[object]) -> str:
    return f"lag of {topic.name}" if others else "lag"


def _for_how_long(topic: TopicFigures) -> str:
    past = ", in the past" if _is_over(topic) else ""
    return f"{topic.name} ({formatting.share(share_above(topic.above))} of the time{past})"


def _as_well(finding: Finding, others: Sequence[str]) -> Finding:
    words = f" Other topics were above their thresholds as well: {named(others)}." if others else ""
    return replace(finding, words=finding.words + words)


def _is_over(topic: TopicFigures) -> bool:
    spells = spells_of(topic)
    return spells is not None and spells.is_over
