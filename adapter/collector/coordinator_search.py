"""Finds the coordinators of groups where asking all brokers for all groups would multiply the requests."""

from collections.abc import Collection, Sequence

from adapter.kafka.answers import Failure
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness
from adapter.lag.snapshot import Cause, State
from adapter.protocol import codes

MOST_SOUGHT = 50
"""Groups per cycle. A broker before Kafka 3.0 takes a request for each, but listings name most coordinators."""


class CoordinatorSearch:
    """Used by one thread."""

    def __init__(self, brokers: Brokers, liveness: Liveness) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._asked_last = -1
        self._sought_last = ""

    def find(self, groups: Sequence[str], brokers: Collection[int]) -> tuple[dict[str, int], dict[str, Cause]]:
        """Returns the coordinators of some of these groups, and why the others have none yet.

        `groups` are sorted: they and the brokers are asked in turn, so that no broken one is asked each time."""
        unread = {group: Cause(State.UNKNOWN, f"the coordinator of group {group} is not known yet") for group in groups}
        sought = sorted(groups, key=lambda group: (group <= self._sought_last, group))[:MOST_SOUGHT]
        present = sorted(self._liveness.present(brokers), key=lambda node: (node <= self._asked_last, node))
        if not present:
            return {}, unread
        self._asked_last, self._sought_last = present[0], sought[-1]
        answer = self._brokers.coordinators(present[0], sought)
        if isinstance(answer, Failure):
            self._liveness.note({present[0]: answer})
            return {}, unread | dict.fromkeys(sought, Cause(State.UNKNOWN, answer.text))
        found = {group: one.node for group, one in answer.items() if one.error == codes.NO_ERROR}
        known = {group: node for group, node in found.items() if node in brokers}
        unread |= {group: _not_in_metadata(found[group], group) for group in found.keys() - known.keys()}
        unread |= {group: group_error(answer[group].error, group, present[0]) for group in answer.keys() - found.keys()}
        return known, {group: cause for group, cause in unread.items() if group not in known}


def _not_in_metadata(node: int, group: str) -> Cause:
    return Cause(State.UNKNOWN, f"broker {node}, which coordinates group {group}, is missing in the cluster's metadata")


def group_error(error: int, group: str, node: int) -> Cause:
    if error == codes.COORDINATOR_LOADING:
        return Cause(State.UNKNOWN, f"broker {node} is still loading its groups")
    if error in {codes.NOT_COORDINATOR, codes.COORDINATOR_ABSENT}:
        return Cause(State.UNKNOWN, f"the coordinator of group {group} is moving")
    if error == codes.GROUP_NOT_AUTHORIZED:
        return Cause(State.ERROR, f"the adapter may not describe group {group} (ACL Describe on the group is missing)")
    return Cause(State.ERROR, f"broker {node} returned error {error} for group {group}")
