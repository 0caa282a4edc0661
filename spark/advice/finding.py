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
    asks: str | None = None
    """What a person does about it; empty: nothing; None: what `TO_DO` or `IN_HINDSIGHT` have."""
    is_cause: bool = False
    """Whether it explains what follows from it at the end of the range, which is then no finding of its own."""
    since: datetime | None = None
    """When it began, or the beginning of what was seen of it or is compared; None: it is true of the whole range."""
    until: datetime | None = None
    """When it ended; None: it still goes on, or is no incident."""
    may_return: bool = False
    """Whether it is over as far as it was seen, and what it came from may return each week."""
    subject: str = ""
    """What of the group it is about, such as `partition 3 of orders`; empty: the whole group."""
    evidence: str = ""
    """What it rests on, such as `12 of 336 hours`; empty: `words` say it."""

    @property
    def is_over(self) -> bool:
        return self.until is not None

    @property
    def is_incident(self) -> bool:
        """Whether it has a beginning, and an end or none yet."""
        return self.code not in OF_THE_RANGE

    @property
    def is_hindsight(self) -> bool:
        """Whether nothing is to be done about it now. An event that nobody meant may come again."""
        return self.is_over and self.code not in EVENTS

    @property
    def state(self) -> str:
        """Of an incident; else empty."""
        return ("over" if self.is_over else "still") if self.is_incident else ""

    @property
    def to_do(self) -> str:
        """What a person does about it; empty: nothing, or it depends."""
        if self.asks is not None:
            return self.asks
        return _in_hindsight(self) if self.is_over else TO_DO.get(self.code, "")


def _in_hindsight(finding: Finding) -> str:
    """What is only noted asks for nothing."""
    return IN_HINDSIGHT.get(finding.code, "") if finding.severity > Severity.NOTE else ""


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
    "more partitions, or make its work faster.",
    Verdict.HOT_PARTITION: "Spread the keys over the partitions; more replicas do not help.",
    Verdict.ABOVE_THRESHOLD: "Apply the recommended HPA.",
    Verdict.IDLE_MEMBERS: "Do not request more replicas than partitions.",
    REWINDS: "If nobody meant it, look for what sets its offsets.",
    SKIPS: "Keep messages until they are read; where nothing was deleted, look for what sets its offsets.",
    RECREATIONS: "If nobody meant it, find out who deletes topics.",
    Verdict.INCOMPLETE: "See the coverage below.",
}
"""Of each finding that asks for something, by its code."""
IN_HINDSIGHT = {
    Verdict.STUCK: "Nothing now. To find the cause, see what the consumers logged at that time.",
    Verdict.SLOW_PARTITION: "Nothing now. To find the cause, see what its member logged at that time.",
    Verdict.HOT_PARTITION: "Nothing now. To find the cause, see which keys had the most messages at that time.",
    Verdict.UNSTEADY_MEMBERS: "Nothing now. To find the cause, see the restarts and events of the pods at that time.",
    Verdict.LAG_WITHOUT_MEMBERS: "Nothing now: its members are back.",
    **{code: TO_DO[code] for code in (REWINDS, SKIPS, RECREATIONS)},
}
"""As `TO_DO`, of what is over."""
OF_THE_RANGE = {
    Verdict.NO_LAG: "the lag was never known in the range",
    Verdict.RARE_COMMITS: "how the group commits, over all samples",
    Verdict.READS_LATE: "messages wait as long at all times",
    Verdict.INCOMPLETE: "the samples of the range are counted",
    LITTLE_DATA: "the covered time of the range is counted",
    "barely_saturated": "the windows of the range are counted",
    "samples_gone": "of the range, a part is left",
    "nothing_produced": "nothing was produced in the whole range",
    "growth": "the last seven days are compared with the seven before",
    "many_changes": "it is about the recommended HPA",
}
"""What is no incident, and why it has no beginning and no end of its own."""
