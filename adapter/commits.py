"""What the groups have committed, cycle by cycle: whom to ask, what to believe, who and what is gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from adapter.answers import Answer, Failure
from adapter.brokers import Brokers
from adapter.commit_plans import CommitPlan, CommitPlans, Learnt, learnt_of
from adapter.directory import NOBODY, Directory, with_coordinators, with_listings
from adapter.liveness import Liveness
from adapter.responses import Columns
from adapter.rows import Absences, Watching, still_committed
from adapter.snapshot import Cause, Codes, Flags, State
from adapter.wire import (
    COORDINATOR_ABSENT,
    COORDINATOR_LOADING,
    GROUP_NOT_AUTHORIZED,
    NO_ERROR,
    NOT_COORDINATOR,
)
from adapter.wiring import NOWHERE

HEADLESS_CYCLES = 3
"""So many cycles running a cluster without any offsets has nobody who coordinates a group: then it has no commits."""
OFFSETS_TOPIC = "__consumer_offsets"


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What one response said."""

    node: int
    columns: Columns
    learnt: Learnt
    is_accepted: Flags
    """Group of the response -> whether this is the answer that counts for it."""
    received: float
    is_doubtful: bool
    """The broker had been silent until a moment ago."""

    @property
    def codes(self) -> Codes:
        """The groups that it counts for, as indexes into the round's groups."""
        return self.learnt.code[self.is_accepted]


@dataclass(frozen=True, slots=True, eq=False)
class CommitRound:
    """One cycle's commits: every watched group is in a part, without offsets, or has a problem."""

    groups: tuple[str, ...]
    """Every watched group, sorted."""
    parts: Sequence[Part]
    headless: Mapping[str, float]
    """Groups without any offsets, which no broker coordinates -> when that was heard."""
    problems: Mapping[str, Cause]
    unreported: Collection[tuple[str, str]]
    """Groups and topics that have been committed, and are missing in the last answers."""


class Commits:
    """The groups of one cluster. Used by one thread."""

    def __init__(self, brokers: Brokers, liveness: Liveness, watching: Watching) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._watching = watching
        self._headless: dict[str, int] = {}
        self._plans = CommitPlans()
        self._incomplete: set[str] = set()
        """Groups with topics that are missing in the last answers."""
        self.directory = Directory()
        self.groups: tuple[str, ...] = tuple(sorted(watching.named_groups))
        """Every watched group, sorted; the same object while nothing changes."""
        self.topics: dict[str, Absences] = {}
        """Group -> the watched topics it has commits for; a group is missing until it was read once."""
        self.version = 0
        """Changes whenever `groups` or `topics` do."""

    # -- which groups there are ------------------------------------------------------------------

    def list_groups(self, nodes: Iterable[int], brokers: Collection[int]) -> None:
        """A round of ListGroups."""
        answers = self._brokers.groups(nodes)
        self._liveness.note(answers)
        listings = {
            node: answer.content.only(self._is_watched)
            for node, answer in answers.items()
            if isinstance(answer, Answer)
        }
        without_offsets = {group for group, topics in self.topics.items() if topics.keys() <= _absent(topics)}
        self._follow(with_listings(self.directory, listings, brokers, without_offsets))

    def _follow(self, directory: Directory) -> None:
        """Go by the directory; what has not changed stays the same object."""
        before, self.directory = self.directory, directory
        if directory.coordinators == before.coordinators:
            self.directory = replace(directory, coordinators=before.coordinators)
        for group in before.groups - directory.groups:
            self.topics.pop(group, None)
            self._incomplete.discard(group)
            self.version += 1
        groups = tuple(sorted(directory.groups | self._watching.named_groups))
        if groups != self.groups:
            self.groups = groups
            self.version += 1
            self._watching.forget_others(groups)

    def _is_watched(self, group: str) -> bool:
        return group in self._watching.named_groups or self._watching.watches_group(group)

    # -- what they have committed ----------------------------------------------------------------

    def read(self, brokers: Collection[int], *, has_offsets_topic: bool) -> CommitRound:
        """OffsetFetch at every broker that is present, for all its groups."""
        plan = self._plans.plan(self.groups, self.directory, frozenset(brokers))
        present = set(self._liveness.present(question.node for question in plan.questions))
        asked = [number for number, question in enumerate(plan.questions) if question.node in present]
        answers = dict(zip(asked, self._brokers.commits([plan.questions[n] for n in asked]), strict=True))
        for number, answer in answers.items():
            self._liveness.note({plan.questions[number].node: answer})
        return self._sorted_out(plan, answers, has_offsets_topic=has_offsets_topic)

    def _sorted_out(
        self, plan: CommitPlan, answers: Mapping[int, Answer[Columns] | Failure], *, has_offsets_topic: bool
    ) -> CommitRound:
        found = _Found(np.full(len(plan.groups), NOBODY, dtype=np.int32))
        parts = []
        # Of two that answer for a group, the one that was not silent a moment ago is believed.
        for number in sorted(range(len(plan.questions)), key=lambda n: self._is_doubtful(plan, n, answers)):
            question, answer = plan.questions[number], answers.get(number)
            if isinstance(answer, Answer):
                parts.append(self._part(plan, number, answer, found))
            else:
                failure = answer or self._liveness.failure(question.node)
                text = failure.text if failure else f"broker {question.node} is not asked"
                found.problems.update(dict.fromkeys(question.groups, Cause(State.UNKNOWN, text)))
        self._learn_coordinators(plan, found)
        headless: dict[str, float] = {}
        if not (has_offsets_topic or self.directory.coordinators):
            headless = self._headless_answers(found.refused, found.problems.keys() | found.named(plan.groups))
        lost = {group: Cause(State.UNKNOWN, f"no broker coordinates group {group}") for group in found.refused}
        answered = headless.keys() | found.named(plan.groups) if lost or found.problems else frozenset[str]()
        problems = {group: cause for group, cause in (lost | found.problems).items() if group not in answered}
        unreported = self._remember(parts, headless)
        return CommitRound(plan.groups, parts, headless, problems, unreported)

    def _is_doubtful(self, plan: CommitPlan, number: int, answers: Mapping[int, object]) -> tuple[bool, bool]:
        return self._liveness.is_doubtful(plan.questions[number].node), number not in answers

    def _part(self, plan: CommitPlan, number: int, answer: Answer[Columns], found: _Found) -> Part:
        """What a response is believed; what it refuses goes to `found`."""
        question, columns = plan.questions[number], answer.content
        learnt = plan.learnt[number]
        if learnt is None or learnt.shape is not columns.shape:
            learnt = plan.learnt[number] = learnt_of(columns.shape, plan, number, self._watching)
        is_told = learnt.code != NOWHERE
        is_accepted = is_told & (columns.group_error == NO_ERROR)
        is_accepted &= found.node[learnt.code] == NOBODY
        found.node[learnt.code[is_accepted]] = question.node
        for place in np.flatnonzero(is_told & (columns.group_error != NO_ERROR)).tolist():
            group, error = columns.shape.groups[place], int(columns.group_error[place])
            if error in {NOT_COORDINATOR, COORDINATOR_ABSENT}:
                found.refused[group] = min(answer.received, found.refused.get(group, answer.received))
            else:
                found.problems[group] = _cause_of(error, group, question.node)
                found.refusing[group] = question.node
        if np.count_nonzero(is_told) != len(plan.asked[number]):
            for code in np.setdiff1d(plan.asked[number], learnt.code[is_told]).tolist():
                group = plan.groups[code]
                cause = Cause(State.ERROR, f"broker {question.node} left group {group} out of its answer")
                found.problems[group] = cause
        is_doubtful = self._liveness.is_doubtful(question.node)
        return Part(question.node, columns, learnt, is_accepted, answer.received, is_doubtful)

    def _learn_coordinators(self, plan: CommitPlan, found: _Found) -> None:
        """Who answered for a group is its coordinator, as is who told what is wrong with it."""
        moved = np.flatnonzero((found.node != NOBODY) & (found.node != plan.coordinator))
        answered = {plan.groups[code]: int(found.node[code]) for code in moved.tolist()}
        told = {group: node for group, node in found.refusing.items() if found.node[plan.codes[group]] == NOBODY}
        refused = [group for group in found.refused if found.node[plan.codes[group]] == NOBODY and group not in told]
        known = self.directory.coordinators
        news = {group: node for group, node in (told | answered).items() if known.get(group) != node}
        if news or any(group in known for group in refused):
            self.directory = with_coordinators(self.directory, news, refused)

    def _headless_answers(self, refused: Mapping[str, float], settled: Collection[str]) -> dict[str, float]:
        """Groups given by name that nobody coordinates or lists, in a cluster that has no offsets topic yet.

        In one that has it, a group's part of it is offline or moving, and what is committed there is not known.
        """
        headless = (refused.keys() & self._watching.named_groups) - set(settled) - self.directory.groups
        self._headless = {group: self._headless.get(group, 0) + 1 for group in headless}
        proven = (group for group, cycles in self._headless.items() if cycles >= HEADLESS_CYCLES)
        return {group: refused[group] for group in proven}

    def _remember(self, parts: Sequence[Part], headless: Collection[str]) -> set[tuple[str, str]]:
        """Note what the groups have commits for; gives the topics that are missing in the last answers."""
        unreported: set[tuple[str, str]] = set()
        unlisted: set[str] = set()
        for part in parts:
            learnt = part.learnt
            is_plain = not part.is_doubtful and bool(part.is_accepted.all())
            if is_plain and learnt.remembered_at == self.version:
                continue
            for place in np.flatnonzero(part.is_accepted).tolist():
                group, seen = learnt.shape.groups[place], frozenset(learnt.topics[place])
                if learnt.has_commits[place] and group not in self.directory.groups:
                    unlisted.add(group)
                # Whom one doubts may have forgotten a topic; a new one is no step backward.
                forgotten = self.topics.get(group, ()) if part.is_doubtful else ()
                self._remember_group(group, seen, forgotten)
                known = self.topics[group]
                unreported |= {(group, topic) for topic in known if known[topic] or topic not in seen}
            # A group with missing topics is looked at again in each cycle, as they are counted.
            is_complete = is_plain and self._incomplete.isdisjoint(learnt.shape.groups)
            learnt.remembered_at = self.version if is_complete else None
        if unlisted:
            # A group with commits exists, listed or not. If its commits expire before it is listed, it must be removed.
            self.directory = replace(self.directory, groups=self.directory.groups | unlisted)
        for group in headless:
            self._remember_group(group, ())
            unreported |= {(group, topic) for topic in self.topics[group]}
        return unreported

    def _remember_group(self, group: str, seen: Collection[str], forgotten: Collection[str] = ()) -> None:
        known = self.topics.get(group)
        found = still_committed(known or {}, seen, forgotten, can_vanish=group in self.directory.listed)
        if known is None or found is not known:
            self.topics[group] = found
            self.version += 1
        if any(found.values()):
            self._incomplete.add(group)
        else:
            self._incomplete.discard(group)


@dataclass(slots=True)
class _Found:
    """What the answers of a round have given so far."""

    node: Codes
    """Of each group: who answered for it; NOBODY while nobody has."""
    refused: dict[str, float] = field(default_factory=dict)
    """Group -> when the first broker said that it does not coordinate it."""
    refusing: dict[str, int] = field(default_factory=dict)
    """Group -> the node that told what is wrong with it."""
    problems: dict[str, Cause] = field(default_factory=dict)

    def named(self, groups: Sequence[str]) -> set[str]:
        return {groups[code] for code in np.flatnonzero(self.node != NOBODY).tolist()}


def _absent(topics: Absences) -> set[str]:
    return {topic for topic, cycles in topics.items() if cycles}


def _cause_of(error: int, group: str, node: int) -> Cause:
    if error == COORDINATOR_LOADING:
        return Cause(State.UNKNOWN, f"broker {node} is still loading its groups")
    if error == GROUP_NOT_AUTHORIZED:
        return Cause(State.ERROR, f"the adapter may not describe group {group} (ACL Describe on the group is missing)")
    return Cause(State.ERROR, f"broker {node} gives error {error} for group {group}")
