"""How far the share groups are, cycle by cycle. They commit nothing: the coordinator keeps what is done (KIP-932).

Newer brokers count what is not done themselves (KIP-1226); their number is what is served. So that it is a row like any
other, its commit is the log end of the same cycle less that number. Older brokers give the first record that is not
done: what lies behind it may be done in part, so lag is then an upper bound.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from adapter.cluster.coordinators import share_state_keepers
from adapter.cluster.groups import Directory, Kind
from adapter.cluster.topics import Topology
from adapter.columns import NO_COMMIT, NOT_KNOWN, Flags, Offsets, is_offset
from adapter.kafka.answers import Answer, Failure
from adapter.kafka.calls import Calls
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness
from adapter.lag.layout import Layout
from adapter.lag.rules import Absences, Watching, still_committed
from adapter.lag.snapshot import Cause, Causes, Observed, State
from adapter.protocol.codes import (
    COORDINATOR_ABSENT,
    COORDINATOR_LOADING,
    GROUP_NOT_AUTHORIZED,
    NO_ERROR,
    NOT_COORDINATOR,
)
from adapter.protocol.group_responses import GroupShares, SharedPartitions

NOT_REPORTED = Cause(State.UNKNOWN, "how far the share group is in the topic is missing in the last answers")
END_NOT_KNOWN = Cause(State.UNKNOWN, "its log end is not known")
UNREADABLE = Cause(State.ERROR, "how far the share group is cannot be read")
CYCLES_BEFORE_RETRY = 3
"""The coordinator may have been silent for a reason of its own, and reach the broker that we do not."""
NOWHERE = slice(0)
Told = dict[str, GroupShares]
MOVING = {COORDINATOR_ABSENT, COORDINATOR_LOADING, NOT_COORDINATOR}


@dataclass(frozen=True, slots=True)
class ShareAnswer:
    topics: Mapping[str, SharedPartitions]
    received: float
    is_doubtful: bool
    """The broker had been silent until a moment ago."""
    batch: int = 0
    """The first round of log ends that was asked for after it."""


@dataclass(frozen=True, slots=True)
class ShareRound:
    """One cycle's answers: every share group is in one of the two."""

    answers: Mapping[str, ShareAnswer] = field(default_factory=dict)
    problems: Mapping[str, Cause] = field(default_factory=dict)


class ShareReading:
    """A round of DescribeShareGroupOffsets while its answers arrive."""

    def __init__(
        self,
        plan: Mapping[int, Sequence[str]],
        asked: Sequence[int],
        calls: Calls[Told],
        not_asked: Mapping[str, Cause],
    ) -> None:
        """`plan`: node -> groups; `asked`: the nodes that a request was sent to; `not_asked`: group -> why not."""
        self.plan = plan
        self.not_asked = not_asked
        self.asked = asked
        self.calls = calls
        self.answers: dict[int, Answer[Told] | Failure] = {}
        self.found: dict[str, ShareAnswer] = {}


class Shares:
    """The share groups of one cluster. Used by one thread."""

    def __init__(self, brokers: Brokers, liveness: Liveness, watching: Watching) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._watching = watching
        self._groups: frozenset[str] = frozenset()
        self._directory = Directory()
        self._patience: dict[str, int] = {}
        """Share group -> in how many cycles it is not asked for while a broker that keeps its state is silent."""
        self.topics: dict[str, Absences] = {}
        """Share group -> the watched topics that it has begun; a group is missing until it was read once."""
        self.version = 0
        """Changes whenever `topics` do."""
        self.newest = ShareRound()
        """What the newest cycle was told."""

    def ask(self, directory: Directory, topology: Topology) -> ShareReading:
        """One request to each broker that coordinates share groups and is present; none where there are no such."""
        if directory.standings is not self._directory.standings or directory.groups is not self._directory.groups:
            self._find(directory)
        self._directory = directory
        plan: dict[int, list[str]] = {}
        not_asked = {group: cause for group in self._groups if (cause := self._why_not_asked(group, topology))}
        for group in sorted((self._groups & directory.coordinators.keys()) - not_asked.keys()):
            plan.setdefault(directory.coordinators[group], []).append(group)
        asked = self._liveness.present(plan)
        return ShareReading(plan, asked, self._brokers.shares({node: plan[node] for node in asked}), not_asked)

    def _why_not_asked(self, group: str, topology: Topology) -> Cause | None:
        """A coordinator asks the brokers that keep the state; where it waited for a silent one, it would do so again,
        and hold up every other answer on the connection.
        """
        if not self._patience.get(group):
            return None
        keepers = share_state_keepers(group, self.topics.get(group, ()), topology)
        failures = (self._liveness.failure(node) for node in sorted(keepers))
        failure = next((one for one in failures if one is not None), None)
        if failure is None:
            return None
        self._patience[group] -= 1
        return Cause(State.UNKNOWN, f"{failure.text}, and it keeps the state of share group {group}")

    def take(self, reading: ShareReading, batch: int) -> list[str]:
        """Take the answers that have arrived; returns the groups that they report."""
        answers = {reading.asked[place]: answer for place, answer in reading.calls.take().items()}
        self._liveness.note({node: answer for node, answer in answers.items() if not _is_too_old(answer)})
        reading.answers |= answers
        for node, answer in answers.items():
            was_silence = isinstance(answer, Failure) and answer.was_silence
            self._patience |= dict.fromkeys(reading.plan[node], CYCLES_BEFORE_RETRY if was_silence else 0)
        found = {
            group: ShareAnswer(told.topics, answer.received, self._liveness.is_doubtful(node), batch)
            for node, answer in answers.items()
            if isinstance(answer, Answer)
            for group in reading.plan[node]
            if (told := answer.content.get(group)) is not None and told.error == NO_ERROR
        }
        reading.found |= found
        self._remember(found)
        return list(found)

    def finish(self, reading: ShareReading) -> ShareRound:
        """What all answers together say; every one has been taken."""
        problems = {g: Cause(State.UNKNOWN, f"no broker coordinates share group {g}") for g in self._groups}
        for node, groups in reading.plan.items():
            failure = self._liveness.failure(node) or Failure("other", f"broker {node} is not asked")
            answer = reading.answers.get(node, failure)
            told = {} if isinstance(answer, Failure) else answer.content
            problems |= {group: _cause_of(answer, told.get(group), group, node) for group in groups}
        problems |= reading.not_asked
        unread = {group: cause for group, cause in problems.items() if group not in reading.found}
        self.newest = ShareRound(reading.found, unread)
        return self.newest

    def unread(self) -> dict[str, str]:
        """The share groups that were never read, and why."""
        return {group: cause.text for group, cause in self.newest.problems.items() if group not in self.topics}

    def _find(self, directory: Directory) -> None:
        """A share group is one until it is listed as another kind: it has no commits, which must not look like none."""
        told = directory.standings
        found = {group for group, standing in told.items() if standing.kind is Kind.SHARE}
        self._groups = frozenset(found | {group for group in self._groups & directory.groups if group not in told})
        self._patience = {group: cycles for group, cycles in self._patience.items() if group in self._groups}
        self._know({group: topics for group, topics in self.topics.items() if group in self._groups})

    def _remember(self, found: Mapping[str, ShareAnswer]) -> None:
        topics = {}
        for group, answer in found.items():
            given, known = self._watching.given_topics(group), self.topics.get(group, {})
            seen = [topic for topic in answer.topics if self._watching.watches_topic(topic) or topic in given]
            topics[group] = still_committed(known, seen, known if answer.is_doubtful else (), can_vanish=True)
        self._know(self.topics | topics)

    def _know(self, topics: dict[str, Absences]) -> None:
        self.version += topics != self.topics
        self.topics = topics


def _is_too_old(answer: object) -> bool:
    return isinstance(answer, Failure) and answer.cause == "version"


def _cause_of(answer: object, told: GroupShares | None, group: str, node: int) -> Cause:
    if _is_too_old(answer):
        return Cause(State.ERROR, f"broker {node} is too old to tell how far share group {group} is")
    if isinstance(answer, Failure):
        return Cause(State.UNKNOWN, answer.text)
    if told is None:
        return Cause(State.ERROR, f"broker {node} left share group {group} out of its answer")
    if told.error in MOVING:
        return Cause(State.UNKNOWN, f"the coordinator of share group {group} is moving")
    if told.error == GROUP_NOT_AUTHORIZED:
        return Cause(State.ERROR, f"the adapter may not describe group {group} (ACL Describe on the group is missing)")
    return Cause(State.ERROR, f"broker {node} gives error {told.error} for share group {group}")


def with_shares(
    observed: Observed, layout: Layout, known: Mapping[str, Collection[str]], outcome: ShareRound, causes: Causes
) -> Flags:
    """Fill in the rows of share groups as if they had committed; gives the rows that a doubtful broker told.

    `known`: the topics that they have begun. `observed` has the ends already.
    """
    is_doubtful = np.zeros(len(layout), dtype=bool)
    for group, cause in outcome.problems.items():
        observed.commit_cause[layout.spans.get(group, NOWHERE)] = causes.code(cause)
    for group, answer in outcome.answers.items():
        span = layout.spans.get(group, NOWHERE)
        observed.committed[span], observed.commit_received[span] = NO_COMMIT, answer.received
        observed.commit_cause[span], is_doubtful[span] = 0, answer.is_doubtful
        for topic in {*answer.topics, *known.get(group, ())}:
            rows = layout.pairs.get((group, topic))
            if rows is not None:
                _fill(observed, rows, answer.topics.get(topic), causes)
    return is_doubtful


def with_share_starts(committed: Offsets, layout: Layout, outcome: ShareRound) -> Offsets:
    """The commits; of share groups the first record that is not done, as a computed commit changes without a reader."""
    if not outcome.answers:
        return committed
    progress = committed.copy()
    for group, answer in outcome.answers.items():
        for topic, told in answer.topics.items():
            rows = layout.pairs.get((group, topic))
            if rows is not None:
                inside = told.partition < rows.stop - rows.start
                progress[rows.start + told.partition[inside]] = told.start[inside]
    return progress


def _fill(observed: Observed, rows: slice, told: SharedPartitions | None, causes: Causes) -> None:
    """`told`: None where a topic that the group had begun is missing, which one answer does not prove."""
    if told is None:
        observed.commit_cause[rows] = causes.code(NOT_REPORTED)
        return
    inside = told.partition < rows.stop - rows.start
    places = rows.start + told.partition[inside]
    start, lag, end = told.start[inside], told.lag[inside], observed.log_end[places]
    is_counted = is_offset(lag)
    # A log may have been cut since the broker counted.
    observed.committed[places] = np.where(is_counted, np.maximum(end - lag, 0), start)
    observed.commit_cause[places[is_counted & (end == NOT_KNOWN)]] = causes.code(END_NOT_KNOWN)
    is_sound = (told.error[inside] == NO_ERROR) & (is_counted | is_offset(start) | (start == NO_COMMIT))
    observed.commit_cause[places[~is_sound]] = causes.code(UNREADABLE)
