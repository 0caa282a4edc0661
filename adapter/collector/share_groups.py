"""The progress of share groups in each cycle. They do not commit: the coordinator stores what is done (KIP-932).

Newer brokers count the remaining records themselves (KIP-1226), and their number is served: the row's commit is the log
end of the same cycle minus that number. Older brokers report only the start offset; some later records may be done, so
lag is an upper bound."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from adapter.cluster.coordinators import share_state_keepers
from adapter.cluster.groups import Directory, Kind
from adapter.cluster.topics import Topology
from adapter.collector.coordinator_search import group_error
from adapter.collector.row_mapping import NO_ROWS
from adapter.columns import NO_COMMIT, NOT_KNOWN, Flags, Offsets, is_offset
from adapter.kafka.answers import Answer, Failure, FailureCause
from adapter.kafka.calls import Calls
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness
from adapter.lag.layout import Layout
from adapter.lag.rules import Absences, Watching, still_committed
from adapter.lag.snapshot import Cause, Causes, Observed, State
from adapter.protocol import codes
from adapter.protocol.group_responses import GroupShares, SharedPartitions

NOT_REPORTED = Cause(State.UNKNOWN, "the latest responses lack the share group's progress in the topic")
END_NOT_KNOWN = Cause(State.UNKNOWN, "its log end is not known")
UNREADABLE = Cause(State.ERROR, "the share group's progress cannot be read")
CYCLES_BEFORE_RETRY = 3
"""It may have been unavailable for another reason, and may reach the silent broker although we do not."""


@dataclass(frozen=True, slots=True)
class ShareAnswer:
    topics: Mapping[str, SharedPartitions]
    received: float
    is_doubtful: bool
    """The broker was silent until a moment ago."""
    batch: int = 0
    """The first round of log ends requested after it."""


@dataclass(slots=True)
class ShareRound:
    """A round of DescribeShareGroupOffsets. Every share group has an answer or is unread."""

    answers: dict[str, ShareAnswer] = field(default_factory=dict)
    unread: dict[str, Cause] = field(default_factory=dict)
    """Why a group has no answer, or has not had one yet."""
    plan: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """Node -> groups."""


class Shares:
    def __init__(self, brokers: Brokers, liveness: Liveness, watching: Watching) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._watching = watching
        self._groups: frozenset[str] = frozenset()
        self._patience: dict[str, int] = {}
        """Share group -> the number of cycles in which it is skipped while a broker that stores its state is silent."""
        self.topics: dict[str, Absences] = {}
        """Share group -> its watched topics with progress; without groups that were never read."""
        self.version = 0
        """Increases whenever `topics` change."""
        self.newest = ShareRound()
        """The latest round, which may be under way."""

    def ask(self, directory: Directory, topology: Topology) -> Calls[dict[str, GroupShares]]:
        """Sends one request to each available broker that coordinates share groups."""
        self._find(directory)
        plan: dict[int, list[str]] = {}
        unread: dict[str, Cause] = {}
        for group in sorted(self._groups):
            node = directory.coordinators.get(group)
            why = self._why_not_asked(group, node, topology)
            if node is None or why is not None:
                unread[group] = Cause(State.UNKNOWN, why or f"no broker coordinates share group {group}")
            else:
                plan.setdefault(node, []).append(group)
        self.newest = ShareRound(unread=unread, plan=plan)
        return self._brokers.shares(plan)

    def _why_not_asked(self, group: str, node: int | None, topology: Topology) -> str | None:
        """A coordinator that waits for a silent state broker would block every other response on its connection."""
        if node is not None and (absence := self._liveness.failure(node)) is not None:
            return absence.text
        if not self._patience.get(group):
            return None
        keepers = share_state_keepers(group, self.topics.get(group, ()), topology)
        failures = (self._liveness.failure(keeper) for keeper in sorted(keepers))
        failure = next((each for each in failures if each is not None), None)
        if failure is None:
            return None
        self._patience[group] -= 1
        return f"{failure.text}, and it stores the state of share group {group}"

    def take(self, calls: Calls[dict[str, GroupShares]], batch: int) -> list[str]:
        """Processes the responses that have arrived; returns the groups they report."""
        answers = calls.take()
        self._liveness.note({node: answer for node, answer in answers.items() if not _is_not_offered(answer)})
        fresh: dict[str, ShareAnswer] = {}
        for node, answer in answers.items():
            groups = self.newest.plan[node]
            was_silence = isinstance(answer, Failure) and answer.was_silence
            self._patience |= dict.fromkeys(groups, CYCLES_BEFORE_RETRY if was_silence else 0)
            for group in groups:
                reported = answer.content.get(group) if isinstance(answer, Answer) else None
                if isinstance(answer, Answer) and reported is not None and reported.error == codes.NO_ERROR:
                    is_doubtful = self._liveness.is_doubtful(node)
                    fresh[group] = ShareAnswer(reported.topics, answer.received, is_doubtful, batch)
                else:
                    self.newest.unread[group] = _cause_of(answer, reported, group, node)
        self.newest.answers.update(fresh)
        self._remember(fresh)
        return list(fresh)

    def _find(self, directory: Directory) -> None:
        """A group stays a share group until listed as another kind: missing commits must not mean "no commit"."""
        listed = directory.statuses
        shares = {group for group, status in listed.items() if status.kind is Kind.SHARE}
        self._groups = frozenset(shares | ((self._groups & directory.groups) - listed.keys()))
        self._patience = {group: cycles for group, cycles in self._patience.items() if group in self._groups}
        self._know({group: topics for group, topics in self.topics.items() if group in self._groups})

    def _remember(self, fresh: Mapping[str, ShareAnswer]) -> None:
        topics = {}
        for group, answer in fresh.items():
            given, before = self._watching.given(group).topics, self.topics.get(group, {})
            seen = [topic for topic in answer.topics if self._watching.watches_topic(topic) or topic in given]
            topics[group] = still_committed(before, seen, before if answer.is_doubtful else (), can_vanish=True)
        self._know(self.topics | topics)

    def _know(self, topics: dict[str, Absences]) -> None:
        self.version += topics != self.topics
        self.topics = topics


def _is_not_offered(answer: object) -> bool:
    return isinstance(answer, Failure) and answer.cause is FailureCause.VERSION


def _cause_of(answer: object, reported: GroupShares | None, group: str, node: int) -> Cause:
    if isinstance(answer, Failure) and _is_not_offered(answer):
        return Cause(State.ERROR, f"the progress of share group {group} cannot be read: {answer.text}")
    if isinstance(answer, Failure):
        return Cause(State.UNKNOWN, answer.text)
    if reported is None:
        return Cause(State.ERROR, f"broker {node} omitted share group {group} from its response")
    return group_error(reported.error, group, node)


def with_shares(
    observed: Observed,
    is_doubtful: Flags,
    layout: Layout,
    begun: Mapping[str, Collection[str]],
    outcome: ShareRound,
    causes: Causes,
) -> Offsets:
    """Fills in share groups' rows after the ends, as if they had committed; `begun` topics have progress.

    A new coordinator is not doubted: progress is stored elsewhere, and goes backward by what is not acknowledged.

    Returns the progress of every row: the commits, and of share groups the starts, because a computed commit changes
    without a reader."""
    progress = observed.committed.copy()
    for group, cause in outcome.unread.items():
        observed.commit_cause[layout.spans.get(group, NO_ROWS)] = causes.code(cause)
    for group, answer in outcome.answers.items():
        span = layout.spans.get(group, NO_ROWS)
        observed.committed[span] = progress[span] = NO_COMMIT
        observed.commit_received[span], observed.commit_cause[span] = answer.received, 0
        is_doubtful[span] = answer.is_doubtful
        for topic in {*answer.topics, *begun.get(group, ())}:
            rows = layout.pairs.get((group, topic), NO_ROWS)
            _fill(observed, progress, rows, answer.topics.get(topic), causes)
    return progress


def _fill(
    observed: Observed, progress: Offsets, rows: slice, reported: SharedPartitions | None, causes: Causes
) -> None:
    if reported is None:
        # The topic had progress earlier, and one response does not prove that it is gone.
        observed.commit_cause[rows] = causes.code(NOT_REPORTED)
        return
    inside = reported.partition < rows.stop - rows.start
    places = rows.start + reported.partition[inside]
    start, lag, end = reported.start[inside], reported.lag[inside], observed.log_end[places]
    progress[places] = start
    is_counted = is_offset(lag)
    # The log may have been truncated since the broker counted.
    observed.committed[places] = np.where(is_counted, np.maximum(end - lag, 0), start)
    observed.commit_cause[places[is_counted & (end == NOT_KNOWN)]] = causes.code(END_NOT_KNOWN)
    is_sound = (reported.error[inside] == codes.NO_ERROR) & (is_counted | is_offset(start) | (start == NO_COMMIT))
    observed.commit_cause[places[~is_sound]] = causes.code(UNREADABLE)
