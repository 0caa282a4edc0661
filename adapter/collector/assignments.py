"""Which member owns which partitions, of the groups for whose members somebody asks: each is described in every cycle.

What was last known of a Stable group stays, with its age, while its coordinator does not answer. It goes as soon as the
group is described as anything else, because partitions move in a rebalance."""

from collections.abc import Callable, Collection, Mapping, Sequence

from adapter.cluster.groups import Assignment, Description, Directory, Kind
from adapter.kafka.answers import Failure
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness

GROUPS_PER_REQUEST = 1000
"""Bounds the time that decoding one answer takes; the groups beyond are not described."""


class Assignments:
    def __init__(self, brokers: Brokers, liveness: Liveness) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self.current: Mapping[str, Assignment] = {}
        """By group; the same object while nothing is described. Members of share groups own no partition."""

    def describe(self, asked: Collection[str], directory: Directory, brokers: Collection[int]) -> None:
        """Describes these groups at their coordinators, with one request for each coordinator and kind of group."""
        known = {group: one for group, one in self.current.items() if group in asked and group in directory.groups}
        for kind, plan in _plans(asked, directory, self._liveness.present(brokers), self._brokers.can_describe).items():
            answers = self._brokers.described(plan, kind, with_clients=True)
            self._liveness.note(answers)
            for node, answer in answers.items():
                content = {} if isinstance(answer, Failure) else answer.content
                received = 0.0 if isinstance(answer, Failure) else answer.received
                for group in content.keys() & set(plan[node]):
                    assignment = _assignment_of(content[group], received)
                    known.pop(group, None)
                    if assignment is not None:
                        known[group] = assignment
        if known or self.current:
            self.current = known


def _plans(
    asked: Collection[str],
    directory: Directory,
    present: Collection[int],
    can_describe: Callable[[int, Kind], bool],
) -> dict[Kind, dict[int, Sequence[str]]]:
    """Returns kind -> brokers to ask -> groups."""
    plans: dict[Kind, dict[int, Sequence[str]]] = {}
    for group in sorted(asked):
        status, node = directory.statuses.get(group), directory.coordinators.get(group)
        if status is None or node is None or node not in present or status.kind is Kind.SHARE:
            continue
        if can_describe(node, status.kind):
            plan = plans.setdefault(status.kind, {})
            plan[node] = (*plan.get(node, ()), group)[:GROUPS_PER_REQUEST]
    return plans


def _assignment_of(description: Description | None, received: float) -> Assignment | None:
    """Returns None if it is not known which partitions the members own."""
    if description is None or (description.members and not description.topics):
        return None
    return Assignment(received, description.clients, description.owned)
