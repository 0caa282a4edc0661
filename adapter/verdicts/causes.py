"""What can be wrong with a group, and which of it is one incident: the cause is reported, its consequences are not."""

from collections.abc import Collection, Mapping
from enum import StrEnum


class Verdict(StrEnum):
    """In the order of cause: an earlier one can explain a later one, never the other way round."""

    UNREAD_TOPIC = "unread_topic"
    """Members read other topics of the group, and no partition of this one."""
    STUCK = "stuck"
    """Members are there and messages wait, but commits do not move."""
    LAG_WITHOUT_MEMBERS = "lag_without_members"
    UNSTEADY_MEMBERS = "unsteady_members"
    """Members come and go."""
    UNCOMMITTED = "uncommitted"
    """Partitions without a commit."""
    NO_LAG = "no_lag"
    """The lag was never known."""
    SLOW_PARTITION = "slow_partition"
    """One partition has nearly all the lag, and no more than its share of the messages."""
    HOT_PARTITION = "hot_partition"
    IDLE_MEMBERS = "idle_members"
    """More members than partitions."""
    FALLING_BEHIND = "falling_behind"
    RARE_COMMITS = "rare_commits"
    READS_LATE = "reads_late"
    """Messages are read at the rate at which they come in, and always as late."""
    ABOVE_THRESHOLD = "above_threshold"
    INCOMPLETE = "incomplete"
    """Samples of the lag are missing."""


_LATE = frozenset({Verdict.FALLING_BEHIND, Verdict.RARE_COMMITS, Verdict.READS_LATE, Verdict.ABOVE_THRESHOLD})
_CONSEQUENCES: Mapping[Verdict, frozenset[Verdict]] = {
    Verdict.STUCK: _LATE | {Verdict.SLOW_PARTITION},
    Verdict.LAG_WITHOUT_MEMBERS: _LATE | {Verdict.SLOW_PARTITION},
    Verdict.UNSTEADY_MEMBERS: _LATE | {Verdict.SLOW_PARTITION},
    Verdict.UNCOMMITTED: frozenset({Verdict.NO_LAG, Verdict.INCOMPLETE}),
    Verdict.NO_LAG: frozenset({Verdict.INCOMPLETE}),
    Verdict.SLOW_PARTITION: _LATE,
    Verdict.HOT_PARTITION: frozenset({Verdict.FALLING_BEHIND, Verdict.ABOVE_THRESHOLD}),
    Verdict.FALLING_BEHIND: frozenset({Verdict.ABOVE_THRESHOLD}),
    Verdict.RARE_COMMITS: frozenset({Verdict.READS_LATE, Verdict.ABOVE_THRESHOLD}),
    Verdict.READS_LATE: frozenset({Verdict.ABOVE_THRESHOLD}),
}

REPLICAS_DO_NOT_HELP = frozenset({Verdict.STUCK, Verdict.SLOW_PARTITION, Verdict.HOT_PARTITION})
"""Replicas do not reduce the lag that these cause, so an autoscaler must not follow it."""


def explained_by(causes: Collection[Verdict]) -> frozenset[Verdict]:
    """Returns what needs no finding of its own, because these causes explain it."""
    return frozenset().union(*(_CONSEQUENCES.get(cause, frozenset()) for cause in causes))
