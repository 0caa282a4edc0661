"""What FindCoordinator is sent for: groups' coordinators where asking all brokers for all groups would multiply the
requests, groups that no broker lists, and the proof that groups are placed as expected."""

from collections.abc import Collection, Mapping, Sequence

from adapter.cluster.coordinators import PROOF, Placement, evidence, is_usable, proving_groups
from adapter.cluster.topics import Topic
from adapter.collector.commit_plans import planned
from adapter.columns import NEVER, NO_COMMIT
from adapter.kafka.answers import Answer, Failure
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness
from adapter.lag.snapshot import Cause, State
from adapter.metrics.problems import hidden_group
from adapter.protocol import codes
from adapter.protocol.apis import FIND_COORDINATOR

MOST_TRIED = 50
"""Groups per search that most likely are not found: they may not exist, or their coordinator was not found before."""
ATTEMPTS = 3
"""So many requests in a row ask for a proof of the placement, because partitions may be moving during one of them."""
ATTEMPT_SECONDS = 300.0
"""The period of later attempts: they prove little where the adapter may not describe groups of any name."""
MOST_KNOWN = 10
"""Groups that are asked for beside the made-up names, because the adapter may describe them."""


class CoordinatorSearch:
    """Used by one thread."""

    def __init__(self, brokers: Brokers, liveness: Liveness) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._asked_last = -1
        self._refused: Mapping[str, Cause] = {}
        """Group -> why a broker named no coordinator when it was last asked."""
        self._sought_last = self._commits_sought_last = ""

    def find(self, groups: Sequence[str], brokers: Collection[int]) -> tuple[dict[str, int], dict[str, Cause]]:
        """Returns the coordinators of some of these groups, and why the others have none yet.

        `groups` are sorted. Of those whose coordinator no broker could name, only some are sought again in each call:
        a partition that stays offline costs little. Once one of them has a coordinator, all are sought."""
        in_turn = sorted(groups, key=lambda group: (group <= self._sought_last, group))
        again = [group for group in in_turn if group in self._refused][:MOST_TRIED]
        sought = [*(group for group in in_turn if group not in self._refused), *again]
        known, refused, failure = self._named(sought, brokers)
        refused = {group: self._refused[group] for group in groups if group in self._refused} | refused
        unread = {group: refused.get(group) or failure or _not_known_yet(group) for group in groups}
        is_better = any(group in known for group in again)
        self._refused = {} if is_better else refused
        return known, {group: cause for group, cause in unread.items() if group not in known}

    def _named(
        self, sought: Sequence[str], brokers: Collection[int]
    ) -> tuple[dict[str, int], dict[str, Cause], Cause | None]:
        """Returns the coordinators that a broker names, why it names none of others, and why it did not answer.

        Brokers are asked in turn, so that no broken one is asked each time. A slow one may not come to all groups."""
        lacks = {node: self._brokers.lack(node, FIND_COORDINATOR) for node in self._liveness.present(brokers)}
        able = (node for node, lack in lacks.items() if not lack)
        present = sorted(able, key=lambda node: (node <= self._asked_last, node))
        if not present:
            lack = next(iter(lacks.values()), None)
            return {}, {}, None if lack is None else Cause(State.UNKNOWN, lack)
        self._asked_last, self._sought_last = present[0], sought[-1]
        answer = self._brokers.coordinators(present[0], sought)
        if isinstance(answer, Failure):
            self._liveness.note({present[0]: answer})
            return {}, {}, Cause(State.UNKNOWN, answer.text)
        self._sought_last = next((group for group in reversed(sought) if group in answer), sought[-1])
        found = {group: one.node for group, one in answer.items() if one.error == codes.NO_ERROR}
        known = {group: node for group, node in found.items() if node in brokers}
        refused = {group: _not_in_metadata(found[group], group) for group in found.keys() - known.keys()}
        refused |= {
            group: group_error(answer[group].error, group, present[0]) for group in answer.keys() - found.keys()
        }
        return known, refused, None

    def with_commits(
        self,
        groups: Sequence[str],
        brokers: Collection[int],
        asked_singly: frozenset[int],
        not_searched: frozenset[int],
    ) -> dict[str, int]:
        """Returns those of the groups that have commits -> their coordinators; `groups` are looked for in turn."""
        groups = sorted(groups, key=lambda group: (group <= self._commits_sought_last, group))[:MOST_TRIED]
        self._commits_sought_last, coordinators = groups[-1], dict[str, int]()
        if not_searched and len(brokers) > 1:
            coordinators, _, _ = self._named(groups, brokers)
        plan = planned(tuple(groups), coordinators, self._liveness.present(brokers), asked_singly, not_searched)
        answers = self._brokers.finish(self._brokers.commits(dict(enumerate(plan.questions))))
        self._liveness.note({plan.questions[number].node: answer for number, answer in answers.items()})
        return {
            group: plan.questions[number].node
            for number, answer in answers.items()
            if isinstance(answer, Answer)
            for place, group in enumerate(answer.content.shape.groups)
            if group in plan.codes and (answer.content.offsets_of(place) != NO_COMMIT).any()
        }


class PlacementProof:
    """Asks for the coordinators of a few names; groups of these names need not exist. Used by one thread."""

    def __init__(self, brokers: Brokers, liveness: Liveness) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self.begin_anew()

    def begin_anew(self) -> None:
        self._attempts = self._contradictions = 0
        self._asked_at = NEVER

    def put_off(self, now: float) -> None:
        """Call when the placement is proven or refuted: what refuted it may have been momentary, as in an upgrade."""
        self._attempts, self._asked_at = ATTEMPTS, now

    def placement(self, topic: Topic, known: Sequence[str], nodes: Sequence[int], now: float) -> Placement:
        """Asks the first of the nodes; `known` are groups that the adapter may describe, if there are any.

        UNKNOWN: the answer decides nothing."""
        is_early = self._attempts >= ATTEMPTS and now - self._asked_at < ATTEMPT_SECONDS
        if is_early or not is_usable(topic):
            return Placement.UNKNOWN
        names, nodes = proving_groups(topic), [n for n in nodes if not self._brokers.lack(n, FIND_COORDINATOR)]
        if not names or not nodes:
            return Placement.UNKNOWN
        answer = self._brokers.coordinators(nodes[0], [*names, *known[:MOST_KNOWN]])
        if isinstance(answer, Failure):
            self._liveness.note({nodes[0]: answer})
            return Placement.UNKNOWN
        self._attempts, self._asked_at = self._attempts + 1, now
        shown = evidence(topic, {name: one.node for name, one in answer.items() if one.error == codes.NO_ERROR})
        self._contradictions = self._contradictions + 1 if shown < 0 else 0
        if shown >= PROOF:
            return Placement.PROVEN
        # Many leaders may be elected between Metadata and this answer, but not again before the next one.
        most = 2 if shown <= -PROOF else ATTEMPTS
        return Placement.REFUTED if self._contradictions >= most else Placement.UNKNOWN


def _not_known_yet(group: str) -> Cause:
    return Cause(State.UNKNOWN, f"the coordinator of group {group} is not known yet")


def _not_in_metadata(node: int, group: str) -> Cause:
    return Cause(State.UNKNOWN, f"broker {node}, which coordinates group {group}, is missing in the cluster's metadata")


def group_error(error: int, group: str, node: int) -> Cause:
    if error == codes.COORDINATOR_LOADING:
        return Cause(State.UNKNOWN, f"broker {node} is still loading its groups")
    if error in {codes.NOT_COORDINATOR, codes.COORDINATOR_ABSENT}:
        return Cause(State.UNKNOWN, f"the coordinator of group {group} is moving")
    if error == codes.GROUP_NOT_AUTHORIZED:
        return Cause(State.ERROR, hidden_group(group))
    return Cause(State.ERROR, f"broker {node} returned error {error} for group {group}")
