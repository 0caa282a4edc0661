"""As of when it is judged whether a group's commits move.

While members change, commits rest: partitions wait for their new owners. A partition whose commit moved before must not
count as standing still then, and one whose commit stood still must not count as moving. So the group is judged as of
when the change was noticed, until its commits have had time to move again. That time is limited, because the commits of
a group without members do not move either. Of a group that was never seen with members, this is known at once."""

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

from adapter.cluster.groups import GroupStatus, Phase
from adapter.lag.replicas import NO_MEMBERS, still_after

LONGEST_SECONDS = 300.0
"""Kafka's default for max.poll.interval.ms, the longest that a member may hold up a rebalance."""


class _Rest(NamedTuple):
    since: float
    over_at: float | None = None
    """When the group was first found Stable again."""


class Resting:
    def __init__(self, interval: float, former: "Resting | None" = None) -> None:
        self._still_after = still_after(interval)
        self._rests: Mapping[str, _Rest] = {} if former is None else former._rests
        self._with_members: Set[str] = frozenset() if former is None else former._with_members
        """At the last look."""

    def judged_at(
        self,
        statuses: Mapping[str, GroupStatus],
        outdated: Mapping[str, float],
        is_judged: Callable[[str], bool],
        now: float,
    ) -> Mapping[str, float]:
        """Returns group -> as of when its commits are judged, or NO_MEMBERS; as of now if absent.

        Of groups that are not judged, it returns and keeps nothing. `outdated` has the groups whose members are not
        known well enough, and since when."""
        judged = {group: status for group, status in statuses.items() if is_judged(group)}
        empty = {group for group, status in judged.items() if status.phase is Phase.EMPTY}
        asleep = empty - self._rests.keys() - self._with_members
        self._with_members = judged.keys() - empty
        awake = ((group, status) for group, status in judged.items() if group not in asleep)
        rests = {group: self._rest(group, status, outdated, now) for group, status in awake}
        recent = {group: rest for group, rest in self._rests.items() if now - rest.since < LONGEST_SECONDS}
        self._rests = {group: rest for group, rest in {**recent, **rests}.items() if rest is not None}
        resting = {group: rest.since for group, rest in self._rests.items() if now - rest.since < LONGEST_SECONDS}
        return resting | dict.fromkeys(asleep, NO_MEMBERS)

    def _rest(self, group: str, status: GroupStatus, outdated: Mapping[str, float], now: float) -> _Rest | None:
        before = self._rests.get(group)
        # Where listings report no states, descriptions show whether the group is Stable.
        if status.phase not in {Phase.STABLE, Phase.UNKNOWN} or group in outdated:
            return _Rest(outdated.get(group, now)) if before is None else _Rest(before.since)
        if before is None or now - before.since >= LONGEST_SECONDS:
            return None
        over_at = now if before.over_at is None else before.over_at
        return None if now - over_at >= self._still_after else _Rest(before.since, over_at)
