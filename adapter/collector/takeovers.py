"""Which groups have a new coordinator: for a moment it reports old commits, or none, without an error.

A broker that becomes the leader of a partition of `__consumer_offsets` reads all of it, but reports only what it knows
to be replicated. Until its followers have asked it once, about 0.3 s, that is what it knew as a follower. Meanwhile it
refuses to report the log end of the partition (KIP-207).

By the code of Kafka 4.3, it misses the confirmation if that arrives just before it has read the partition. It then
reports old commits until the next record is written to the partition, which may take hours where all groups sleep.
So a coordinator that reports less than was known is doubted until the partition's log end has moved, or for some
minutes where that topic is hidden. One that has reported all that was known has read the partition: what it reports
later is new, even if it is less.

While the log end is the same as before the group was last read, nothing was committed since, and what was read then
still holds, whatever the coordinator reports.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from adapter.cluster.coordinators import OFFSETS_TOPIC, partition_of
from adapter.cluster.groups import NOBODY
from adapter.cluster.topics import Topic, is_same_generation, led_throughout
from adapter.columns import NEVER, NOT_KNOWN, Codes, Flags, Indexes, Offsets, Seconds
from adapter.kafka.answers import Answer
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness
from adapter.protocol.codes import NO_ERROR, NOT_CAUGHT_UP, NOT_LEADING, UNKNOWN_TOPIC_OR_PARTITION
from adapter.protocol.offset_responses import Columns as OffsetColumns
from adapter.protocol.prepared_requests import LATEST, OffsetQuestion
from adapter.settings.models import Isolation

TAKEOVER_SECONDS = 30.0
"""Kafka's default for replica.lag.time.max.ms: a follower that does not ask leaves the set of replicas after that."""
UNSETTLED_SECONDS = 300.0
"""Ten times as long. Where no log end shows whether the coordinator has read its partition, it is likelier after this
time that the group was reset than that the coordinator missed the confirmation and no group has committed since."""
CYCLES_WITHOUT_REPORT = 3
"""The reports of coordinators in doubt belong together if they are at most this far apart, or TAKEOVER_SECONDS."""
HANDING_OVER = (NOT_CAUGHT_UP, *NOT_LEADING)
"""A new leader before its followers confirm what it read, and brokers that do not lead. Any other error does not change
with time: where the topic may not be read, nothing is known of handovers."""
REFUSED = -2
"""In place of a log end that the adapter may not read."""


@dataclass(slots=True)
class _Doubt:
    """Of a group's new coordinator."""

    first_report: bytes | None = None
    """If it reports less than was known: the offsets that it reported first."""
    changed_at: float = np.inf
    """When it was first seen to report something else, or the log end to have moved."""
    unsettled_since: float = np.inf
    """Since when it, or coordinators in doubt before it, have reported less than was known, and no log end has shown
    whether they have read their partition."""
    reported_at: float = NEVER
    """When that was reported last."""


class Takeovers:
    """The coordinators of one cluster's groups, as they answered. Used by one thread."""

    def __init__(self, interval: float) -> None:
        self._longest_gap = max(TAKEOVER_SECONDS, CYCLES_WITHOUT_REPORT * interval)
        self._groups: tuple[str, ...] = ()
        self._codes: Mapping[str, int] = {}
        self.node = np.empty(0, dtype=np.int32)
        """Of each group: the node that answered last; NOBODY: none has, or it later refused, or stopped."""
        self._doubts: dict[str, _Doubt] = {}

    def follow(self, groups: tuple[str, ...], codes: Mapping[str, int]) -> None:
        """`groups` is the same object while nothing changes."""
        if groups is self._groups:
            return
        node = np.full(len(groups), NOBODY, dtype=np.int32)
        both = [group for group in groups if group in self._codes]
        node[[codes[group] for group in both]] = self.node[[self._codes[group] for group in both]]
        self._groups, self._codes, self.node = groups, codes, node
        self._doubts = {group: doubt for group, doubt in self._doubts.items() if group in codes}

    def note_answer(self, codes: Codes, node: int, received: float) -> Flags:
        """Returns whether the node has taken over each of these groups a moment ago, or may have: what was never read
        cannot go backward."""
        is_new = self.node[codes] != node
        self.node[codes] = node
        taken_over = [self._groups[code] for code in codes[is_new].tolist()]
        self._doubts.update({group: self._renewed(group, received) for group in taken_over})
        is_doubted: Flags = np.zeros(len(codes), dtype=bool)
        if self._doubts:
            # There may be as many answers as doubts: each looks at those of its own groups alone.
            is_doubted[:] = [self._is_doubted(self._groups[code], received) for code in codes.tolist()]
        return is_doubted

    def _renewed(self, group: str, received: float) -> _Doubt:
        """While a coordinator reports old commits because it missed the confirmation, nothing is committed, so the next
        one has none to miss. If no report was seen for long, there may have been commits."""
        before = self._doubts.get(group)
        if before is None or received - before.reported_at > self._longest_gap:
            return _Doubt()
        return _Doubt(unsettled_since=before.unsettled_since, reported_at=before.reported_at)

    def _is_doubted(self, group: str, received: float) -> bool:
        doubt = self._doubts.get(group)
        if doubt is None:
            return False
        is_settled = received - doubt.changed_at >= TAKEOVER_SECONDS
        # Measured over all coordinators: connections may break more often than any of them stays unchanged.
        is_over = is_settled or received - doubt.unsettled_since >= UNSETTLED_SECONDS + TAKEOVER_SECONDS
        if is_over:
            del self._doubts[group]
        return not is_over

    def note_reported(self, group: str) -> None:
        """The group's coordinator has reported all that was known."""
        self._doubts.pop(group, None)

    def note_behind(self, group: str, offsets: bytes, received: float, *, has_grown: bool | None) -> None:
        """The group's new coordinator reports these offsets, less than was known: it is doubted for TAKEOVER_SECONDS
        after they have changed or its partition has grown. None: that is not known; only the offsets and time count."""
        doubt = self._doubts.get(group)
        if doubt is not None:
            doubt.first_report = offsets if doubt.first_report is None else doubt.first_report
            doubt.unsettled_since = min(doubt.unsettled_since, received) if has_grown is None else np.inf
            doubt.reported_at = received
            has_changed = has_grown or offsets != doubt.first_report
            doubt.changed_at = min(doubt.changed_at, received) if has_changed else np.inf

    def note_lost(self, groups: Iterable[str]) -> None:
        """Their coordinator refused them or stopped: the next answer counts as a new one's, even from the same node."""
        self.node[[self._codes[group] for group in groups]] = NOBODY


class Handovers:
    """Which leaders of the offsets topic report all that they know by now, and since when nothing was written to its
    partitions. Used by one thread."""

    def __init__(self, brokers: Brokers, liveness: Liveness) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._topic: Topic | None = None
        """The offsets topic as last seen; None: it does not show who coordinates which group."""
        self.is_complete: Flags = np.zeros(0, dtype=bool)
        """By partition: whether its leader reports all that it knows; False as long as it may be taking it over."""
        self._log_ends: Offsets = np.zeros(0, dtype=np.int64)
        """By partition: as one of its leaders reported it last, NOT_KNOWN, or REFUSED."""
        self._first_log_ends: Offsets = np.zeros(0, dtype=np.int64)
        """The same, as the present leader reported it first."""
        self._unmoved_since: Seconds = np.zeros(0)
        """By partition: when that log end was received first."""
        self._received: Seconds = np.zeros(0)
        """By partition: when it was received last."""
        self.misplaced: set[str] = set()
        """The groups that, since the last `follow`, a broker has reported although another one coordinates them by
        Metadata."""

    def follow(self, topic: Topic | None, *, asks_all: bool = False) -> None:
        """Asks for the log ends of the partitions whose leader is new, or did not report them last time, or of all."""
        before, self._topic, self.misplaced = self._topic, topic, set()
        if topic is None or (topic is before and self.is_complete.all() and not asks_all):
            return
        is_other = before is not None and not is_same_generation(before.generation, topic.generation)
        if is_other or len(topic.leaders) != len(self._log_ends):
            self._forget(len(topic.leaders))
        self.is_complete = self.is_complete & led_throughout(before, topic)
        self._ask(topic, np.flatnonzero((asks_all | ~self.is_complete) & (topic.leaders != NOBODY)))

    def _forget(self, partitions: int) -> None:
        self.is_complete = np.zeros(partitions, dtype=bool)
        self._log_ends, self._first_log_ends = np.full(partitions, NOT_KNOWN), np.full(partitions, NOT_KNOWN)
        self._unmoved_since, self._received = np.full(partitions, np.inf), np.full(partitions, NEVER)

    def unmoved_since(self, groups: Sequence[str]) -> dict[str, float]:
        """Asks the leaders for the log ends of these groups' partitions, as far as they have reported them before.

        Returns when the present log end was received first, from whichever leader: nothing was committed since. Groups
        are missing whose log end was not received now."""
        if self._topic is None or not groups:
            return {}
        places = {group: partition_of(group, len(self._log_ends)) for group in groups}
        partitions = np.unique(np.fromiter(places.values(), dtype=np.intp))
        before = self._received.copy()
        self._ask(self._topic, partitions[self.is_complete[partitions] & (self._log_ends[partitions] >= 0)])
        is_new = (self._received > before) & (self._log_ends >= 0)
        return {group: float(self._unmoved_since[place]) for group, place in places.items() if is_new[place]}

    def has_grown(self, group: str) -> bool | None:
        """Whether the log end of the group's partition has moved since its present leader reported it first; None: one
        of both is not known."""
        if self._topic is None:
            return None
        partition = partition_of(group, len(self._log_ends))
        first, last = self._first_log_ends[partition], self._log_ends[partition]
        return bool(last != first) if self.is_complete[partition] and min(first, last) >= 0 else None

    def has_no_offsets_topic(self, node: int) -> bool:
        """Whether the topic is not only hidden from us. Unlike Metadata, this request makes no broker create it."""
        question = _question(node, np.zeros(1, dtype=np.int64))
        answer = self._brokers.finish(self._brokers.offsets({node: question}))[node]
        self._liveness.note({node: answer})
        return isinstance(answer, Answer) and bool((answer.content.error == UNKNOWN_TOPIC_OR_PARTITION).all())

    def _ask(self, topic: Topic, partitions: Indexes) -> None:
        nodes = self._liveness.present(np.unique(topic.leaders[partitions]).tolist())
        places = {node: partitions[topic.leaders[partitions] == node] for node in nodes}
        questions = {node: _question(node, own) for node, own in places.items()}
        answers = self._brokers.finish(self._brokers.offsets(questions))
        self._liveness.note(answers)
        for node, answer in answers.items():
            if isinstance(answer, Answer):
                self._take(places[node], answer)

    def _take(self, asked: Indexes, answer: Answer[OffsetColumns]) -> None:
        columns, partition = answer.content, answer.content.shape.partition
        is_over = np.isin(partition, asked) & ~np.isin(columns.error, HANDING_OVER)
        log_ends = np.where(columns.error == NO_ERROR, columns.offset, REFUSED)[is_over]
        places = partition[is_over]
        self._first_log_ends[places] = np.where(self.is_complete[places], self._first_log_ends[places], log_ends)
        self._unmoved_since[places[log_ends != self._log_ends[places]]] = answer.received
        self._log_ends[places], self._received[places], self.is_complete[places] = log_ends, answer.received, True

    def is_final(self, group: str, node: int) -> bool:
        """Whether the node has loaded all the group's commits."""
        if self._topic is None:
            return True
        partition = partition_of(group, len(self._log_ends))
        if int(self._topic.leaders[partition]) != node:
            self.misplaced.add(group)
            return False
        return bool(self.is_complete[partition])


def _question(node: int, partitions: Indexes) -> OffsetQuestion:
    return OffsetQuestion(node, partial(_of_offsets_topic, partitions), LATEST, Isolation.READ_UNCOMMITTED)


def _of_offsets_topic(partitions: Indexes) -> Mapping[str, Codes]:
    return {OFFSETS_TOPIC: partitions.astype(np.int32)}
