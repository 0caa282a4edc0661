"""Records when each partition's commits last moved, which proves that a member reads the topic.

For a share group, progress is its start offset. A commit that expires or is deleted is no progress."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from adapter.columns import NEVER, NO_COMMIT, Flags, Offsets, Seconds
from adapter.lag.layout import Layout, carried, same_rows

_NOT_SEEN = -2
"""The group had not been read when the row was added, so its first commit may be old."""
_MOST_LEFT = 10_000
"""Bound on remembered pairs of group and topic without rows; the oldest are dropped first."""


@dataclass(frozen=True, slots=True, eq=False)
class Movement:
    """One entry per row of the layout."""

    layout: Layout
    progress: Offsets
    moved_at: Seconds
    """When the latest change was received; NEVER if none was seen."""
    left: Mapping[tuple[str, str], tuple[str | None, Offsets]] = field(default_factory=dict)
    """Group and topic without rows -> the topic's id and latest progress per partition. A response may lack a topic for
    a while, for instance without its ACL; the same commits afterwards are no progress."""

    def in_layout(self, layout: Layout, groups_read: Collection[str]) -> "Movement":
        """New rows of `groups_read`, the groups read before, are known to have had no commit."""
        moved = replace(no_movement(layout), left=self._left(layout))
        was_read = np.array([group in groups_read for group in layout.groups], dtype=bool)
        moved.progress[was_read[layout.group]] = NO_COMMIT
        carried(self, moved, same_rows(layout, self.layout))
        for pair in self.left.keys() & layout.pairs.keys():
            generation, progress = self.left[pair]
            rows = moved.progress[layout.pairs[pair]]
            if generation == layout.generations[pair[1]]:
                rows[: len(progress)] = progress[: len(rows)]
        return moved

    def _left(self, layout: Layout) -> dict[tuple[str, str], tuple[str | None, Offsets]]:
        gone = {
            pair: (self.layout.generations[pair[1]], self.progress[rows])
            for pair, rows in self.layout.pairs.items()
            if pair not in layout.pairs
        }
        left = {
            pair: known
            for pair, known in {**self.left, **gone}.items()
            if pair[0] in layout.spans and pair not in layout.pairs
        }
        return dict(islice(left.items(), max(len(left) - _MOST_LEFT, 0), None))

    def followed(self, progress: Offsets, received: Seconds, is_read: Flags) -> "Movement":
        """Returns the movement after a cycle; `is_read` marks the rows whose progress was read."""
        is_other = (progress != self.progress) & (progress != NO_COMMIT) & (self.progress != _NOT_SEEN)
        return replace(
            self,
            progress=np.where(is_read, progress, self.progress),
            moved_at=np.where(is_read & is_other, received, self.moved_at),
        )


def no_movement(layout: Layout) -> Movement:
    rows = len(layout)
    return Movement(layout, np.full(rows, _NOT_SEEN, dtype=np.int64), np.full(rows, NEVER))
