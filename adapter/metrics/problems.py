"""Why a value is not served: one type, which errors, warnings and the `Status` of a refused read render."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from adapter.errors import AdapterError


class Reason(StrEnum):
    """A closed set of words for machines, like the reasons of Kubernetes' conditions."""

    CLUSTER_UNKNOWN = "ClusterUnknown"
    GROUP_UNKNOWN = "GroupUnknown"
    TOPIC_UNKNOWN = "TopicUnknown"
    NOTHING_SELECTED = "NothingSelected"
    """Groups match, but none of their partitions."""
    NO_COMMIT = "NoCommit"
    """No selected partition has a commit, which the metric needs."""
    NOTHING_TO_LOSE = "NothingToLose"
    """Everything is consumed, so retention can delete nothing that is not."""
    NOT_CONFIGURED = "NotConfigured"
    """The settings say nothing of the group that the metric needs."""
    NOT_ONE_GROUP = "NotOneGroup"
    """The metric is of one group in one cluster."""
    TOPIC_MISSING = "TopicMissing"
    """A topic that the settings or an HPA list for the group does not exist."""
    TOPIC_HIDDEN = "TopicHidden"
    """The adapter may not describe the topic."""
    GROUP_MAY_EXIST = "GroupMayExist"
    """Only a broker that does not answer can know the group."""
    NOT_READ_YET = "NotReadYet"
    NOT_READ_SINCE = "NotReadSince"
    """The last good value, of `Problem.since`, is too old."""
    IN_DOUBT = "InDoubt"
    """The group was last described as Stable at `Problem.since`, which is too long ago to rely on."""
    MOVEMENT_UNKNOWN = "MovementUnknown"
    """The group's offsets have not been watched for long enough to say whether, or how fast, they move."""
    CAPACITY_UNKNOWN = "CapacityUnknown"
    """Nothing shows yet what one member of the group can read."""
    FORECAST_UNKNOWN = "ForecastUnknown"
    """The history does not show how the load of the group goes on."""
    LOWER_BOUND = "LowerBound"
    """The oldest waiting message came before the log ends that are remembered, or in the gap that a restart has left
    between them, so its age has only a lower bound."""
    COMMIT_BEYOND_END = "CommitBeyondEnd"
    START_BEYOND_END = "StartBeyondEnd"
    MEMBERS_UNKNOWN = "MembersUnknown"
    """Which partitions the members of the group own is not known, or not any more."""
    PODS_UNKNOWN = "PodsUnknown"
    """The pods of the namespace are not watched, or were not listed yet."""
    NO_MEMBER = "NoMember"
    """No selected pod has a member of the group."""


ABSENT = frozenset(
    {
        Reason.CLUSTER_UNKNOWN,
        Reason.GROUP_UNKNOWN,
        Reason.TOPIC_UNKNOWN,
        Reason.NOTHING_SELECTED,
        Reason.NO_COMMIT,
        Reason.NOTHING_TO_LOSE,
        Reason.NOT_CONFIGURED,
        Reason.NOT_ONE_GROUP,
        Reason.TOPIC_MISSING,
        Reason.NO_MEMBER,
    }
)
"""There is no value; with the other reasons, it is not known well enough."""


def hidden_group(group: str) -> str:
    return f"the adapter may not describe group {group} (ACL Describe on the group is missing)"


def hidden_topic(topic: str) -> str:
    return f"the adapter may not describe topic {topic} (ACL Describe on the topic is missing)"


def is_hidden(text: str) -> bool:
    """Whether it contains what `hidden_group` or `hidden_topic` returns."""
    return "(ACL Describe on the " in text


class Problem(NamedTuple):
    """A tuple, because a cycle may create tens of thousands."""

    reason: Reason
    text: str
    """For people. It names nothing that the reader of the view may not read."""
    cluster: str = ""
    group: str = ""
    topic: str = ""
    partition: int | None = None
    since: float | None = None
    """In seconds since the epoch."""

    @property
    def place(self) -> str:
        """The labels that it is about, such as `cluster=main,group=billing`."""
        labels = {"cluster": self.cluster, "group": self.group, "topic": self.topic, "partition": self.partition}
        return ",".join(f"{key}={value}" for key, value in labels.items() if value not in ("", None))


class Refused(AdapterError):
    """A read without a value. The text renders the first of the problems."""

    def __init__(self, text: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(text)
        self.problems = tuple(problems)


class NoMatch(Refused):
    """No partition, group or topic matches."""


class ValueUnavailable(Refused):
    """A part of the value is unknown, too old or in doubt."""


def refused(text: str, problems: Sequence[Problem]) -> Refused:
    return (NoMatch if problems[0].reason in ABSENT else ValueUnavailable)(text, problems)
