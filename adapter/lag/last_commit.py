"""The last commit that was seen for each partition of a topic, and what a snapshot recalls of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from adapter.columns import NO_COMMIT
from adapter.lag.snapshot import Snapshot


class LastCommit(NamedTuple):
    topic_id: str
    seen_at: int
    """In seconds since the epoch: when the adapter last had it in memory."""
    offsets: tuple[int, ...]
    """By partition; NO_COMMIT where none was seen."""

    def is_same(self, other: "LastCommit") -> bool:
        return (self.topic_id, self.offsets) == (other.topic_id, other.offsets)


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
