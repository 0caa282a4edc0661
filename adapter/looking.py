"""What there is in one cluster: brokers, topics and groups, looked at now and then, and what of it is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from adapter.answers import Failure
from adapter.brokers import Brokers
from adapter.commits import OFFSETS_TOPIC, CommitRound, Commits
from adapter.ends import may_not_describe_topic
from adapter.errors import some_of
from adapter.liveness import Liveness
from adapter.rows import Watching
from adapter.topology import Topology, updated, wants_another_look

LOOK_SECONDS = 30.0
"""How often Metadata and ListGroups are asked while all is well: a new group or partition is seen within this time."""
MISSING_SECONDS = 15.0
"""How often, while a topic is missing that is given by name; in every second cycle at most."""


class Looking:
    """One cluster's Metadata and group listings. Used by one thread."""

    def __init__(
        self,
        brokers: Brokers,
        liveness: Liveness,
        watching: Watching,
        commits: Commits,
        monotonic: Callable[[], float],
        interval: float,
    ) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._watching = watching
        self._commits = commits
        self._monotonic = monotonic
        self._interval = interval
        self.topology = Topology()
        """Replaced when something changed, never changed."""
        self._topology_read = self._groups_listed = float("-inf")
        self._metadata_from = 0
        self._is_new_client = True
        self._strangers: frozenset[tuple[str, int]] = frozenset()
        self._looked_at: tuple[object, ...] = ()
        self._watched_of: Topology | None = None
        self._watched: frozenset[str] = frozenset()

    # -- gather ----------------------------------------------------------------------------------

    def begin_with_new_client(self) -> None:
        """What was known may be of other brokers: the next look asks whoever is connected."""
        self._is_new_client = True

    def look_round(self, *, has_news: bool) -> None:
        """Metadata and ListGroups, where they are due or `has_news` says that Metadata has something to tell."""
        now = self._monotonic()
        has_news = has_news or self._is_new_client or wants_another_look(self.topology)
        if has_news or self._is_due(self._topology_read, now) or self._misses_a_topic(now):
            self._read_topology(now)
        nodes: Iterable[int] = self._commits.directory.unheard(self.topology.brokers)
        if self._is_due(self._groups_listed, now):
            nodes, self._groups_listed = self.topology.brokers, now
        present = self._liveness.present(nodes)
        if present:
            self._commits.list_groups(present, self.topology.brokers.keys())

    def look_again_for_strangers(self, commits: CommitRound) -> None:
        """Commits for partitions that Metadata did not have: topics made a moment ago are read in this same cycle."""
        looked_at = (self.topology, *(part.columns.shape for part in commits.parts))
        if self._looked_at == looked_at:
            return
        strangers = frozenset(
            (topic, partition)
            for part in commits.parts
            for topic, partition in part.learnt.largest.items()
            if self._is_strange(topic, partition)
        )
        if strangers - self._strangers:
            self._read_topology(self._monotonic(), is_second_look=True)
        self._strangers, self._looked_at = strangers, looked_at

    def _is_strange(self, topic: str, partition: int) -> bool:
        known = self.topology.topics.get(topic)
        return known is None or partition >= len(known.leaders)

    def _misses_a_topic(self, now: float) -> bool:
        """Whether somebody may be waiting for a topic to be made, and it is time to look for it."""
        is_time = now - self._topology_read >= max(MISSING_SECONDS, 1.5 * self._interval)
        return is_time and bool(self.missing_topics())

    def _is_due(self, last: float, now: float) -> bool:
        return now - last >= LOOK_SECONDS - self._interval / 2

    def _read_topology(self, now: float, *, is_second_look: bool = False) -> None:
        """From another broker each time: one that was cut off may not know what the others do."""
        for node in self._in_turn(sorted(self._liveness.present(self.topology.brokers))):
            answer = self._brokers.topology(node, self._asked_by_name())
            self._liveness.note({} if node is None else {node: answer})
            if not isinstance(answer, Failure):
                expected = self._expected_topics()
                self.topology = updated(self.topology, answer.content, expected, counts=not is_second_look)
                self._topology_read = now
                self._is_new_client = False
                self._liveness.forget_others(self.topology.brokers.keys())
                return
            if node is None:
                self._liveness.failures.append(answer)

    def _in_turn(self, nodes: Sequence[int]) -> Iterator[int | None]:
        """The next broker each time; before them any that is connected, where all that are known may be replaced."""
        if self._is_new_client or not nodes:
            yield None
        for _ in nodes:
            self._metadata_from += 1
            yield nodes[self._metadata_from % len(nodes)]

    def _expected_topics(self) -> frozenset[str]:
        named = (self._watching.topics_given_by_name(group) for group in self._watching.named_groups)
        return frozenset().union(*named)

    def _asked_by_name(self) -> frozenset[str]:
        """Topics of which we have to know whether they are missing or hidden from us."""
        expected = self._expected_topics()
        return expected | {OFFSETS_TOPIC} if self._watching.named_groups else expected

    # -- decide ----------------------------------------------------------------------------------

    @property
    def has_offsets_topic(self) -> bool:
        return OFFSETS_TOPIC in self.topology.topics or OFFSETS_TOPIC in self.topology.hidden

    @property
    def watched_topics(self) -> frozenset[str]:
        """Every watched topic that exists; the same object while Metadata stands."""
        if self._watched_of is not self.topology:
            self._watched_of = self.topology
            self._watched = frozenset(filter(self._watching.watches_topic, self.topology.topics))
        return self._watched

    def missing_topics(self) -> dict[str, tuple[str, ...]]:
        """Group -> the topics given for it by name that do not exist; groups that lack none are left out."""
        missing = {
            group: tuple(sorted(filter(self.topology.is_deleted, self._required_topics(group))))
            for group in self._watching.named_groups
        }
        return {group: topics for group, topics in missing.items() if topics}

    def unseen_topics(self) -> dict[str, dict[str, str]]:
        """Group -> the topics given for it by name that are neither there nor known to be missing, and why."""
        unseen = {
            group: {topic: why for topic in sorted(self._required_topics(group)) if (why := self._why_unseen(topic))}
            for group in self._watching.named_groups
        }
        return {group: topics for group, topics in unseen.items() if topics}

    def _why_unseen(self, topic: str) -> str | None:
        if topic in self.topology.hidden:
            return may_not_describe_topic(topic)
        is_known = topic in self.topology.topics or self.topology.is_deleted(topic)
        return None if is_known else f"topic {topic} has not been seen yet"

    def _required_topics(self, group: str) -> frozenset[str]:
        return self._watching.required_topics(group, is_known=group in self._commits.directory.groups)

    @property
    def has_heard_everybody(self) -> bool:
        """Whether every broker has listed its groups once."""
        return bool(self.topology.brokers) and not self._commits.directory.unheard(self.topology.brokers)

    def silence(self) -> str | None:
        """Why groups may exist that nobody has told us of."""
        failures = self._liveness.failures
        if not self.topology.brokers:
            return some_of([failure.text for failure in failures]) or "no broker has described the cluster yet"
        unheard = self._commits.directory.unheard(self.topology.brokers)
        if not unheard:
            return None
        return self._why_unheard(unheard[0], self.topology.brokers)

    def _why_unheard(self, node: int, brokers: Mapping[int, str]) -> str:
        failure = self._liveness.failure(node)
        told = [f.text for f in self._liveness.failures if f.text.startswith(f"broker {node} ")]
        reason = failure.text if failure else next(iter(told), "it is still loading them")
        return f"broker {node} at {brokers[node]} has not listed its groups yet: {reason}"
