"""What the groups have committed, cycle by cycle: whom to ask, what to believe, who and what is gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from adapter.brokers import Answer, Brokers, Failure
from adapter.directory import Directory, Listing, asked_at, with_coordinators, with_listings
from adapter.liveness import Liveness
from adapter.rows import Absences, Watching, still_committed
from adapter.snapshot import Cause, State
from adapter.wire import (
    COORDINATOR_ABSENT,
    COORDINATOR_LOADING,
    GROUP_NOT_AUTHORIZED,
    NO_ERROR,
    NOT_COORDINATOR,
    GroupCommits,
    PartitionOffsets,
)

HEADLESS_CYCLES = 3
"""So many cycles running a cluster without any offsets has nobody who coordinates a group: then it has no commits."""
OFFSETS_TOPIC = "__consumer_offsets"

CommitAnswers = Mapping[int, Answer[dict[str, GroupCommits]] | Failure]


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """What a group's coordinator said."""

    topics: Mapping[str, PartitionOffsets]
    received: float
    is_doubtful: bool
    """The broker had been silent until a moment ago."""


@dataclass(frozen=True, slots=True)
class CommitRound:
    """One cycle's commits: every watched group is in one of the two."""

    answers: Mapping[str, GroupAnswer]
    problems: Mapping[str, Cause]


class Commits:
    """The groups of one cluster. Used by one thread."""

    def __init__(self, brokers: Brokers, liveness: Liveness, watching: Watching) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._watching = watching
        self._headless: dict[str, int] = {}
        self.directory = Directory()
        self.topics: dict[str, Absences] = {}
        """Group -> the watched topics it has commits for; a group is missing until it was read once."""

    # -- which groups there are ------------------------------------------------------------------

    def list_groups(self, nodes: Iterable[int], brokers: Collection[int]) -> None:
        """A round of ListGroups."""
        answers = self._brokers.groups(nodes)
        self._liveness.note(answers)
        listings = {
            node: self._watched(answer.content) for node, answer in answers.items() if isinstance(answer, Answer)
        }
        without_offsets = {group for group, topics in self.topics.items() if topics.keys() <= _absent(topics)}
        before = self.directory.groups
        self.directory = with_listings(self.directory, listings, brokers, without_offsets)
        for group in before - self.directory.groups:
            self.topics.pop(group, None)

    def _watched(self, listing: Listing) -> Listing:
        watched = frozenset(group for group in listing.groups if self._is_watched(group))
        stable = {group: kind for group, kind in listing.stable.items() if group in watched}
        return Listing(watched, listing.loading, stable)

    def _is_watched(self, group: str) -> bool:
        return group in self._watching.named_groups or self._watching.watches_group(group)

    @property
    def groups(self) -> frozenset[str]:
        return self.directory.groups | self._watching.named_groups

    # -- what they have committed ----------------------------------------------------------------

    def read(self, brokers: Collection[int], *, has_offsets_topic: bool) -> CommitRound:
        """One OffsetFetch per broker that is present, for all its groups."""
        plan = asked_at(self.directory, sorted(self.groups), brokers)
        present = set(self._liveness.present(plan))
        answers = self._brokers.commits({node: groups for node, groups in plan.items() if node in present})
        self._liveness.note(answers)
        for node in plan.keys() - present:
            answers[node] = self._liveness.failure(node) or Failure("other", f"broker {node} is not asked")
        outcome = self._sorted_out(plan, answers, has_offsets_topic=has_offsets_topic)
        self._remember(outcome)
        return outcome

    def _sorted_out(
        self, plan: Mapping[int, list[str]], answers: CommitAnswers, *, has_offsets_topic: bool
    ) -> CommitRound:
        found: dict[str, GroupAnswer] = {}
        problems: dict[str, Cause] = {}
        coordinators: dict[str, int] = {}
        refused: dict[str, float] = {}
        for node in sorted(answers, key=self._liveness.is_doubtful):
            answer = answers[node]
            if isinstance(answer, Failure):
                problems.update(dict.fromkeys(plan[node], Cause(State.UNKNOWN, answer.text)))
                continue
            for group in plan[node]:
                commits = answer.content.get(group)
                if commits is None:
                    problems[group] = Cause(State.ERROR, f"broker {node} left group {group} out of its answer")
                elif commits.error == NO_ERROR and group not in found:
                    found[group] = GroupAnswer(commits.topics, answer.received, self._liveness.is_doubtful(node))
                    coordinators[group] = node
                elif commits.error in {NOT_COORDINATOR, COORDINATOR_ABSENT}:
                    refused[group] = min(answer.received, refused.get(group, answer.received))
                elif commits.error != NO_ERROR:
                    problems[group] = _cause_of(commits.error, group, node)
                    coordinators[group] = node
        self.directory = with_coordinators(self.directory, coordinators, refused.keys())
        if not (has_offsets_topic or self.directory.coordinators):
            found.update(self._headless_answers(refused, found.keys() | problems.keys()))
        lost = {group: Cause(State.UNKNOWN, f"no broker coordinates group {group}") for group in refused}
        return CommitRound(found, {g: cause for g, cause in (lost | problems).items() if g not in found})

    def _headless_answers(self, refused: Mapping[str, float], settled: Collection[str]) -> dict[str, GroupAnswer]:
        """Groups given by name that nobody coordinates or lists, in a cluster that has no offsets topic yet.

        In one that has it, a group's part of it is offline or moving, and what is committed there is not known.
        """
        headless = (refused.keys() & self._watching.named_groups) - set(settled) - self.directory.groups
        self._headless = {group: self._headless.get(group, 0) + 1 for group in headless}
        proven = (group for group, cycles in self._headless.items() if cycles >= HEADLESS_CYCLES)
        return {group: GroupAnswer({}, refused[group], is_doubtful=False) for group in proven}

    def _remember(self, outcome: CommitRound) -> None:
        # One that has commits exists, listed or not: where they go before it is listed, it has to be found gone, too.
        found = frozenset(group for group, answer in outcome.answers.items() if answer.topics)
        if not found <= self.directory.groups:
            self.directory = replace(self.directory, groups=self.directory.groups | found)
        for group, answer in outcome.answers.items():
            if answer.is_doubtful and group in self.topics:
                continue
            seen = [topic for topic in answer.topics if self._is_watched_topic(group, topic)]
            can_vanish = group in self.directory.listed
            self.topics[group] = still_committed(self.topics.get(group, {}), seen, can_vanish=can_vanish)

    def _is_watched_topic(self, group: str, topic: str) -> bool:
        return self._watching.watches_topic(topic) or topic in self._watching.given_topics(group)


def _absent(topics: Absences) -> set[str]:
    return {topic for topic, cycles in topics.items() if cycles}


def _cause_of(error: int, group: str, node: int) -> Cause:
    if error == COORDINATOR_LOADING:
        return Cause(State.UNKNOWN, f"broker {node} is still loading its groups")
    if error == GROUP_NOT_AUTHORIZED:
        return Cause(State.ERROR, f"the adapter may not describe group {group} (ACL Describe on the group is missing)")
    return Cause(State.ERROR, f"broker {node} gives error {error} for group {group}")
