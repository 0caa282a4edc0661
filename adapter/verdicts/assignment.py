"""How many members of a group can have a partition. The reports, the metric of replicas and whatever limits replicas go
by this rule."""

import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

NO_LIMIT = sys.maxsize
UNKNOWN = -1
"""Members that are not known."""


class Sharing(StrEnum):
    """How a group's members share the partitions of several topics."""

    BY_TOPIC = "by_topic"
    """Each topic is divided by itself among the same first members, as the RangeAssignor does."""
    TOGETHER = "together"
    """All partitions are divided among the members together, as the assignors uniform, sticky and round robin do."""
    SEVERAL_READERS = "several_readers"
    """Several members may read the same partition (share groups)."""


SHARING_BY_ASSIGNOR: Mapping[str, Sharing] = MappingProxyType(
    {
        "range": Sharing.BY_TOPIC,
        **dict.fromkeys(("uniform", "roundrobin", "sticky", "cooperative-sticky"), Sharing.TOGETHER),
    }
)
"""By the name of the assignor that the members have chosen."""
SHARING_BY_KIND: Mapping[str, Sharing] = MappingProxyType(
    {"consumer": Sharing.TOGETHER, "share": Sharing.SEVERAL_READERS}
)
"""Until a group's members have been described: by the default assignor of its kind, where it is not BY_TOPIC."""


def most_members(partitions: Collection[int], sharing: Sharing) -> int:
    """`partitions`: of each topic. NO_LIMIT if any number of members can have one."""
    match sharing:
        case Sharing.BY_TOPIC:
            return max(partitions, default=0)
        case Sharing.TOGETHER:
            return sum(partitions)
        case Sharing.SEVERAL_READERS:
            return NO_LIMIT


def is_spread(owners: Collection[Sequence[str]]) -> bool:
    """Whether an assignment shows that topics are divided together. `owners`: of each topic's partitions, the member of
    each one."""
    members = {owner for topic in owners for owner in topic}
    return len(members) > max(map(len, owners), default=0) or any(_is_uneven(topic, members) for topic in owners)


def _is_uneven(owners: Sequence[str], members: Collection[str]) -> bool:
    """With the RangeAssignor, the members' shares of a topic differ by at most one partition."""
    numbers = Counter(owners)
    return max(numbers.values(), default=0) - min((numbers[member] for member in members), default=0) > 1
