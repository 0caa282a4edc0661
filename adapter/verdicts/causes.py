"""What can be wrong with a group, and which of it is one incident: the cause is reported, its consequences are not."""

from collections.abc import Collection, Mapping
from enum import StrEnum


class Verdict(StrEnum):
    """In the order of cause: an earlier one can explain a later one, never the other way round."""

    STUCK = "stuck"
    """Members are there and messages wait, but commits do not move."""
    LAG_WITHOUT_MEMBERS = "lag_without_members"
    UNCOMMITTED = "uncommitted"
    """Partitions without a commit."""
    NO_LAG = "no_lag"
    """The lag was never known."""
    HOT_PARTITION = "hot_partition"
    IDLE_MEMBERS = "idle_members"
    """More members than partitions."""
    FALLING_BEHIND = "falling_behind"
    ABOVE_THRESHOLD = "above_threshold"
    RARE_COMMITS = "rare_commits"
    INCOMPLETE = "incomplete"
    """Samples of the lag are missing."""


_CONSEQUENCES: Mapping[Verdict, frozenset[Verdict]] = {
    Verdict.STUCK: frozenset({Verdict.FALLING_BEHIND, Verdict.ABOVE_THRESHOLD, Verdict.RARE_COMMITS}),
    Verdict.LAG_WITHOUT_MEMBERS: frozenset({Verdict.FALLING_BEHIND, Verdict.ABOVE_THRESHOLD, Verdict.RARE_COMMITS}),
    Verdict.UNCOMMITTED: frozenset({Verdict.NO_LAG, Verdict.INCOMPLETE}),
    Verdict.NO_LAG: frozenset({Verdict.INCOMPLETE}),
    Verdict.HOT_PARTITION: frozenset({Verdict.FALLING_BEHIND, Verdict.ABOVE_THRESHOLD}),
    Verdict.FALLING_BEHIND: frozenset({Verdict.ABOVE_THRESHOLD}),
}

REPLICAS_DO_NOT_HELP = frozenset({Verdict.STUCK, Verdict.HOT_PARTITION})
"""Replicas do not reduce the lag that these cause, so an autoscaler must not follow it."""


def explained_by(causes: Collection[Verdict]) -> frozenset[Verdict]:
    """Returns what needs no finding of its own, because these causes explain it."""
    return frozenset().union(*(_CONSEQUENCES.get(cause, frozenset()) for cause in causes))
