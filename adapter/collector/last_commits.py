"""The last commits that were seen, kept over restarts: Kafka cannot report a commit that has expired.

A thread of its own collects them from the views once a minute. It writes only what will not change soon: commits that
have expired, and commits that did not move for an hour. Others are still in Kafka when the adapter starts again."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from adapter.clock import Clock
from adapter.columns import LARGEST_OFFSET, NEVER, NO_COMMIT
from adapter.errors import AdapterError, NotKept
from adapter.lag.last_commit import LastCommit
from adapter.metrics.selector_topics import SelectorTopics
from adapter.metrics.store import ClusterView
from adapter.repeating import Repeating

logger = logging.getLogger(__name__)

ROUND_SECONDS = 60.0
RETRY_SECONDS = 5.0
"""Until the kept commits have been read for the first time."""
REST_SECONDS = 3600.0
RENEW_SECONDS = 86_400
"""After this time an unchanged entry is written again, so that the entries in use are the newest."""
ASKED_SECONDS = RENEW_SECONDS + REST_SECONDS
MOST_BYTES = 800_000
"""An object in Kubernetes has at most 1 MiB. The oldest entries are dropped first."""
MOST_KNOWN = 20_000
READ_TOGETHER_SECONDS = 60.0
"""A row that was read longer before the newest one of its topic is no evidence of what is committed now."""

Key = tuple[str, str, str]
"""Cluster, group, topic."""
NO_TOPIC = ""
"""In the entry of a group that has no commits."""
ASKED = "?"
"""Before the topic of an entry that a selector has asked for lately; no topic's name begins with it. Instead of offsets
it has the number of partitions."""
Kept = Mapping[Key, LastCommit]
Exchange = Callable[[Callable[[str], str]], None]
"""Replaces the kept text by the function's result; raises AdapterError if that fails, `NotKept` if it always will."""

_Offset = Annotated[int, Field(ge=NO_COMMIT, le=LARGEST_OFFSET)]
_ENTRIES = TypeAdapter(list[tuple[str, str, str, str, int, tuple[_Offset, ...]]])


class Seen(NamedTuple):
    last: LastCommit
    expired: tuple[int, ...]
    """The partitions whose commit has expired; one for a group that is gone."""

    def has_expired_since(self, written: LastCommit) -> bool:
        """Returns whether the commit of an expired partition is not the written one."""
        if self.last.topic_id != written.topic_id:
            return bool(self.expired)
        own, theirs = self.last.counted, written.counted
        return any(partition >= len(theirs) or own[partition] != theirs[partition] for partition in self.expired)


class LastCommits(Repeating):
    def __init__(
        self,
        views: Callable[[], Sequence[ClusterView]],
        clock: Clock,
        exchange: Exchange | None = None,
        selector_topics: SelectorTopics | None = None,
    ) -> None:
        super().__init__("last-commits")
        self._views = views
        self._clock = clock
        self._exchange = exchange
        self.known: Kept = {}
        """Replaced as a whole; read by the collectors' threads."""
        self._groups: Mapping[str, frozenset[str]] = {}
        """Cluster -> its groups in `known`."""
        self.is_loaded = exchange is None
        self._topics = selector_topics or SelectorTopics(clock.monotonic)
        self._text: str | None = None
        """As last found or written there, and what it means."""
        self._written: Kept = {}
        self._refusal = ""
        """Why nothing can be kept, as last logged."""
        self._an_hour_ago: Mapping[Key, Seen] = {}
        self._marked_at = clock.monotonic()

    def groups_of(self, cluster: str) -> frozenset[str]:
        """Returns the groups that Kafka knows or once knew."""
        return self._groups.get(cluster, frozenset())

    def turn(self) -> float:
        self.run_once()
        return ROUND_SECONDS if self.is_loaded else RETRY_SECONDS

    def run_once(self) -> None:
        now = self._clock.time()
        seen = {
            key: one for view in self._views() for key, one in seen_in(view, now, now - self._clock.monotonic()).items()
        }
        # Not of the views: other replicas should read what this one is asked for, so that they can answer as well.
        for (cluster, group, topic), partitions in self._topics.asked_here().items():
            seen[cluster, group, ASKED + topic] = Seen(LastCommit("", int(now), (partitions,)), (0,))
        self._know(_merged({key: one.last for key, one in seen.items()}, self.known))
        if self._exchange is None:
            return
        due = {key: one.last for key, one in seen.items() if self._is_due(key, one)}
        if self._clock.monotonic() - self._marked_at >= REST_SECONDS:
            self._an_hour_ago, self._marked_at = seen, self._clock.monotonic()
            gone = self.known.keys() - seen.keys() - self._written.keys()
            due |= {key: self.known[key] for key in gone}
        self._keep(self._exchange, due)
        for (cluster, group, topic), one in self.known.items():
            if topic.startswith(ASKED) and one.seen_at > now - ASKED_SECONDS:
                self._topics.expect((cluster, group, topic.removeprefix(ASKED)), sum(one.offsets))

    def _know(self, known: Kept) -> None:
        self.known = known if len(known) <= MOST_KNOWN else dict(_by_age(known.items())[:MOST_KNOWN])
        groups: dict[str, set[str]] = {}
        for cluster, group, _ in self.known:
            groups.setdefault(cluster, set()).add(group)
        self._groups = {cluster: frozenset(names) for cluster, names in groups.items()}

    def _is_due(self, key: Key, one: Seen) -> bool:
        before, written = self._an_hour_ago.get(key), self._written.get(key)
        is_at_rest = before is not None and one.last.is_same(before.last)
        is_in_use = is_at_rest or bool(one.expired)
        if written is None:
            return is_in_use
        merged = one.last.merged(written)
        if _is_old(written, merged):
            return is_in_use
        return not merged.is_same(written) and (is_at_rest or one.has_expired_since(written))

    def _keep(self, exchange: Exchange, due: Kept) -> None:
        known_text, before, now_text = self._text, self._written, ""
        written = before

        def changed(text: str) -> str:
            nonlocal written, now_text
            now_text = text
            if not due and text == known_text:
                return text
            found = loads(text)
            merged = {key: one.merged(found.get(key)).filled_from(self.known.get(key)) for key, one in due.items()}
            # Another replica may have written the same entry.
            news = {
                key: one
                for key, one in merged.items()
                if (other := found.get(key)) is None or not one.is_same(other) or _is_old(other, one)
            }
            written = {**found, **news}
            now_text = dumps(written) if news else text
            return now_text

        try:
            exchange(changed)
            self._text, self._written, self._refusal = now_text, written, ""
        except NotKept as error:
            if str(error) != self._refusal:
                logger.warning("the last commits are not kept over restarts: %s", error)
            self._refusal = str(error)
        except AdapterError as error:
            level = logging.WARNING if due or not self.is_loaded else logging.DEBUG
            logger.log(level, "the last commits could not be kept, and will be later: %s", error)
            return
        if written is not before:
            self._know(_merged(written, self.known))
        self.is_loaded = True


def seen_in(view: ClusterView, now: float, to_epoch: float) -> dict[Key, Seen]:
    """Returns the last commits of a view, without those of topics that have no id.

    A group without any has one entry without topic, so that it is known to have existed. `now` is in seconds since the
    epoch; `to_epoch` is how far they are ahead of those of the monotonic clock."""
    layout, snapshot = view.layout, view.snapshot
    found: dict[Key, Seen] = {}
    for (group, topic), rows in layout.pairs.items():
        topic_id, received = layout.generations[topic], snapshot.received[rows]
        newest = float(received.max(initial=NEVER))
        is_read = (received > NEVER) & (received >= newest - READ_TOGETHER_SECONDS)
        last = np.where(is_read, snapshot.last_commit[rows], NO_COMMIT)
        is_known = last != NO_COMMIT
        if topic_id is not None and is_known.any():
            expired = np.flatnonzero(is_known & (snapshot.committed[rows] == NO_COMMIT))
            one = LastCommit(topic_id, int(newest + to_epoch), tuple(last.tolist()))
            found[view.cluster, group, topic] = Seen(one, tuple(expired.tolist()))
    with_commits = {group for _, group, _ in found}
    for group in layout.groups:
        if group not in with_commits and group not in view.assumed:
            found[view.cluster, group, NO_TOPIC] = Seen(
                LastCommit("", int(now), ()), (0,) if group in view.dormant else ()
            )
    return found


def loads(text: str) -> dict[Key, LastCommit]:
    try:
        entries = _ENTRIES.validate_json(text or "[]")
    except ValidationError:
        logger.warning("the kept last commits are not readable and will be replaced")
        return {}
    return {
        (cluster, group, topic): LastCommit(topic_id, at, offsets)
        for cluster, group, topic, topic_id, at, offsets in entries
    }


def dumps(kept: Kept) -> str:
    """Returns one line for each entry, the newest first."""
    lines: list[str] = []
    size = len("[\n\n]")
    for key, one in _by_age(kept.items()):
        line = json.dumps([*key, one.topic_id, one.seen_at, one.counted], separators=(",", ":"))
        size += len(line) + len(",\n")
        if size > MOST_BYTES:
            break
        lines.append(line)
    return "[\n" + ",\n".join(lines) + "\n]"


def _merged(some: Kept, others: Kept) -> Kept:
    return {**others, **{key: one.merged(others.get(key)) for key, one in some.items()}}


def _by_age(entries: Iterable[tuple[Key, LastCommit]]) -> list[tuple[Key, LastCommit]]:
    return sorted(entries, key=lambda entry: (-entry[1].seen_at, entry[0]))


def _is_old(written: LastCommit, one: LastCommit) -> bool:
    return one.seen_at - written.seen_at >= RENEW_SECONDS
