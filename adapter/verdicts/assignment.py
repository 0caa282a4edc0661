"""How many members of a group can have a partition."""

from collections import Counter
from collections.abc import Collection, Sequence


def most_members(partitions: Collection[int], *, is_spread: bool) -> int:
    """`partitions`: of each topic. `is_spread`: topics are divided among the members together, as the assignors
    `uniform` (KIP-848's default), sticky and round robin do. The RangeAssignor, the default of classic groups, divides
    each topic by itself among the same first members."""
    return sum(partitions) if is_spread else max(partitions, default=0)


def is_spread(owners: Collection[Sequence[str]]) -> bool:
    """Whether an assignment shows that. `owners`: of each topic's partitions, the member of each one."""
    members = {owner for topic in owners for owner in topic}
    return len(members) > max(map(len, owners), default=0) or any(_is_uneven(topic, members) for topic in owners)


def _is_uneven(owners: Sequence[str], members: Collection[str]) -> bool:
    """With the RangeAssignor, the members' shares of a topic differ by at most one partition."""
    numbers = Counter(owners)
    return max(numbers.values(), default=0) - min((numbers[member] for member in members), default=0) > 1
