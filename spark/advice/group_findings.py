"""Pure: trouble in a group that its history shows. One rule a function; each gives a `Finding` or nothing."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

from adapter.verdicts.causes import Verdict
from spark.advice.demand import Load, well_covered
from spark.advice.finding import RECREATIONS, RESETS, REWINDS, SKIPS, Finding, Severity
from spark.advice.incidents.partitions import falls_behind_alone, moving_hot
from spark.advice.incidents.words import named, some_of
from spark.figures import formatting
from spark.figures.incidents import Happened, HotHours
from spark.figures.model import Group, Periods, Still, TopicFigures, as_column, overlap
from spark.figures.periods import NUMPY_HOUR, between, last_hours, time_of
from spark.tables.layout import HOUR

Rule = Callable[[Group, Load], Finding | None]
HOT = 2.0
"""A partition with this many times its fair share is hot."""
RECENT_HOURS = 24
WORTH_WATCHING_HOURS = 7 * 24
"""An event before the last week of the range is only noted."""
SPREAD_IN_TIME = "Spread the keys over the partitions, before it is more than one member can read."
FEW_MESSAGES = 100
"""Below this, shares of partitions are chance."""


def _at_work(group: Group) -> Periods:
    """Its hours outside of planned pauses."""
    return between(group.hours, ~group.is_paused) if group.agreement.pauses else group.hours


def stuck(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    standing_still = [
        (topic.name, topic.partitions, topic.still)
        for topic in group.topics
        if topic.still is not None and topic.incidents.unread is None and _has_reader(group, topic.still)
    ]
    if not standing_still:
        return _stuck_as_a_whole(group, zone)
    newest = time_of(_at_work(group).start[-1])
    now = [each for each in standing_still if each[2].until > newest]
    stills = now or standing_still
    first = min((still for *_, still in stills), key=lambda still: still.since)
    until = max(still.until for *_, still in stills)
    what = named([_partitions(*it) for it in stills])
    is_one = sum(still.number for *_, still in stills) == 1
    owners = sorted({owner for *_, still in stills for owner in still.owners})
    waiting = formatting.plural(sum(still.lag for *_, still in stills), "message")
    return _stuck(
        f"{what[0].upper()}{what[1:]} {'stands' if is_one else 'stand'} still",
        f"{what} {_not_moved(first.since, None if now else until, zone, is_one=is_one, is_exact=first.is_exact)}, "
        f"{formatting.duration((until - first.since).total_seconds())}, although members were there and "
        f"{waiting} waited." + (f" Assigned to {named(owners)}." if owners else ""),
        subject=what,
        since=first.since,
        until=None if now else until,
        is_recent=_is_recent(group, until),
    )


def _stuck_as_a_whole(group: Group, zone: ZoneInfo) -> Finding | None:
    """By hours alone, where nothing is left of the partitions."""
    hours = well_covered(_at_work(group))
    still = (hours.consumed == 0) & (hours.lag_p50 > 0) & (hours.members_max > 0)
    if not still.any():
        return None
    last = int(np.flatnonzero(still)[-1])
    first = last - int(np.argmin(np.append(still[: last + 1][::-1], False))) + 1
    begin, until = (time_of(hours.start[at]) for at in (first, last))
    until += HOUR
    return _stuck(
        "No commit of the group moves",
        "the group's commits "
        f"{_not_moved(begin, None if still[-1] else until, zone, is_one=False, is_exact=False)}, "
        f"{formatting.duration((until - begin).total_seconds())}, although members were there and messages waited.",
        subject="",
        since=begin,
        until=None if still[-1] else until,
        is_recent=_is_recent(group, until),
    )


def _stuck(
    brief: str, words: str, *, subject: str, since: datetime, until: datetime | None, is_recent: bool
) -> Finding:
    is_over = until is not None
    return Finding(
        Verdict.STUCK,
        Severity.WATCH if is_over else Severity.URGENT,
        brief if not is_over else brief.replace("stands still", "stood still").replace("stand still", "stood still"),
        f"Stuck: {words} "
        + ("It ended before the last hour. " if is_over else "")
        + "The cause may also be work that takes longer than max.poll.interval.ms.",
        is_cause=is_recent,
        since=since,
        until=until,
        subject=subject,
    )


def _partitions(topic: str, partitions: int, still: Still) -> str:
    """`partition 7 of orders`, `3 of the 12 partitions of orders (0, 4, 7)`, `all 12 partitions of orders`."""
    if still.number >= partitions > 1:
        return some_of(partitions, partitions, topic)
    if still.number == 1:
        return f"partition {still.partitions[0]} of {topic}"
    numbers = ", ".join(map(str, still.partitions)) + (" and more" if still.number > len(still.partitions) else "")
    return f"{some_of(still.number, partitions, topic)} ({numbers})"


def _not_moved(since: datetime, until: datetime | None, zone: ZoneInfo, *, is_one: bool, is_exact: bool) -> str:
    """`until`: None while it goes on."""
    begin = formatting.moment(since, zone) + ("" if is_exact else " or earlier")
    if until is None:
        return f"{'has' if is_one else 'have'} not moved since {begin}"
    return f"did not move from {begin} to {formatting.moment(until, zone)}"


def _has_reader(group: Group, still: Still) -> bool:
    """Whether members were there in the last hour that is not a planned pause; where they were not counted, whether
    the group read anything."""
    hours = _at_work(group)
    if group.agreement.pauses:  # the hour in which a pause begins still had its readers
        hours = between(hours, hours.start >= as_column(still.since))
    last = last_hours(between(hours, overlap(hours.start, still.since, still.until)), 1)
    return bool(np.where(np.isnan(last.members_max), last.consumed > 0, last.members_max > 0).any())


def _is_recent(group: Group, until: datetime) -> bool:
    """Whether the last day was disturbed by what ended then."""
    return until > time_of(group.hours.start[-1]) + HOUR * (1 - RECENT_HOURS)


def falling_behind(group: Group, load: Load) -> Finding | None:
    hours = well_covered(last_hours(_at_work(group), RECENT_HOURS))
    topics = [topic for topic in group.topics if topic.incidents.unread is None]
    read = [between(topic.hours, np.isin(topic.hours.start, hours.start)) for topic in topics]
    produced, consumed = (sum(np.nansum(getattr(of, name)) for of in read) for name in ("produced", "consumed"))
    behind = [topic for topic in topics if topic.lag and topic.lag.last > max(topic.above.threshold, topic.lag.p50)]
    if not behind or len(hours) < 2 or consumed >= 0.98 * produced:
        return None
    return Finding(
        Verdict.FALLING_BEHIND,
        Severity.URGENT,
        "Falling behind",
        f"Falling behind: {formatting.share(1 - consumed / produced)} of the {formatting.count(produced)} messages of "
        f"the last {_how_many(group.hours, len(hours))} were not consumed in that time, and at the end the lag was "
        "above its threshold.",
        _relief(group, load),
        is_cause=True,
        since=min(_behind_since(topic, hours.start[0]) for topic in behind),
        subject=named([topic.name for topic in behind]),
        evidence=_how_many(group.hours, len(hours)),
    )


def _behind_since(topic: TopicFigures, otherwise: np.datetime64) -> datetime:
    """Returns the beginning of the last hours without a break in which the median lag was above its threshold;
    `otherwise`: that of none."""
    above = topic.hours.lag_p50 > topic.above.threshold
    hours = topic.hours.start[len(above) - int(np.argmin(np.append(above[::-1], False))) :]
    return time_of(hours[0] if len(hours) else otherwise)


def _relief(group: Group, load: Load) -> str:
    if load.capacity is None and hot_partition(group, load, zone=ZoneInfo("UTC")) is not None:
        return "Spread the keys over the partitions first; more replicas do not help its hot partition."
    if load.most_members > load.partitions:
        return "Give it more replicas, or faster work."
    if load.members_max is not None and load.members_max >= load.most_members:
        return "It has a member for each partition that one can read: give it more partitions, or faster work."
    return f"Give it more replicas: up to {load.most_members} can have a partition."


def _how_many(hours: Periods, seen: int) -> str:
    """Hours by the clock, and how many of them the figures are of: `24 hours (10 of them seen)`."""
    number = min(RECENT_HOURS, int((hours.start[-1] - hours.start[0]) / np.timedelta64(1, "h")) + 1)
    return formatting.plural(number, "hour") + (f" ({seen} of them seen)" if seen < number else "")


def hot_partition(group: Group, load: Load, *, zone: ZoneInfo) -> Finding | None:
    hottest, times = None, HOT
    for topic in group.topics:
        hours = well_covered(topic.hours)
        told = (hours.produced >= FEW_MESSAGES) & (hours.partitions > 1) & ~np.isnan(hours.skew)
        if told.any():
            larger = float(np.median(hours.skew[told] * hours.partitions[told]))
            if larger > times:
                in_last_day = hours.start[told] > group.hours.start[-1] - RECENT_HOURS * NUMPY_HOUR
                production = hours.production_rate[told]
                peaks = production.max(), production[in_last_day].max(initial=0)
                hottest, times = (topic, float(np.median(hours.skew[told])), peaks), larger
    if hottest is None:
        return None
    topic, largest, peaks = hottest
    beyond, beyond_now = (load.capacity is not None and largest * peak > load.capacity.p95 for peak in peaks)
    carried = _carried(load, beyond=beyond, beyond_now=beyond_now)
    is_helpless = beyond_now or load.capacity is None
    moving = moving_hot(topic)
    if moving is not None:
        is_behind = falls_behind_alone(topic)
        carried = "more replicas do not help it" if is_behind else carried
        return _moving_hot(topic, moving, largest, carried, zone, is_helpless=is_helpless or is_behind)
    which = _hottest(topic)
    return Finding(
        Verdict.HOT_PARTITION,
        Severity.URGENT if beyond_now else Severity.WATCH,
        f"{which} gets {formatting.share(largest)} of the messages",
        f"Hot partition: {which[0].lower()}{which[1:]} gets {formatting.share(largest)} of the topic's messages, "
        f"{formatting.decimal(times)} times its fair share. Members carry whole partitions: {carried}.",
        "" if is_helpless else SPREAD_IN_TIME,
        is_cause=beyond_now,
        since=topic.incidents.hot.since if topic.incidents.hot else None,
        subject=which[0].lower() + which[1:],
        evidence=f"{formatting.plural(int(np.count_nonzero(topic.hours.produced >= FEW_MESSAGES)), 'hour')}",
    )


def _carried(load: Load, *, beyond: bool, beyond_now: bool) -> str:
    """Whether one member can read a hot partition."""
    if load.capacity is None:
        return "more replicas do not help it"
    if not beyond:
        return "one can read this one, and more replicas help only with the others"
    return (
        "in the busiest hour it got more than a member did while saturated (a mean, with those that had little to "
        "do)" + (", and more replicas do not help it" if beyond_now else ". In the last day, it did not")
    )


def _moving_hot(
    topic: TopicFigures, hot: HotHours, largest: float, carried: str, zone: ZoneInfo, *, is_helpless: bool
) -> Finding:
    return Finding(
        Verdict.HOT_PARTITION,
        Severity.WATCH,
        f"The hot partition of {topic.name} moves",
        f"The hot partition of {topic.name} moves: in {formatting.plural(hot.hours, 'hour')} since "
        f"{formatting.moment(hot.since, zone)} one partition got more than twice its fair share, "
        f"{formatting.share(largest)} in the median hour, and {hot.partitions} of {topic.partitions} partitions did in "
        f"turn. Members carry whole partitions: {carried}.",
        "Look for what sends so many messages with one key, or to one partition at a time"
        + ("; more replicas do not help." if is_helpless else "."),
        is_cause=is_helpless,
        since=hot.since,
        subject=topic.name,
        evidence=f"{formatting.plural(hot.hours, 'hour')}",
    )


def _hottest(topic: TopicFigures) -> str:
    """The partition that is hot in the busiest hour; that of other hours may have been another one."""
    produced = {share.partition: share.produced for share in topic.shares.of} if topic.shares else {}
    hottest = max(produced, key=lambda partition: produced[partition], default=None)
    if hottest is None or produced[hottest] * len(produced) <= HOT * sum(produced.values()):
        return f"One partition of {topic.name}"
    return f"Partition {hottest} of {topic.name}"


def idle_members(_: Group, load: Load) -> Finding | None:
    if load.members_max is None or load.members_max <= load.most_members:
        return None
    return Finding(
        Verdict.IDLE_MEMBERS,
        Severity.WATCH,
        "More members than partitions",
        f"More members than partitions: of {load.members_max} members, {load.most_members} can have a partition"
        + ("" if load.most_members == load.partitions else " (as many as the largest topic has)")
        + "; the rest had nothing to read.",
    )


def _severity_of(hours: Periods, events: str) -> Severity:
    """What happened once and long ago is history, and a reset asks for nothing."""
    if events == RESETS:
        return Severity.NOTE
    recent = last_hours(hours, WORTH_WATCHING_HOURS)
    return Severity.WATCH if np.nansum(getattr(recent, events)) > 0 else Severity.NOTE


def _happened(group: Group, events: str) -> Happened | None:
    """To the group as a whole: however many partitions it had, it is one event. Where no sample is left, the hours that
    have it."""
    hours = np.flatnonzero(np.nan_to_num(getattr(group.hours, events)) > 0)
    if not len(hours):
        return None
    of_hours = Happened(len(hours), *(time_of(group.hours.start[hours[at]]) for at in (0, -1)))
    seen = group.happened.get(events)
    return of_hours if seen is None else replace(of_hours, number=max(seen.number, len(hours)), last=seen.last)


def _events(code: str, brief: str, words: str, group: Group, zone: ZoneInfo) -> Finding | None:
    """What the column of that name counts; `words` have how often it happened, and when."""
    happened = _happened(group, code)
    if happened is None:
        return None
    last = formatting.moment(happened.last, zone)
    when = f"on {last}" if happened.number == 1 else f"{formatting.plural(happened.number, 'time')}, last on {last}"
    return Finding(
        code,
        _severity_of(group.hours, code),
        brief,
        words.format(when),
        since=happened.first,
        until=happened.last,
        evidence=f"{formatting.count(float(np.nansum(getattr(group.hours, code))))} events of single partitions",
    )


def rewinds(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    words = "Commits went backward {}: messages were read again. What was read again is not counted as consumed."
    return _events(REWINDS, "Commits went backward", words, group, zone)


def skips(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    words = (
        "Commits skipped messages {}: from before the start of the log, where messages were deleted unread, or past "
        "its end. What was skipped is not counted as consumed."
    )
    return _events(SKIPS, "Messages were skipped", words, group, zone)


def resets(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    words = (
        "Log ends went backward {} (messages lost in an election, or a topic made again that has no id). What was "
        "produced across such a step is not counted."
    )
    return _events(RESETS, "Log ends went backward", words, group, zone)


def recreations(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    recreated = [topic.name for topic in group.topics if np.nansum(topic.hours.recreations)]
    happened = _happened(group, RECREATIONS)
    if not recreated or happened is None:
        return None
    return Finding(
        RECREATIONS,
        _severity_of(group.hours, RECREATIONS),
        f"{formatting.plural(len(recreated), 'topic')} deleted and made again",
        f"Deleted and made again, last on {formatting.moment(happened.last, zone)}: {named(recreated)}. What was not "
        "read of the old one is lost, and commits made for it mean nothing to the new one. Differences across the step "
        "are not counted.",
        since=happened.first,
        until=happened.last,
        subject=named(recreated),
    )
