"""Pure: incidents of single topics and partitions."""

from datetime import datetime
from zoneinfo import ZoneInfo

from adapter.verdicts.causes import Verdict
from spark.advice.demand import Load
from spark.advice.finding import Finding, Severity
from spark.advice.incidents.spells import slow_of
from spark.advice.incidents.times import explains_now, severity_of_past
from spark.advice.incidents.words import lasting, listed, named, or_earlier, over, some_of
from spark.figures import formatting
from spark.figures.incidents import SlowPartitions
from spark.figures.model import Group
from spark.figures.newest import begin_of, end_of


def unread_topic(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    unread = [(topic.name, it) for topic in group.topics if (it := topic.incidents.unread) is not None]
    first = min((it for _, it in unread), key=lambda it: it.since, default=None)
    if first is None:
        return None
    names = named([name for name, _ in unread])
    produced, waiting = (sum(getattr(it, name) for _, it in unread) for name in ("produced", "lag"))
    was_read = any(it.was_read for _, it in unread)
    when = lasting(first.since, end_of(group), zone, is_exact=first.was_read)
    return Finding(
        Verdict.UNREAD_TOPIC,
        Severity.URGENT if was_read and produced else Severity.WATCH if produced else Severity.NOTE,
        f"No member reads {names}",
        f"No member has read {names} {when}, although members read other topics of the group; "
        f"{_messages(waiting, 'wait') if waiting else _messages(produced, 'arrived')} there.",
        since=first.since,
        subject=names,
        evidence="the assignment at the end of each hour, and the last commit",
    )


def _messages(number: int, verb: str) -> str:
    return f"{formatting.plural(number, 'message')} {verb + 's' if number == 1 and verb == 'wait' else verb}"


def slow_partition(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    slow = [(topic, it) for topic in group.topics if (it := slow_of(topic)) is not None]
    if not slow:
        return None
    topic, worst = max(slow, key=lambda pair: (pair[1].until, pair[1].lag))
    end = end_of(group)
    is_over, is_one, is_exact = worst.until < end, len(worst.partitions) == 1, worst.since > begin_of(group)
    which = f"partition{'' if is_one else 's'} {listed(worst.partitions)} of {topic.name}"
    has, them, gets = ("has", "it", "gets") if is_one else ("have", "they", "get")
    lag = f"{formatting.share(worst.lag_share)} of the topic's lag"
    return Finding(
        Verdict.SLOW_PARTITION,
        severity_of_past(group, worst.until) if is_over else Severity.URGENT,
        f"P{which[1:]} {'had' if is_over else has} the lag",
        (
            f"{over(worst.since, worst.until, zone, is_exact=is_exact)} {which} had {lag}, although {them} got "
            if is_over
            else f"P{which[1:]} {has} had {lag} {lasting(worst.since, worst.until, zone, is_exact=is_exact)}, although "
            f"{them} {gets} "
        )
        + f"{formatting.share(worst.produced_share)} of the messages; {formatting.plural(worst.lag, 'message')} waited "
        f"at most. {_suspects(worst, is_over=is_over)}",
        None
        if is_one or is_over
        else "Look at these partitions' messages, and at who reads them; more replicas do not help.",
        is_cause=not is_over or explains_now(group, worst.until),
        since=worst.since,
        until=worst.until if is_over else None,
        subject=which,
        evidence=f"the largest lags of {formatting.plural(worst.hours, 'hour')}",
    )


def _suspects(slow: SlowPartitions, *, is_over: bool) -> str:
    """A member that reads all of them is a likelier cause than messages in each."""
    is_one, owners = len(slow.partitions) == 1, slow.owners
    if is_over:
        said = (
            f"Either {'its' if is_one else 'their'} messages took long or failed, or the member that read "
            f"{'it' if is_one else 'them'} was slow."
        )
        return said + (f" Assigned to {listed(owners)} then." if owners else "")
    members = "members that read" if len(owners) > 1 else "member that reads"
    said = (
        f"Either {'its' if is_one else 'their'} messages take long or fail, or the {members} "
        f"{'it' if is_one else 'them'} {'are' if len(owners) > 1 else 'is'} slow."
    )
    if not is_one and len(owners) == 1:
        return f"{said} All are assigned to {owners[0]}: look at that member first."
    return said + (f" Assigned to {listed(owners)}." if owners else "")


def uncommitted(group: Group, _: Load, *, zone: ZoneInfo) -> Finding | None:
    """Partitions without a commit are no part of the lag that the report shows."""
    topics = [topic for topic in group.topics if topic.uncommitted]
    counted = sum(topic.uncommitted_lag for topic in topics)
    arrived = sum(topic.incidents.uncommitted_produced for topic in topics) if _has_members(group) else 0
    has_none = sum(topic.uncommitted for topic in topics) == group.partitions
    if not counted and not arrived and not (topics and has_none):
        return None
    first = begin_of(group)
    since = min((it.incidents.uncommitted_since or first for it in topics), default=first)
    which = named([some_of(topic.uncommitted, topic.partitions, topic.name) for topic in topics])
    them = "it" if sum(topic.uncommitted for topic in topics) == 1 else "them"
    return Finding(
        Verdict.UNCOMMITTED,
        Severity.WATCH if counted or arrived else Severity.NOTE,
        f"{formatting.plural(max(counted, arrived), 'message')} in partitions without a commit",
        f"Without a commit: {which}; {_uncommitted_messages(counted, arrived, since, zone, them)}"
        + ("" if arrived and not counted else f" That began on {or_earlier(since, first, zone)}."),
        None
        if counted
        else f"See whether a member reads {them}, and why it does not commit."
        if arrived
        else "Nothing, if the group is new; else look for why it does not commit.",
        is_cause=has_none,
        since=since,
        subject=which,
    )


def _uncommitted_messages(counted: int, arrived: int, since: datetime, zone: ZoneInfo, them: str) -> str:
    if counted:
        return (
            f"the adapter counts {formatting.plural(counted, 'message')} in {them}, which the lag of this report "
            "leaves out: those after a commit that has expired, or with offsetReset: earliest the whole log."
        )
    if arrived:
        return (
            f"{formatting.plural(arrived, 'message')} arrived in {them} since {formatting.moment(since, zone)} while "
            "the group had members, and none of them was committed. The lag leaves them out."
        )
    return f"the adapter counts nothing in {them}."


def _has_members(group: Group) -> bool:
    return bool((group.hours.members_max[-24:] > 0).any())
