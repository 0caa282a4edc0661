"""Pure: what is said about a group: how urgent it is, in words, and what a person does about it."""

from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """In the order in which a person should look."""

    URGENT = 3
    WATCH = 2
    NOTE = 1
    FINE = 0

    @property
    def word(self) -> str:
        return ("fine", "note", "watch", "act now")[self]


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    severity: Severity
    brief: str
    """A few words, for a table."""
    words: str
    asks: str = ""
    """What a person does about it; overrides `TO_DO[code]`."""
    is_over: bool = False
    """Whether it had ended before the last hour."""
    is_cause: bool = False
    """Whether it explains what follows from it at the end of the range, which is then no finding of its own."""

    @property
    def to_do(self) -> str:
        """What a person does about it; empty: nothing, or it depends."""
        return self.asks or TO_DO.get(self.code, "")


TO_DO = {
    "no_lag": "See the coverage below, and what the adapter says of this group.",
    "stuck": "Look for a message that cannot be processed; more replicas do not help.",
    "uncommitted": "See whether a member reads them. With offsetReset: latest, what was never committed counts 0.",
    "lag_without_members": "Start its consumers, or delete the group.",
    "falling_behind": "Give it more replicas; where it has one for each partition, more partitions or faster work.",
    "hot_partition": "Spread the keys over the partitions; more replicas do not help.",
    "above_threshold": "Apply the recommended HPA.",
    "idle_members": "Do not request more replicas than partitions.",
    "rewinds": "If nobody meant it, look for what sets its offsets.",
    "skips": "Keep messages until they are read; where nothing was deleted, look for what sets its offsets.",
    "recreations": "If nobody meant it, find out who deletes topics.",
    "incomplete": "See the coverage below.",
}
"""Of each finding that asks for something, by its code."""
