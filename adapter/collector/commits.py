"""The groups' commits in each cycle: which brokers to ask, what to believe, and what is gone."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from adapter.cluster.groups import NOBODY, Directory, Listing, with_coordinators, with_listings
from adapter.collector.commit_plans import NOWHERE, CommitPlan, ResponseMapping, planned, response_mapping
from adapter.collector.coordinator_search import CoordinatorSearch, group_error
from adapter.collector.takeovers import Handovers, Takeovers
from adapter.columns import Codes, Flags
from adapter.kafka.answers import Answer, Failure
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness
from adapter.kafka.paced_calls import PacedCalls
from adapter.lag.rules import Absences, Asked, Watching, still_committed
from adapter.lag.snapshot import Cause, State
from adapter.latest import Latest
from adapter.protocol import codes
from adapter.protocol.apis import FIRST_WITH_GROUPS
from adapter.protocol.offset_responses import Columns
from adapter.protocol.prepared_requests import CommitQuestion

CYCLES_WITHOUT_COORDINATOR = 3
"""After this many cycles in a cluster without an offsets topic, a group without a coordinator has no commits."""


@dataclass(frozen=True, slots=True, eq=False)
class AcceptedResponse:
    """The accepted content of one response."""

    columns: Columns
    mapping: ResponseMapping
    is_accepted: Flags
    """Group of the response -> whether this response counts for it."""
    received: float
    is_doubtful: Flags
    """Group of the response -> whether the broker was silent a moment ago, or has just taken over the group."""
    batch: int = 0
    """The first round of log ends requested after it."""

    @property
    def codes(self) -> Codes:
        """The groups it counts for, as indexes into the round's groups."""
        return self.mapping.code[self.is_accepted]

    def offsets_of_groups(self, places: Iterable[int]) -> list[bytes]:
        """Returns the offsets of these groups of the response, to be compared."""
        shape = self.columns.shape
        first_rows = np.concatenate(([0], np.cumsum(shape.sizes)))
        bounds = first_rows[np.searchsorted(shape.group, np.arange(len(shape.groups) + 1))].tolist()
        return [self.columns.offset[bounds[place] : bounds[place + 1]].tobytes() for place in places]


class CommitRound:
    """A round of OffsetFetch. At its end, every group is in a part, without a coordinator, or unread."""

    def __init__(self, plan: CommitPlan, calls: PacedCalls[Columns], unread: dict[str, Cause]) -> None:
        """`calls` has the questions of the plan that were sent, by number, `unread` the groups of the others."""
        self.plan = plan
        self.calls = calls
        self.unread = unread
        """Group -> why its commits could not be read; until the end, also of groups that another broker reported."""
        self.node: Codes = np.full(len(plan.groups), NOBODY, dtype=np.int32)
        """The node that answered for each group; NOBODY if none has."""
        self.was_silent: Flags = np.zeros(len(plan.groups), dtype=bool)
        """Whether that broker was silent a moment ago."""
        self.parts: list[AcceptedResponse] = []
        self.ended: set[str] = set()
        """The groups of requests that failed although the broker was not silent."""
        self.refused: dict[str, float] = {}
        """Group -> when the first broker answered that it does not coordinate it."""
        self.refusing: dict[str, int] = {}
        """Group -> the node that reported its error."""
        self.without_coordinator: Mapping[str, float] = {}
        """Groups that no broker knows, so that they have no commits -> when this was received."""
        self.unreported: dict[str, set[str]] = {}
        """Group -> topics with earlier commits that the latest responses lack."""

    def withdraw(self, withdrawn: Codes) -> None:
        """Withdraws these groups, because a better source has reported them."""
        for part in self.parts:
            part.is_accepted[np.isin(part.mapping.code, withdrawn)] = False
        for code in withdrawn.tolist():
            self.unreported.pop(self.plan.groups[code], None)


class Commits:
    def __init__(self, brokers: Brokers, liveness: Liveness, watching: Watching) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._watching = watching
        self._unknown_cycles: dict[str, int] = {}
        self._plan_for = Latest(planned)
        self._asked_singly: frozenset[int] = frozenset()
        """Brokers that take one group per request; the same object while it does not change."""
        self._waiting: Mapping[str, int] = {}
        """Group -> for how many cycles it has not been asked for, because its coordinator was too slow."""
        self._search = CoordinatorSearch(brokers, liveness)
        self.takeovers = Takeovers(watching.interval)
        self.handovers = Handovers(brokers, liveness)
        self.directory = Directory()
        self.groups: tuple[str, ...] = tuple(sorted(watching.named_groups))
        """Every watched group, sorted; the same object until it changes."""
        self.topics: dict[str, Absences] = {}
        """Group -> its watched topics with commits; without groups that were never read."""
        self.version = 0
        """Increases whenever `groups` or `topics` change."""
        self.uncoordinated: list[str] = []
        """The groups that every broker refused in the last cycle."""

    def list_groups(
        self, nodes: Iterable[int], brokers: Collection[int], leader_of: Callable[[str], int] = lambda _: NOBODY
    ) -> dict[int, Listing]:
        """Applies a round of ListGroups; returns all listed groups, including those that are not watched."""
        answers = self._brokers.groups(nodes)
        self._liveness.note(answers)
        everything = {node: answer.content for node, answer in answers.items() if isinstance(answer, Answer)}
        listings = {node: listing.only(self._watching.watches_group) for node, listing in everything.items()}
        without_offsets = {group for group, topics in self.topics.items() if all(topics.values())}
        before = self.directory
        self.directory = with_listings(before, listings, brokers, without_offsets, leader_of)
        if self.directory.coordinators == before.coordinators:
            self.directory = replace(self.directory, coordinators=before.coordinators)
        for group in before.groups - self.directory.groups:
            self.topics.pop(group, None)
            self.version += 1
        self._update_groups()
        return everything

    def follow_asked(self, asked: Asked, is_remembered: Callable[[str], bool], topics: Collection[str]) -> None:
        """Reads what HPAs ask for: the existing `topics` of groups that Kafka knows or once knew."""
        if self._watching.ask(asked, lambda group: group in self.directory.groups or is_remembered(group), topics):
            self.version += 1
            self._update_groups()

    def _update_groups(self) -> None:
        groups = tuple(sorted(self.directory.groups | self._watching.named_groups))
        if groups != self.groups:
            for group in set(self.groups).difference(groups):
                self.topics.pop(group, None)
            self.groups = groups
            self.version += 1
            self._watching.forget_others(groups)

    def ask(self, brokers: Collection[int], *, has_offsets_topic: bool) -> CommitRound:
        """`brokers` is the same object while nothing changes."""
        self._follow_versions(brokers)
        not_searched = self._not_searched(has_offsets_topic=has_offsets_topic)
        unread = self._find_coordinators(brokers) if not_searched and len(brokers) > 1 else {}
        plan = self._plan_for(self.groups, self.directory.coordinators, brokers, self._asked_singly, not_searched)
        asked = {}
        for number, question in self._in_turn(plan):
            failure = self._liveness.failure(question.node)
            if failure is None:
                asked[number] = question
            else:
                unread |= dict.fromkeys(question.groups, Cause(State.UNKNOWN, failure.text))
        self.takeovers.follow(plan.groups, plan.codes)
        return CommitRound(plan, self._brokers.commits(asked), unread)

    def _in_turn(self, plan: CommitPlan) -> Iterable[tuple[int, CommitQuestion]]:
        """Returns the numbered questions; those come first that a slow coordinator has not come to for longest."""
        questions = enumerate(plan.questions)
        if not self._waiting:
            return questions
        return sorted(questions, key=lambda each: -self._waiting.get(each[1].groups[0], 0))

    def _follow_versions(self, brokers: Collection[int]) -> None:
        versions = {node: self._brokers.versions(node).offset_fetch for node in brokers}
        singly = frozenset(
            node for node, version in versions.items() if version is not None and version < FIRST_WITH_GROUPS
        )
        if singly != self._asked_singly:
            self._asked_singly = singly

    def _not_searched(self, *, has_offsets_topic: bool) -> frozenset[int]:
        """FindCoordinator makes Kafka create its offsets topic, so it is not sent where no group is known to exist."""
        return self._asked_singly if has_offsets_topic or self.directory.coordinators else frozenset()

    def _find_coordinators(self, brokers: Collection[int]) -> dict[str, Cause]:
        """Returns why groups have no coordinator yet."""
        coordinators = self.directory.coordinators
        lost = [group for group in self.groups if coordinators.get(group) not in brokers]
        found, unread = self._search.find(lost, brokers) if lost else ({}, {})
        if found:
            self.directory = with_coordinators(self.directory, found, ())
        return unread

    def seek(self, groups: Sequence[str], brokers: Collection[int], *, has_offsets_topic: bool) -> None:
        """Adds those of the groups that have commits."""
        not_searched = self._not_searched(has_offsets_topic=has_offsets_topic)
        found = self._search.with_commits(groups, brokers, self._asked_singly, not_searched)
        if found:
            known = replace(self.directory, groups=self.directory.groups | found.keys())
            self.directory = with_coordinators(known, found, ())
            self._update_groups()

    def take(self, round_: CommitRound, batch: int) -> list[str]:
        """Processes the responses that have arrived; returns the groups they report."""
        answers, questions = round_.calls.take(), round_.plan.questions
        # Of the failures of one broker, one counts.
        by_node = {questions[number].node: answer for number, answer in answers.items()}
        by_node |= {questions[number].node: each for number, each in answers.items() if isinstance(each, Failure)}
        self._liveness.note(by_node)
        for number, answer in answers.items():
            if isinstance(answer, Failure):
                groups = questions[number].groups
                round_.unread |= dict.fromkeys(groups, Cause(State.UNKNOWN, answer.text))
                round_.ended.update(groups if answer.was_sent and not answer.was_silence else ())
        responses = {number: answer for number, answer in answers.items() if isinstance(answer, Answer)}
        parts = [
            self._part(round_, number, responses[number], batch)
            for number in sorted(responses, key=lambda number: self._liveness.is_doubtful(questions[number].node))
        ]
        self._remember(round_, parts)
        round_.parts += parts
        return [round_.plan.groups[code] for part in parts for code in part.codes.tolist()]

    def finish(self, round_: CommitRound, *, has_offsets_topic: bool) -> None:
        """Call when all responses have been taken."""
        unsent = (group for number in round_.calls.unsent for group in round_.plan.questions[number].groups)
        self._waiting = {group: self._waiting.get(group, 0) + 1 for group in unsent}
        self._learn_coordinators(round_)
        if not (round_.unread or round_.refused):
            self._unknown_cycles = {}
            return
        answered = {round_.plan.groups[code] for code in np.flatnonzero(round_.node != NOBODY).tolist()}
        self.takeovers.note_lost((round_.ended | round_.refused.keys() | round_.refusing.keys()) - answered)
        if not (has_offsets_topic or self.directory.coordinators):
            round_.without_coordinator = self._answers_of_none(round_, round_.unread.keys() | answered)
        refused = {group: Cause(State.UNKNOWN, f"no broker coordinates group {group}") for group in round_.refused}
        settled = round_.without_coordinator.keys() | answered
        round_.unread = {group: cause for group, cause in (refused | round_.unread).items() if group not in settled}
        for group in round_.without_coordinator:
            self._remember_group(group, ())
            round_.unreported[group] = set(self.topics[group])

    def note_reports(self, round_: CommitRound, behind: Collection[str]) -> None:
        """`behind` are the groups in doubt that report less than was known; the others report all of it."""
        for part in round_.parts:
            doubted = np.flatnonzero(part.is_accepted & part.is_doubtful).tolist()
            for place, offsets in zip(doubted, part.offsets_of_groups(doubted), strict=True):
                group = part.mapping.shape.groups[place]
                if group in behind:
                    has_grown = self.handovers.has_grown(group)
                    self.takeovers.note_behind(group, offsets, part.received, has_grown=has_grown)
                else:
                    self.takeovers.note_reported(group)

    def _part(self, round_: CommitRound, number: int, answer: Answer[Columns], batch: int) -> AcceptedResponse:
        """Returns the accepted part of a response and records in `round_` what it refuses."""
        plan, columns = round_.plan, answer.content
        node, mapping = plan.questions[number].node, plan.mappings.get(number)
        if mapping is None or mapping.shape is not columns.shape:
            mapping = plan.mappings[number] = response_mapping(columns.shape, plan, number, self._watching)
        was_silent = self._liveness.is_doubtful(node)
        is_known = mapping.code != NOWHERE
        is_accepted = is_known & (columns.group_error == codes.NO_ERROR)
        self._refuse_handovers(round_, mapping, is_accepted, node)
        is_first = round_.node[mapping.code] == NOBODY
        # If two brokers report a group, the one that was not silent a moment ago is right.
        is_better = ~is_first & round_.was_silent[mapping.code] & (not was_silent)
        is_accepted &= is_first | is_better
        if is_better.any():
            round_.withdraw(mapping.code[is_accepted & is_better])
        accepted = mapping.code[is_accepted]
        round_.node[accepted], round_.was_silent[accepted] = node, was_silent
        is_doubtful = np.full(len(is_accepted), was_silent)
        is_doubtful[is_accepted] |= self.takeovers.note_answer(accepted, node, answer.received)
        _note_errors(round_, columns, is_known, node, answer.received)
        for code in np.setdiff1d(plan.asked[number], mapping.code[is_known]).tolist():
            text = f"broker {node} omitted group {plan.groups[code]} from its response"
            round_.unread[plan.groups[code]] = Cause(State.ERROR, text)
        return AcceptedResponse(columns, mapping, is_accepted, answer.received, is_doubtful, batch)

    def _refuse_handovers(self, round_: CommitRound, mapping: ResponseMapping, is_accepted: Flags, node: int) -> None:
        """Clears `is_accepted` for groups that the node has taken over and may not know completely yet."""
        for place in np.flatnonzero(is_accepted & (self.takeovers.node[mapping.code] != node)).tolist():
            group = mapping.shape.groups[place]
            if not self.handovers.is_final(group, node):
                is_accepted[place] = False
                text = f"broker {node} has just taken over group {group} and may report old commits"
                round_.unread[group] = Cause(State.UNKNOWN, text)
                round_.refusing[group] = node

    def _learn_coordinators(self, round_: CommitRound) -> None:
        """The broker that answers for a group, or reports its error, is its coordinator."""
        plan, nodes = round_.plan, round_.node
        moved = np.flatnonzero((nodes != NOBODY) & (nodes != plan.coordinator))
        answered = {plan.groups[code]: int(nodes[code]) for code in moved.tolist()}
        refusing = {group: node for group, node in round_.refusing.items() if nodes[plan.codes[group]] == NOBODY}
        unanswered = (group for group in round_.refused if nodes[plan.codes[group]] == NOBODY)
        self.uncoordinated = [group for group in unanswered if group not in refusing]
        coordinators = self.directory.coordinators
        news = {group: node for group, node in (refusing | answered).items() if coordinators.get(group) != node}
        if news or any(group in coordinators for group in self.uncoordinated):
            self.directory = with_coordinators(self.directory, news, self.uncoordinated)

    def _answers_of_none(self, round_: CommitRound, settled: Collection[str]) -> dict[str, float]:
        """Returns named groups that no broker knows. With an offsets topic, their partition may only be offline."""
        refused = round_.refused
        without_coordinator = (refused.keys() & self._watching.named_groups) - set(settled) - self.directory.groups
        self._unknown_cycles = {group: self._unknown_cycles.get(group, 0) + 1 for group in without_coordinator}
        known = [group for group, cycles in self._unknown_cycles.items() if cycles >= CYCLES_WITHOUT_COORDINATOR]
        is_proven = known and self.handovers.has_no_offsets_topic(round_.plan.questions[0].node)
        return {group: refused[group] for group in known} if is_proven else {}

    def _remember(self, round_: CommitRound, parts: Sequence[AcceptedResponse]) -> None:
        """Records the topics with commits, and those that the latest responses lack."""
        unlisted: set[str] = set()
        for part in parts:
            mapping = part.mapping
            is_plain = not part.is_doubtful.any() and bool(part.is_accepted.all())
            if is_plain and mapping.remembered_at == self.version:
                continue
            for place in np.flatnonzero(part.is_accepted).tolist():
                group, seen = mapping.shape.groups[place], frozenset(mapping.topics[place])
                if seen and group not in self.directory.groups:
                    unlisted.add(group)
                # A doubtful broker may have forgotten a topic, but a new topic is no step backward.
                forgotten = self.topics.get(group, ()) if part.is_doubtful[place] else ()
                self._remember_group(group, seen, forgotten)
                committed = self.topics[group]
                if any(committed.values()) or len(committed) > len(seen):
                    round_.unreported[group] = {topic for topic in committed if committed[topic] or topic not in seen}
            # Groups that lack topics are processed in each cycle, because the cycles are counted.
            is_counting = any(any(self.topics.get(group, {}).values()) for group in mapping.shape.groups)
            mapping.remembered_at = self.version if is_plain and not is_counting else None
        if unlisted:
            # A group with commits exists even if it was never listed, and must be removed once its commits expire.
            self.directory = replace(self.directory, groups=self.directory.groups | unlisted)

    def _remember_group(self, group: str, seen: Collection[str], forgotten: Collection[str] = ()) -> None:
        before = self.topics.get(group)
        topics = still_committed(before or {}, seen, forgotten, can_vanish=group in self.directory.listed)
        if before is None or topics is not before:
            self.topics[group] = topics
            self.version += 1


def _note_errors(round_: CommitRound, columns: Columns, is_known: Flags, node: int, received: float) -> None:
    """Records the groups for which the node returned an error: it does not coordinate them, or cannot read them now."""
    for place in np.flatnonzero(is_known & (columns.group_error != codes.NO_ERROR)).tolist():
        group, error = columns.shape.groups[place], int(columns.group_error[place])
        if error in {codes.NOT_COORDINATOR, codes.COORDINATOR_ABSENT}:
            round_.refused[group] = min(received, round_.refused.get(group, received))
        else:
            round_.unread[group] = group_error(error, group, node)
            round_.refusing[group] = node
