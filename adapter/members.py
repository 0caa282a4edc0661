"""Who is in each group and which topics they read: what they no longer read is stale, and must not keep pods alive.

A broker describes groups of one kind per request, so where it coordinates several kinds they take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from adapter.answers import Answer
from adapter.brokers import Brokers
from adapter.directory import Description, Directory, Kind, Phase, Standing
from adapter.liveness import Liveness

DESCRIBE_SECONDS = 60.0
"""Between two requests to a broker: with ListGroups twice and the log starts once a minute, four of each."""
GROUPS_PER_REQUEST = 1000
"""So that decoding one answer does not hold up the cycle; groups beyond that are described a minute later."""
HEAD_START_SECONDS = 90.0
"""A kind with groups that were never described goes first, but not for ever where new groups keep coming."""
NEVER = float("-inf")


class Members:
    """The members of one cluster's groups. Used by one thread."""

    def __init__(
        self,
        brokers: Brokers,
        liveness: Liveness,
        monotonic: Callable[[], float],
        interval: float,
    ) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._monotonic = monotonic
        self._slack = interval / 2
        self._described: dict[int, float] = {}
        self._turns: dict[tuple[int, Kind], float] = {}
        self._asked: dict[str, float] = {}
        self._known: dict[str, Description] = {}
        self._standings: Mapping[str, Standing] = {}
        self.topics_read: Mapping[str, frozenset[str]] = {}
        """Group -> the topics that some member is subscribed to or assigned, as the group was last seen Stable; the
        same object while nothing changes."""
        self.counts: Mapping[str, int] = {}
        """Group -> how many members it had when last described; 0: its coordinator calls it Empty; absent: not known.
        Replaced, never changed."""

    def describe_if_due(self, directory: Directory, brokers: Collection[int]) -> None:
        """Describe groups with members: one kind at each broker that was last asked a minute ago."""
        if directory.standings is not self._standings:
            self._forget_who_left(directory.standings)
        now = self._monotonic()
        self._described = {node: then for node, then in self._described.items() if node in brokers}
        self._turns = {turn: then for turn, then in self._turns.items() if turn[0] in brokers}
        due = {
            node
            for node in self._liveness.present(brokers)
            if now - self._described.get(node, NEVER) >= DESCRIBE_SECONDS - self._slack
        }
        for kind, plan in self._plans(directory, due, now).items():
            self._describe(kind, plan, now)

    def _plans(self, directory: Directory, due: Collection[int], now: float) -> dict[Kind, dict[int, list[str]]]:
        """Kind -> the brokers whose turn it is -> groups; every broker at most once."""
        waiting: dict[int, dict[Kind, list[str]]] = {}
        for group, standing in directory.standings.items() if due else ():
            node = directory.coordinators.get(group)
            if node is not None and node in due and standing.phase is not Phase.EMPTY:
                waiting.setdefault(node, {}).setdefault(standing.kind, []).append(group)
        plans: dict[Kind, dict[int, list[str]]] = {}
        for node, by_kind in waiting.items():
            kind = min(by_kind, key=lambda kind: self._last_turn(node, kind, by_kind[kind]))
            first = sorted(by_kind[kind], key=lambda group: self._asked.get(group, NEVER))
            plans.setdefault(kind, {})[node] = first[:GROUPS_PER_REQUEST]
            self._described[node] = self._turns[node, kind] = now
        return plans

    def _last_turn(self, node: int, kind: Kind, groups: Collection[str]) -> float:
        has_news = any(group not in self._asked for group in groups)
        return self._turns.get((node, kind), NEVER) - (HEAD_START_SECONDS if has_news else 0)

    def _describe(self, kind: Kind, plan: Mapping[int, Sequence[str]], now: float) -> None:
        answers = self._brokers.described(plan, kind)
        self._liveness.note(answers)
        for node, answer in answers.items():
            if isinstance(answer, Answer):
                for group in plan[node]:
                    self._asked[group] = now
                    self._learn(group, answer.content.get(group))
        self._tell()

    def _learn(self, group: str, description: Description | None) -> None:
        """A group that moves reads what it read: else what is stale would count whenever a pod comes or goes."""
        before = self._known.get(group)
        if description is None:
            self._known.pop(group, None)
        elif before is not None and not description.is_stable:
            self._known[group] = replace(description, topics=before.topics)
        else:
            self._known[group] = description

    def _forget_who_left(self, standings: Mapping[str, Standing]) -> None:
        """Who is Empty, of another kind, or no longer listed is described anew when it comes back."""
        before, self._standings = self._standings, standings
        for group in self._asked.keys() - _same(before, standings):
            del self._asked[group]
            self._known.pop(group, None)
        self._tell()

    def _tell(self) -> None:
        empty = (group for group, standing in self._standings.items() if standing.phase is Phase.EMPTY)
        self.counts = {
            **dict.fromkeys(empty, 0),
            **{group: description.members for group, description in self._known.items()},
        }
        topics_read = {group: description.topics for group, description in self._known.items() if description.topics}
        if topics_read != self.topics_read:
            self.topics_read = topics_read


def _same(before: Mapping[str, Standing], after: Mapping[str, Standing]) -> set[str]:
    """The groups that have members and are of the kind they were."""
    return {
        group
        for group, standing in after.items()
        if standing.phase is not Phase.EMPTY and group in before and before[group].kind is standing.kind
    }
