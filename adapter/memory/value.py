"""What is remembered of the groups of one cluster. Times are in seconds since the epoch.

Collectors and processes see different things at different times, and one rule merges what they saw: of each fact, the
later observation counts (`later`; over the columns of rows, `rows.recalled`). A fact is the commit of one partition,
which topic has the name (its id), or which topics the members of a group read. So a group that was reset to an earlier
offset keeps that offset, a topic that was created again replaces the former one with all its partitions, and what one
observer could not read of a partition is as the other one saw it. An observation that is dated more than a minute ahead
of our clock counts as the oldest. A collector that has described a group itself relies on that description, whatever
others saw (`Members.recall`).

Transaction markers need no time: that a marker follows an offset stays true, so it holds for every reading of that
offset."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from adapter.columns import NO_COMMIT
from adapter.lag.saturation import BusyWindow, newest_of


class LastCommit(NamedTuple):
    """The commit of one partition."""

    seen_at: int
    """When Kafka last reported this commit; 0 if no commit was ever seen."""
    offset: int
    """NO_COMMIT: none was seen, or the log has lost the messages before it."""
    has_marker: bool = False
    """Whether a transaction marker follows, which the group never passes."""


NEVER_SEEN = LastCommit(0, NO_COMMIT)
SKEW_SECONDS = 60.0
"""How far another clock may be ahead."""
DELETED = ""
"""In place of a topic's id."""
DELETED_SECONDS = 86_400
"""After that, no other process remembers a deleted topic."""


@dataclass(frozen=True, slots=True)
class TopicMemory:
    topic_id: str | None
    commits: tuple[LastCommit, ...]
    """One for each partition that the topic had."""

    @property
    def seen_at(self) -> int:
        return max((reading.seen_at for reading in self.commits), default=0)

    def has_news(self, written: "TopicMemory | None", live_since: float) -> bool:
        if self.topic_id == DELETED:
            return written is not None
        if written is None or written.topic_id != self.topic_id:
            return True
        pairs = zip_longest(self.commits, written.commits, fillvalue=NEVER_SEEN)
        return any(own[1:] != theirs[1:] and (own.seen_at < live_since or own.has_marker) for own, theirs in pairs)


@dataclass(frozen=True, slots=True)
class Reads:
    """Which topics the members of a group read when it was last described as Stable, or since; none if it is Empty."""

    topics: frozenset[str]
    seen_at: int
    outdated_since: int | None = None
    """Since when the description may no longer be true; None: it is."""


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """Of a group that Kafka knows or once knew."""

    topics: Mapping[str, TopicMemory] = field(default_factory=dict)
    reads: Reads | None = None
    windows: tuple[BusyWindow, ...] = ()
    """In which its members were busy all the time."""

    @property
    def seen_at(self) -> int:
        return max((topic.seen_at for topic in self.topics.values()), default=0)

    def has_news(self, written: "GroupMemory", live_since: float) -> bool:
        """Returns whether it differs, except in times and in commits that Kafka reported after `live_since`."""
        if self.reads is not None and (written.reads is None or self.reads.topics != written.reads.topics):
            return True
        newest = max((window.begin for window in written.windows), default=0.0)
        if any(newest < window.begin < live_since for window in self.windows):
            return True
        kept = ((name, topic) for name, topic in self.topics.items() if topic.topic_id is not None)
        return any(topic.has_news(written.topics.get(name), live_since) for name, topic in kept)


ClusterMemory = Mapping[str, GroupMemory]
"""By group."""
NOTHING: ClusterMemory = MappingProxyType({})

_Key = TypeVar("_Key")


def merged(one: Mapping[_Key, GroupMemory], other: Mapping[_Key, GroupMemory]) -> dict[_Key, GroupMemory]:
    return {
        **one,
        **{group: _merged(one[group], memory) if group in one else memory for group, memory in other.items()},
    }


def until(now: float, memory: Mapping[_Key, GroupMemory]) -> dict[_Key, GroupMemory]:
    """Dates what a clock that was ahead has seen later than now: another clock, or this one before it was set back."""

    def past(seen_at: int) -> int:
        return min(seen_at, int(now)) if seen_at <= now + SKEW_SECONDS else 1

    def topic_until(topic: TopicMemory) -> TopicMemory:
        commits = (reading._replace(seen_at=past(reading.seen_at)) for reading in topic.commits)
        return topic if topic.seen_at <= now else replace(topic, commits=tuple(commits))

    return {
        key: GroupMemory(
            {name: topic_until(topic) for name, topic in one.topics.items()},
            one.reads and replace(one.reads, seen_at=past(one.reads.seen_at)),
            tuple(window for window in one.windows if window.begin <= now),
        )
        for key, one in memory.items()
    }


def without_deleted(memory: ClusterMemory, is_deleted: Callable[[str], bool], now: int) -> ClusterMemory:
    """Replaces deleted topics by when that was seen: a later observation than any that others may still have."""
    gone = TopicMemory(DELETED, (LastCommit(now, NO_COMMIT),))
    topics = {
        group: {
            name: gone if is_deleted(name) else topic
            for name, topic in known.topics.items()
            if topic.topic_id != DELETED or now - topic.seen_at < DELETED_SECONDS
        }
        for group, known in memory.items()
    }
    return {group: replace(known, topics=topics[group]) for group, known in memory.items()}


def _merged(one: GroupMemory, other: GroupMemory) -> GroupMemory:
    both = one.topics.keys() & other.topics.keys()
    topics = {**one.topics, **other.topics, **{name: _topic(one.topics[name], other.topics[name]) for name in both}}
    known = [reads for reads in (one.reads, other.reads) if reads is not None]
    reads = later(*known) if len(known) > 1 else next(iter(known), None)
    return GroupMemory(topics, reads, newest_of({*one.windows, *other.windows}))


def _topic(one: TopicMemory, other: TopicMemory) -> TopicMemory:
    if one.topic_id != other.topic_id:
        return later(one, other)
    pairs = zip_longest(one.commits, other.commits, fillvalue=NEVER_SEEN)
    return TopicMemory(one.topic_id, tuple(_reading(ours, theirs) for ours, theirs in pairs))


def _reading(one: LastCommit, other: LastCommit) -> LastCommit:
    latest = later(one, other)
    return latest._replace(has_marker=any(each.has_marker for each in (one, other) if each.offset == latest.offset))


_Observation = TypeVar("_Observation", LastCommit, TopicMemory, Reads)


def later(one: _Observation, other: _Observation) -> _Observation:
    """Returns the later observation; `one` at the same time."""
    return other if other.seen_at > one.seen_at else one
