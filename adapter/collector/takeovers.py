"""Which groups have a new coordinator: for a moment it reports old commits, or none, without an error.

A broker that becomes the leader of a partition of `__consumer_offsets` reads all of it, but reports only what it knows
to be replicated. Until its followers have asked it once, about 0.3 s, that is what it knew as a follower. Meanwhile it
refuses to report the log end of the partition (KIP-207).

By the code of Kafka 4.3, it misses the confirmation if that arrives just before it has read the partition. It then
reports old commits until the next record is written to the partition, which may take hours where all groups sleep.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from adapter.cluster.coordinators import OFFSETS_TOPIC, partition_of
from adapter.cluster.groups import NOBODY
from adapter.cluster.topics import NO_LEADER, Topic, led_throughout
from adapter.collector.log_offsets import NOT_CAUGHT_UP
from adapter.columns import NEVER, Codes, Flags
from adapter.kafka.answers import Answer
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness
from adapter.protocol.prepared_requests import LATEST, OffsetQuestion
from adapter.settings.models import Isolation

TAKEOVER_SECONDS = 30.0
"""Kafka's default for replica.lag.time.max.ms: a follower that does not ask leaves the set of replicas after that."""
HANDING_OVER = (NOT_CAUGHT_UP, 5, 6, 74, 75)
"""A new leader before its followers confirm what it read, and brokers that do not lead. Any other error does not change
with time: where the topic may not be read, nothing is known of handovers."""
LOST = -2
"""No node has this number."""


class Takeovers:
    """The coordinators of one cluster's groups, as they answered. Used by one thread."""

    def __init__(self) -> None:
        self._groups: tuple[str, ...] = ()
        self._codes: Mapping[str, int] = {}
        self._node = np.empty(0, dtype=np.int32)
        """Of each group: who answered last; NOBODY: nobody ever has; LOST: that one has refused it since."""
        self._since = np.empty(0)
        """Of each group: since when its newest coordinator has been doubted; NEVER if it is the first one."""
        self._first_reports: dict[str, bytes] = {}
        """Groups whose new coordinator reports less than was known -> what it reported first."""

    def follow(self, groups: tuple[str, ...], codes: Mapping[str, int]) -> None:
        """`groups` is the same object while nothing changes."""
        if groups is self._groups:
            return
        node, since = np.full(len(groups), NOBODY, dtype=np.int32), np.full(len(groups), NEVER)
        both = [group for group in groups if group in self._codes]
        new, old = [codes[group] for group in both], [self._codes[group] for group in both]
        node[new], since[new] = self._node[old], self._since[old]
        self._groups, self._codes, self._node, self._since = groups, codes, node, since

    def are_read_from(self, codes: Codes, node: int) -> Flags:
        """Whether the last answer for each of these groups came from the node, too, without a loss since."""
        found: Flags = self._node[codes] == node
        return found

    def note_answer(self, codes: Codes, node: int, received: float) -> Flags:
        """Returns whether the node has taken over each of these groups a moment ago."""
        is_new = (self._node[codes] != node) & (self._node[codes] != NOBODY)
        self._since[codes[is_new]] = received
        if self._first_reports:
            for code in codes[is_new].tolist():
                self._first_reports.pop(self._groups[code], None)
        self._node[codes] = node
        is_recent: Flags = received - self._since[codes] < TAKEOVER_SECONDS
        return is_recent

    def note_behind(self, group: str, report: bytes, received: float) -> None:
        """The group's new coordinator reports less than was known: it is doubted until its report changes."""
        code = self._codes[group]
        is_doubted = received - self._since[code] < TAKEOVER_SECONDS
        if is_doubted and self._first_reports.setdefault(group, report) == report:
            self._since[code] = received

    def note_lost(self, groups: Iterable[str]) -> None:
        """Their coordinator refused them or stopped: the next answer counts as a new one's, even from the same node."""
        codes = np.array([self._codes[group] for group in groups], dtype=np.intp)
        self._node[codes] = np.where(self._node[codes] == NOBODY, NOBODY, LOST)


class Handovers:
    """Which leaders of the offsets topic report all that they know by now. Used by one thread."""

    def __init__(self, brokers: Brokers, liveness: Liveness) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._topic: Topic | None = None
        """The offsets topic as last seen; None: it does not show who coordinates which group."""
        self.is_over: Flags = np.zeros(0, dtype=bool)
        """By partition; replaced, never changed."""
        self.is_outdated = False
        """Whether a broker has reported a group since then that, as far as is known, another one coordinates."""

    def follow(self, topic: Topic | None) -> None:
        """Ask for the log ends of the partitions whose leader is new, or did not report them last time."""
        before, self._topic, self.is_outdated = self._topic, topic, False
        if topic is None or (topic is before and self.is_over.all()):
            return
        is_over = led_throughout(before, topic)
        is_over[: len(self.is_over)] &= self.is_over[: len(is_over)]
        waiting = ~is_over & (topic.leaders != NO_LEADER)
        nodes = self._liveness.present(np.unique(topic.leaders[waiting]).tolist())
        places = {node: np.flatnonzero(waiting & (topic.leaders == node)) for node in nodes}
        questions = {
            node: OffsetQuestion(node, {OFFSETS_TOPIC: own.astype(np.int32)}, LATEST, Isolation.READ_UNCOMMITTED)
            for node, own in places.items()
        }
        answers = self._brokers.finish(self._brokers.offsets(questions))
        self._liveness.note(answers)
        for node, answer in answers.items():
            if isinstance(answer, Answer):
                columns = answer.content
                is_reported = ~np.isin(columns.error, HANDING_OVER)
                is_over[np.intersect1d(places[node], columns.shape.partition[is_reported])] = True
        self.is_over = is_over

    def is_final(self, group: str, node: int) -> bool:
        """Whether what the node reports of the group is all that has been committed."""
        if self._topic is None:
            return True
        partition = partition_of(group, len(self.is_over))
        is_leader = int(self._topic.leaders[partition]) == node
        self.is_outdated |= not is_leader
        return is_leader and bool(self.is_over[partition])
