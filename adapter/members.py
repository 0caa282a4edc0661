"""Which topics the members of Stable groups read: what they no longer read is stale, and must not keep pods alive."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from adapter.brokers import Answer, Brokers
from adapter.directory import Directory, Kind
from adapter.liveness import Liveness

DESCRIBE_SECONDS = 60.0
"""Between two descriptions: with ListGroups twice and the log starts once a minute, four requests per broker."""


class Members:
    """The members of one cluster's groups. Used by one thread."""

    def __init__(self, brokers: Brokers, liveness: Liveness, monotonic: Callable[[], float], interval: float) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._monotonic = monotonic
        self._slack = interval / 2
        self._described = float("-inf")
        self._next_kind = Kind.CLASSIC
        self.topics_read: Mapping[str, frozenset[str]] = {}
        """Stable group -> the topics that some member is subscribed to or assigned; replaced, never changed."""

    def describe_if_due(self, directory: Directory, brokers: Collection[int]) -> None:
        """Describe the Stable groups of one kind; where there are groups of both, the kinds take turns."""
        now = self._monotonic()
        still_stable = {group: topics for group, topics in self.topics_read.items() if group in directory.stable}
        if len(still_stable) != len(self.topics_read):
            self.topics_read = still_stable
        if now - self._described < DESCRIBE_SECONDS - self._slack or not directory.stable:
            return
        self._described = now
        kind = self._kind_in_turn(directory)
        plan = _plan(directory, kind, self._liveness.present(brokers))
        answers = self._brokers.topics_read(plan, kind)
        self._liveness.note(answers)
        for node, answer in answers.items():
            if isinstance(answer, Answer):
                # A group that is not described as Stable any more is not known to have left anything unread.
                others = {g: topics for g, topics in self.topics_read.items() if g not in set(plan[node])}
                self.topics_read = {**others, **answer.content}

    def _kind_in_turn(self, directory: Directory) -> Kind:
        kinds = set(directory.stable.values())
        kind = self._next_kind if self._next_kind in kinds else next(iter(kinds))
        self._next_kind = Kind.CONSUMER if kind is Kind.CLASSIC else Kind.CLASSIC
        return kind


def _plan(directory: Directory, kind: Kind, present: Collection[int]) -> dict[int, list[str]]:
    plan: dict[int, list[str]] = {}
    for group, of_kind in directory.stable.items():
        coordinator = directory.coordinators.get(group)
        if of_kind is kind and coordinator is not None and coordinator in present:
            plan.setdefault(coordinator, []).append(group)
    return plan
