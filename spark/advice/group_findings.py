"""Pure: trouble in a group that its history shows. One rule a function; each gives a `Finding` or nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

from adapter.verdicts.causes import Verdict
from spark.advice.demand import Load, keeps_up, well_covered
from spark.advice.finding import RECREATIONS, RESETS, REWINDS, SKIPS, Finding, Severity
from spark.advice.incidents.times import WORTH_WATCHING, explains_now, severity_of_past
from spark.advice.incidents.words import lasting, named, or_earlier, over, some_of
from spark.advice.relief import relief
from spark.figures import formatting
from spark.figures.incidents import Happened
from spark.figures.model import Group, Periods, Still, TopicFigures, as_column, overlap
from spark.figures.newest import begin_of
from spark.figures.periods import between, last_hours, time_of
from spark.tables.layout import HOUR

Rule = Callable[[Group, Load], Finding | None]
_StillTopic = tuple[str, int, Still]
"""A topic's name, the number of its partitions, and what stands still of it."""
RECENT_HOURS = 24


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
    stills = now or _last_of(standing_still)
    first = min((still for *_, still in stills), key=lambda still: still.since)
    until = max(still.until for *_, still in stills)
    what = named([_partitions(*it) for it in stills])
    owners = sorted({owner for *_, still in stills for owner in still.owners})
    waiting = formatting.plural(sum(still.lag for *_, still in stills), "message")
    return _stuck(
        group,
        _Stuck(
            what,
            is_one=sum(still.number for *_, still in stills) == 1,
            since=first.since,
            is_exact=first.is_exact,
            until=until,
            is_over=not now,
            waiting=f"{waiting} waited",
            owners=f" Assigned to {named(owners)}{'' if now else ' then'}." if owners else "",
        ),
        zone,
    )


def _last_of(over: Sequence[_StillTopic]) -> list[_StillTopic]:
    """What stood still at the same time as the last of these: others were incidents of their own."""
    *_, last = max(over, key=lambda each: each[2].until)
    return [each for each in over if each[2].until > last.since]


def _stuck_as_a_whole(group: Group, zone: ZoneInfo) -> Finding | None:
    """By hours alone, where nothing is left of the partitions."""
    hours = well_covered(_at_work(group))
    still = (hours.consumed == 0) & (hours.lag_p50 > 0) & (hours.members_max > 0)
    if not still.any():
        return None
    last = int(np.flatnonzero(still)[-1])
    first = last - int(np.argmin(np.append(still[: last + 1][::-1], False))) + 1
    since, until = time_of(hours.start[first]), time_of(hours.start[last]) + HOUR
    return _stuck(group, _Stuck("", False, since, is_exact=False, until=until, is_over=not still[-1]), zone)


@dataclass(frozen=True, slots=True)
class _Stuck:
    what: str
    """Partitions; empty: the commits of the whole group."""
    is_one: bool
    since: datetime
    is_exact: bool
    """Whether it began then; else it may have been earlier."""
    until: datetime
    is_over: bool
    waiting: str = "messages waited"
    owners: str = ""
    """A sentence."""


def _stuck(group: Group, it: _Stuck, zone: ZoneInfo) -> Finding:
    subject = it.what or "the group's commits"
    but = f"although members were there and {it.waiting}.{it.owners}"
    return Finding(
        Verdict.STUCK,
        severity_of_past(group, it.until) if it.is_over else Severity.URGENT,
        _stuck_in_brief(it),
        (
            f"{over(it.since, it.until, zone, is_exact=it.is_exact)} {subject} did not move, {but} The cause may have "
            "been a message that could not be processed, or work that took longer than max.poll.interval.ms."
            if it.is_over
            else f"Stuck: {subject} {'has' if it.is_one else 'have'} not moved "
            f"{lasting(it.since, it.until, zone, is_exact=it.is_exact)}, {but} The cause may also be work that takes "
            "longer than max.poll.interval.ms."
        ),
        is_cause=not it.is_over or explains_now(group, it.until),
        since=it.since,
        until=it.until if it.is_over else None,
        subject=it.what,
    )


def _stuck_in_brief(it: _Stuck) -> str:
    if not it.what:
        return f"No commit of the group {'moved' if it.is_over else 'moves'}"
    return f"{it.what[0].upper()}{it.what[1:]} {'stood' if it.is_over else 'stands' if it.is_one else 'stand'} still"


def _partitions(topic: str, partitions: int, still: Still) -> str:
    """`partition 7 of orders`, `3 of the 12 partitions of orders (0, 4, 7)`, `all 12 partitions of orders`."""
    if still.number >= partitions > 1:
        return some_of(partitions, partitions, topic)
    if still.number == 1:
        return f"partition {still.partitions[0]} of {topic}"
    numbers = ", ".join(map(str, still.partitions)) + (" and more" if still.number > len(still.partitions) else "")
    return f"{some_of(still.number, partitions, topic)} ({numbers})"


def _has_reader(group: Group, still: Still) -> bool:
    """Whether members were there in the last hour that is not a planned pause; where they were not counted, whether
    the group read anything."""
    hours = _at_work(group)
    if group.agreement.pauses:  # the hour in which a pause begins still had its readers
        hours = between(hours, hours.start >= as_column(still.since))
    last = last_hours(between(hours, overlap(hours.start, still.since, still.until)), 1)
    return bool(np.where(np.isnan(last.members_max), last.consumed > 0, last.members_max > 0).any())


def falling_behind(group: Group, load: Load, *, zone: ZoneInfo) -> Finding | None:
    hours = well_covered(last_hours(_at_work(group), RECENT_HOURS))
    topics = [topic for topic in group.topics if topic.incidents.unread is None]
    read = [between(topic.hours, np.isin(topic.hours.start, hours.start)) for topic in topics]
    produced, consumed = (sum(np.nansum(getattr(of, name)) for of in read) for name in ("produced", "consumed"))
    behind = [topic for topic in topics if topic.lag and topic.lag.last > max(topic.above.threshold, topic.lag.p50)]
    if not behind or len(hours) < 2 or keeps_up(consumed, produced):
        return None
    since = min(_behind_since(topic, hours.start[0]) for topic in behind)
    return Finding(
        Verdict.FALLING_BEHIND,
        Severity.URGENT,
        "Falling behind",
        f"Falling behind since {or_earlier(since, begin_of(group), zone)}: {formatting.share(1 - consumed / produced)} "
        f"of the {formatting.count(produced)} messages of the last {_how_many(group.hours, len(hours))} were not "
        "consumed in that time, and at the end the lag was above its threshold.",
        relief(group, load, zone),
        is_cause=True,
        since=since,
        subject=named([topic.name for topic in behind]),
        evidence=_how_many(group.hours, len(hours)),
    )


def _behind_since(topic: TopicFigures, otherwise: np.datetime64) -> datetime:
    """Returns the beginning of the last hours without a break in which the median lag was above its threshold;
    `otherwise`: that of none."""
    above = topic.hours.lag_p50 > topic.above.threshold
    hours = topic.hours.start[len(above) - int(np.argmin(np.append(above[::-1], False))) :]
    return time_of(hours[0] if len(hours) else otherwise)


def _how_many(hours: Periods, seen: int) -> str:
    """Hours by the clock, and how many of them the figures are of: `24 hours (10 of them seen)`."""
    number = min(RECENT_HOURS, int((hours.start[-1] - hours.start[0]) / np.timedelta64(1, "h")) + 1)
    return formatting.plural(number, "hour") + (f" ({seen} of them seen)" if seen < number else "")


def _severity_of(hours: Periods, events: str) -> Severity:
    """What happened once and long ago is history, and a reset asks for nothing."""
    if events == RESETS:
        return Severity.NOTE
    recent = last_hours(hours, WORTH_WATCHING // HOUR)
    return Severity.WATCH if np.nansum(getattr(recent, events)) > 0 else Severity.NOTE


def _happened(group: Group, events: str) -> Happened | None:
    """To the group as a whole: however many partitions it had, it is one event. Where no sample is left, the hours that
    have it."""
    hours = np.flatnonzero(np.nan_to_num(getattr(group.hours, events)) > 0)
    if not len(hours):
        return None
    of_hours = Happened(len(hours), *(time_of(group.hours.start[hours[at]]) for at in (0, -1)))
    seen = group.happened.get(events)
    if seen is None:
        return of_hours
    first = seen.first if seen.first < of_hours.first + HOUR else of_hours.first
    number = max(seen.number, len(hours))
    return Happened(number, first, seen.last if number > 1 else first)


def _events(code: str, brief: str, words: str, group: Group, zone: ZoneInfo) -> Finding | None:
    """What the column of that name counts; `words` have how often it happened, and when."""
    happened = _happened(group, code)
    if happened is None:
        return None
    return Finding(
        code,
        _severity_of(group.hours, code),
        brief,
        words.format(_how_often(happened, zone)),
        since=happened.first,
        until=happened.last,
        evidence=f"{formatting.count(float(np.nansum(getattr(group.hours, code))))} events of single partitions",
    )


def _how_often(happened: Happened, zone: ZoneInfo) -> str:
    first, last = (formatting.moment(at, zone) for at in (happened.first, happened.last))
    if happened.number == 1:
        return f"on {last}"
    times = formatting.plural(happened.number, "time")
    return f"{times} on {last}" if first == last else f"{times}, first on {first}, last on {last}"


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
        f"Deleted and made again {_how_often(happened, zone)}: {named(recreated)}. What was not "
        "read of the old one is lost, and commits made for it mean nothing to the new one. Differences across the step "
        "are not counted.",
        since=happened.first,
        until=happened.last,
        subject=named(recreated),
    )
