"""Pure: the consumers of one group, message by message, as Kafka's clients read.

The simulator of the reports lets a member read the same share of each of its partitions. That is right for how much is
read, and too even for how long single messages wait: a client hands out all that it has fetched of one partition before
it goes on to the next, so while a backlog is worked off, some partitions wait for the others. Here, as in the demo, a
fetch brings all that waits in a partition, and kafka-python fetches again once it reads the last partition that it has
fetched."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from adapter.verdicts.owners import Owners
from adapter.verdicts.recent import Counts

BATCH_SECONDS = 0.2
"""The work between two commits, as of `local.kafka.consumer`."""


class Readers:
    """Moves a group from batch to batch. Members divide the partitions anew whenever one comes or goes."""

    def __init__(self, capacity: float, owners: Owners, pause_seconds: float, chance: np.random.Generator) -> None:
        """`capacity`: messages per second of one member. `owners`: the member that has each partition (columns), by the
        number of members (rows). `pause_seconds`: for which a rebalance stops all members."""
        self._each, self._pause, self._owners, self._chance = (
            round(capacity * BATCH_SECONDS),
            pause_seconds,
            owners,
            chance,
        )
        self._written: list[deque[float]] = [deque() for _ in range(owners.shape[1])]
        self._ends = np.zeros(owners.shape[1], np.int64)
        self._members: Sequence[float] | None = None
        self._of: list[_Member] = []
        """By partition, who reads it."""
        self._stopped_until = 0.0
        self.committed_at: list[float] = []
        self.waits: list[float] = []
        """Of the messages whose offsets were committed at these times."""

    @property
    def ends(self) -> Counts:
        """The log end of each partition."""
        return self._ends.copy()

    @property
    def waiting(self) -> Counts:
        """Messages of each partition that are not committed."""
        return np.array([len(partition) for partition in self._written])

    def write(self, now: float, partitions: Sequence[int]) -> None:
        """Lets a message come in each of these partitions."""
        for partition in partitions:
            self._written[partition].append(now)
            self._ends[partition] += 1

    def read(self, now: float, members: Sequence[float]) -> None:
        """Lets the members with these ids work for as long as a batch takes, from `now` on."""
        if members != self._members:
            self._stopped_until = now if self._members is None else now + self._pause
            self._members = members
            self._divide(members)
        if now < self._stopped_until:
            return
        for member in dict.fromkeys(self._of):
            self._work(member, now)

    def _divide(self, members: Sequence[float]) -> None:
        """A member that keeps a partition keeps what it has fetched of it, and its place in the order."""
        before = {member.id: member for member in self._of}
        of = {each: before.get(each, _Member(each)) for each in members}
        owners = self._owners[len(members)].tolist() if members else []
        self._of = [of[members[owner]] for owner in owners]
        for member in of.values():
            member.fetched = deque(it for it in member.fetched if self._of[it[0]] is member)

    def _fetch(self, member: "_Member") -> None:
        """Fetches from each partition whose fetched messages have all been read, in any order."""
        has_some = {partition for partition, _ in member.fetched}
        for partition in self._chance.permutation(len(self._of)).tolist():
            if self._of[partition] is member and partition not in has_some and self._written[partition]:
                member.fetched.append((partition, len(self._written[partition])))

    def _work(self, member: "_Member", now: float) -> None:
        if not member.fetched:
            self._fetch(member)
        most, written, begun = self._each + member.left, list[float](), 0
        while len(written) < most and member.fetched:
            partition, number = member.fetched.popleft()
            count = min(number, most - len(written))
            written += [self._written[partition].popleft() for _ in range(count)]
            if number > count:
                member.fetched.appendleft((partition, number - count))
                begun = 1
        if len(member.fetched) == begun:
            self._fetch(member)
        member.left = min(most - len(written), self._each)
        committed_at = now + BATCH_SECONDS * min(len(written) / self._each, 1.0)
        self.committed_at += [committed_at] * len(written)
        self.waits += [committed_at - at for at in written]


@dataclass(slots=True, eq=False)
class _Member:
    id: float
    fetched: deque[tuple[int, int]] = field(default_factory=deque)
    """Partitions and how many messages of them it has, in the order in which it reads them."""
    left: int = 0
    """Messages that it could have read in its latest batch if more had been there: it catches up."""
