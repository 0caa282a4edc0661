"""The last commit that was seen for each partition of a topic, and what a snapshot recalls of it."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from adapter.columns import NO_COMMIT
from adapter.lag.snapshot import Snapshot


class LastCommit(NamedTuple):
    topic_id: str
    seen_at: int
    """In seconds since the epoch: when the adapter last had it in memory."""
    offsets: tuple[int, ...]
    """By partition; NO_COMMIT where none was seen, FORGOTTEN where none applies any more."""

    @property
    def counted(self) -> tuple[int, ...]:
        """Returns the offsets with NO_COMMIT also for those that are forgotten."""
        return tuple(max(offset, NO_COMMIT) for offset in self.offsets)

    def is_same(self, other: "LastCommit") -> bool:
        return self.topic_id == other.topic_id and self.counted == other.counted

    def merged(self, other: "LastCommit | None") -> "LastCommit":
        """Returns the newer of both (this one at the same time), with the other's commits where it has none."""
        if other is None:
            return self
        return other.filled_from(self) if other.seen_at > self.seen_at else self.filled_from(other)

    def filled_from(self, other: "LastCommit | None") -> "LastCommit":
        """Takes over commits of partitions for which none was seen, if the other is of the same topic."""
        if other is None or other.topic_id != self.topic_id:
            return self
        pairs = zip_longest(self.offsets, other.offsets, fillvalue=NO_COMMIT)
        return self._replace(offsets=tuple(theirs if own == NO_COMMIT else own for own, theirs in pairs))


def recalled(snapshot: Snapshot, cluster: str, known: Mapping[tuple[str, str, str], LastCommit]) -> Snapshot:
    """Fills in last commits of rows without one, unless the topic was created again since."""
    layout, last = snapshot.layout, snapshot.last_commit.copy()
    for (group, topic), rows in layout.pairs.items():
        one = known.get((cluster, group, topic))
        if one is not None and one.topic_id == layout.generations[topic]:
            part = last[rows]
            offsets = np.array(one.offsets[: len(part)], dtype=np.int64)
            part[: len(offsets)] = np.where(part[: len(offsets)] == NO_COMMIT, offsets, part[: len(offsets)])
    return replace(snapshot, last_commit=last)
