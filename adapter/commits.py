"""What the groups have committed, cycle by cycle: whom to ask, what to believe, who and what is gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from adapter.brokers import Answer, Brokers, Failure
from adapter.directory import NOBODY, Directory, asked_at, with_coordinators, with_listings
from adapter.liveness import Liveness
from adapter.questions import CommitQuestion
from adapter.responses import Columns, Shape
from adapter.rows import Absences, Watching, still_committed
from adapter.snapshot import Cause, Codes, Flags, Layout, State
from adapter.turns import Turn
from adapter.wire import (
    COORDINATOR_ABSENT,
    COORDINATOR_LOADING,
    GROUP_NOT_AUTHORIZED,
    NO_ERROR,
    NOT_COORDINATOR,
)
from adapter.wiring import NOWHERE, Wiring, codes_in, wired_commits

GROUPS_PER_REQUEST = 2_000
"""One request per broker up to some thousand groups, and a response of some MB: far below the largest frame."""
HEADLESS_CYCLES = 3
"""So many cycles running a cluster without any offsets has nobody who coordinates a group: then it has no commits."""
OFFSETS_TOPIC = "__consumer_offsets"


@dataclass(slots=True)
class Learnt:
    """What was found out about the shape of a question's responses; stands while the shape does."""

    shape: Shape
    code: Codes
    """Group of the response -> index into the round's groups, or NOWHERE."""
    topics: Sequence[Sequence[str]]
    """Group of the response -> the watched topics that it has commits for."""
    has_commits: Flags
    """Group of the response -> whether it has commits for any topic at all."""
    largest: Mapping[str, int]
    """Watched topic -> the largest partition with a commit."""
    is_remembered: bool = False
    """Whether all of it is in `Commits.topics`."""
    _wired: tuple[Layout, Wiring] | None = None

    def wiring(self, layout: Layout) -> Wiring:
        """Where the rows belong; the same object while the layout stands."""
        if self._wired is None or self._wired[0] is not layout:
            self._wired = (layout, wired_commits(self.shape, layout))
        return self._wired[1]


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
    """One cycle's commits: every group that was due is in a part, without offsets, or has a problem."""

    groups: tuple[str, ...]
    """Every watched group, sorted."""
    is_due: Flags
    parts: Sequence[Part]
    headless: Mapping[str, float]
    """Groups without any offsets, which no broker coordinates -> when that was heard."""
    problems: Mapping[str, Cause]
    unreported: Collection[tuple[str, str]]
    """Groups and topics that have been committed, and are missing in the last answers."""


@dataclass(slots=True)
class _Plan:
    """Whom to ask for what in a turn; stands while groups, coordinators and whoever is due do."""

    groups: tuple[str, ...]
    coordinators: Mapping[str, int]
    brokers: frozenset[int]
    is_due: Flags
    questions: Sequence[CommitQuestion]
    asked: Sequence[Codes]
    """Of each question, as indexes into `groups`."""
    coordinator: Codes
    """Of each group, as far as it is known; NOBODY otherwise."""
    learnt: list[Learnt | None] = field(default_factory=list)

    def stands(self, groups: tuple[str, ...], directory: Directory, brokers: frozenset[int], is_due: Flags) -> bool:
        return (
            groups is self.groups
            and directory.coordinators is self.coordinators
            and brokers == self.brokers
            and np.array_equal(is_due, self.is_due)
        )


class Commits:
    """The groups of one cluster. Used by one thread."""

    def __init__(self, brokers: Brokers, liveness: Liveness, watching: Watching) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._watching = watching
        self._headless: dict[str, int] = {}
        self._plans: dict[int, _Plan] = {}
        self._codes: dict[str, int] = {}
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

    def read(self, brokers: Collection[int], turn: Turn, *, has_offsets_topic: bool) -> CommitRound:
        """OffsetFetch at every broker that is present, for all its groups that are due; `turn` is about `groups`."""
        plan = self._plan(frozenset(brokers), turn)
        present = set(self._liveness.present(question.node for question in plan.questions))
        asked = [number for number, question in enumerate(plan.questions) if question.node in present]
        answers = dict(zip(asked, self._brokers.commits([plan.questions[n] for n in asked]), strict=True))
        for number, answer in answers.items():
            self._liveness.note({plan.questions[number].node: answer})
        return self._sorted_out(plan, answers, has_offsets_topic=has_offsets_topic)

    def _plan(self, brokers: frozenset[int], turn: Turn) -> _Plan:
        known = self._plans.get(turn.number)
        if known is None or not known.stands(self.groups, self.directory, brokers, turn.is_due):
            self._codes = {group: code for code, group in enumerate(self.groups)}
            # Turns that were before are of no use any more where groups have changed.
            self._plans = {n: plan for n, plan in self._plans.items() if plan.groups is self.groups}
            known = self._plans[turn.number] = self._planned(brokers, turn, known)
        return known

    def _planned(self, brokers: frozenset[int], turn: Turn, before: _Plan | None) -> _Plan:
        due = [self.groups[code] for code in np.flatnonzero(turn.is_due).tolist()]
        old = {(one.node, tuple(one.groups)): one for one in before.questions} if before else {}
        chunks = [
            (node, tuple(groups[begin : begin + GROUPS_PER_REQUEST]))
            for node, groups in asked_at(self.directory, due, sorted(brokers)).items()
            for begin in range(0, len(groups), GROUPS_PER_REQUEST)
        ]
        coordinators = self.directory.coordinators
        return _Plan(
            self.groups,
            coordinators,
            brokers,
            turn.is_due,
            questions=[old.get(chunk) or CommitQuestion(*chunk) for chunk in chunks],
            asked=[np.array([self._codes[group] for group in groups], dtype=np.int32) for _, groups in chunks],
            coordinator=np.array([coordinators.get(group, NOBODY) for group in self.groups], dtype=np.int32),
            learnt=[None] * len(chunks),
        )

    def _sorted_out(
        self, plan: _Plan, answers: Mapping[int, Answer[Columns] | Failure], *, has_offsets_topic: bool
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
        return CommitRound(plan.groups, plan.is_due, parts, headless, problems, unreported)

    def _is_doubtful(self, plan: _Plan, number: int, answers: Mapping[int, object]) -> tuple[bool, bool]:
        return self._liveness.is_doubtful(plan.questions[number].node), number not in answers

    def _part(self, plan: _Plan, number: int, answer: Answer[Columns], found: _Found) -> Part:
        """What a response is believed; what it refuses goes to `found`."""
        question, columns = plan.questions[number], answer.content
        learnt = plan.learnt[number]
        if learnt is None or learnt.shape is not columns.shape:
            learnt = plan.learnt[number] = self._learnt(columns.shape, plan.asked[number])
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

    def _learnt(self, shape: Shape, asked: Codes) -> Learnt:
        code = codes_in(shape, self._codes)
        code[~np.isin(code, asked)] = NOWHERE
        topics: list[list[str]] = [[] for _ in shape.groups]
        largest: dict[str, int] = {}
        begins = np.cumsum(shape.sizes) - shape.sizes
        is_watched: dict[str, bool] = {}
        for block, (group, topic) in enumerate(zip(shape.group.tolist(), shape.topics, strict=True)):
            if topic not in is_watched:
                is_watched[topic] = self._watching.watches_topic(topic)
            if is_watched[topic] or topic in self._watching.given_topics(shape.groups[group]):
                topics[group].append(topic)
            if is_watched[topic] and shape.sizes[block]:
                rows = shape.partition[begins[block] : begins[block] + shape.sizes[block]]
                largest[topic] = max(largest.get(topic, 0), int(rows.max()))
        has_commits = np.isin(np.arange(len(shape.groups)), shape.group)
        return Learnt(shape, code, [tuple(dict.fromkeys(names)) for names in topics], has_commits, largest)

    def _learn_coordinators(self, plan: _Plan, found: _Found) -> None:
        """Who answered for a group is its coordinator, as is who told what is wrong with it."""
        moved = np.flatnonzero((found.node != NOBODY) & (found.node != plan.coordinator))
        answered = {plan.groups[code]: int(found.node[code]) for code in moved.tolist()}
        told = {group: node for group, node in found.refusing.items() if found.node[self._codes[group]] == NOBODY}
        refused = [group for group in found.refused if found.node[self._codes[group]] == NOBODY and group not in told]
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
        for part in parts:
            learnt = part.learnt
            is_plain = not part.is_doubtful and bool(part.is_accepted.all())
            if is_plain and learnt.is_remembered:
                continue
            for place in np.flatnonzero(part.is_accepted).tolist():
                group, seen = learnt.shape.groups[place], learnt.topics[place]
                if learnt.has_commits[place] and group not in self.directory.groups:
                    # Listed or not, it exists: where its commits go before it is listed, it has to be found gone, too.
                    self.directory = replace(self.directory, groups=self.directory.groups | {group})
                if not part.is_doubtful or group not in self.topics:
                    self._remember_group(group, seen)
                known = self.topics[group]
                unreported |= {(group, topic) for topic in known if known[topic] or topic not in seen}
            # A group with missing topics is looked at again in each cycle, as they are counted.
            learnt.is_remembered = is_plain and self._incomplete.isdisjoint(learnt.shape.groups)
        for group in headless:
            self._remember_group(group, ())
            unreported |= {(group, topic) for topic in self.topics[group]}
        return unreported

    def _remember_group(self, group: str, seen: Collection[str]) -> None:
        known = self.topics.get(group)
        found = still_committed(known or {}, seen, can_vanish=group in self.directory.listed)
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
