"""Pure: what is said about a group: how urgent it is, in words, and what a person does about it."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from adapter.verdicts.causes import Verdict
from spark.tables.contract import EVENTS

RESETS, REWINDS, SKIPS, RECREATIONS = EVENTS
"""Columns of the hours, and the codes of what is found in them."""
LITTLE_DATA = "little_data"
"""The code of less than a day of data."""


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
    is_cause: bool = False
    """Whether it explains what follows from it at the end of the range, which is then no finding of its own."""
    since: datetime | None = None
    """When it began, or the beginning of what was seen of it; None: it is no incident, but true of the whole range."""
    until: datetime | None = None
    """When it ended; None: it still goes on."""
    subject: str = ""
    """What of the group it is about, such as `partition 3 of orders`; empty: the whole group."""
    evidence: str = ""
    """What it rests on, such as `12 of 336 hours`; empty: `words` say it."""

    @property
    def is_over(self) -> bool:
        return self.until is not None

    @property
    def to_do(self) -> str:
        """What a person does about it; empty: nothing, or it depends."""
        return self.asks or TO_DO.get(self.code, "")


TO_DO = {
    Verdict.NO_LAG: "See the coverage below, and what the adapter says of this group.",
    Verdict.UNREAD_TOPIC: "If the group should read it, subscribe to it again; else delete the group's offsets for it.",
    Verdict.UNSTEADY_MEMBERS: "Find out why members leave: restarts of pods, work longer than max.poll.interval.ms, "
    "or an HPA that changes the replicas too often.",
    Verdict.SLOW_PARTITION: "Look at that partition's messages, and at its member; more replicas do not help.",
    Verdict.READS_LATE: "If that is meant, agree on a longer wait (maxWait).",
    Verdict.STUCK: "Look for a message that cannot be processed; more replicas do not help.",
    Verdict.UNCOMMITTED: "See whether a member reads them. "
    "With offsetReset: latest, what was never committed counts 0.",
    Verdict.LAG_WITHOUT_MEMBERS: "Start its consumers, or delete the group.",
    Verdict.FALLING_BEHIND: "Give it more replicas; where it has one for each partition, "
    "more partitions or faster work.",
    Verdict.HOT_PARTITION: "Spread the keys over the partitions; more replicas do not help.",
    Verdict.ABOVE_THRESHOLD: "Apply the recommended HPA.",
    Verdict.IDLE_MEMBERS: "Do not request more replicas than partitions.",
    REWINDS: "If nobody meant it, look for what sets its offsets.",
    SKIPS: "Keep messages until they are read; where nothing was deleted, look for what sets its offsets.",
    RECREATIONS: "If nobody meant it, find out who deletes topics.",
    Verdict.INCOMPLETE: "See the coverage below.",
}
"""Of each finding that asks for something, by its code."""
