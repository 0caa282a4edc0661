"""What rows remember, as a value, and what a value recalls to rows."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from adapter.columns import NEVER, NO_COMMIT
from adapter.lag.layout import Layout
from adapter.lag.snapshot import NOT_ONE, Snapshot
from adapter.memory.value import ClusterMemory, LastCommit, TopicMemory


def remembered(
    snapshot: Snapshot, to_epoch: float, is_wanted: Callable[[str], bool]
) -> dict[str, dict[str, TopicMemory]]:
    """Returns what rows of wanted groups remember; `to_epoch` is how far the epoch's seconds are ahead of ours."""
    layout = snapshot.layout
    seen_at = np.where(snapshot.last_commit_at > NEVER, snapshot.last_commit_at + to_epoch, 0).astype(np.int64)
    topics: dict[str, dict[str, TopicMemory]] = {}
    for (group, name), rows in layout.pairs.items():
        if is_wanted(group) and seen_at[rows].any():
            columns = seen_at[rows], snapshot.last_commit[rows], snapshot.has_marker[rows]
            commits = tuple(map(LastCommit, *(column.tolist() for column in columns)))
            topics.setdefault(group, {})[name] = TopicMemory(layout.generations[name], commits)
    return topics


def recalled(snapshot: Snapshot, memory: ClusterMemory, to_epoch: float) -> Snapshot:
    """Fills in the commits that were seen later than those of the rows, unless the topic was created again since, and
    which partitions the topic did not have when it was remembered."""
    layout = snapshot.layout
    last, at = snapshot.last_commit.copy(), snapshot.last_commit_at.copy()
    is_added, is_marker = snapshot.is_added.copy(), np.zeros(len(layout), dtype=bool)
    for topic, rows in _known_pairs(layout, memory):
        size = min(len(topic.commits), rows.stop - rows.start)
        own = slice(rows.start, rows.start + size)
        seen_at, offset, has_marker = (np.array(column) for column in zip(*topic.commits[:size], strict=True))
        is_later = (seen_at > 0) & (seen_at - to_epoch > at[own])
        last[own] = np.where(is_later, offset, last[own])
        at[own] = np.where(is_later, seen_at - to_epoch, at[own])
        is_marker[own] = has_marker & (last[own] == offset)
        is_added[own.stop : rows.stop] = True
    is_same = last == snapshot.last_commit
    return replace(
        snapshot,
        last_commit=last,
        last_commit_at=at,
        has_marker=is_marker | (snapshot.has_marker & is_same),
        marker_since=np.where(is_same, snapshot.marker_since, NOT_ONE),
        # A response may lack a topic for a while, for instance without its ACL; the same commits are no movement then.
        progress=np.where(is_same | (snapshot.progress != NO_COMMIT), snapshot.progress, last),
        is_added=is_added & np.isneginf(at),
    )


def _known_pairs(layout: Layout, memory: ClusterMemory) -> list[tuple[TopicMemory, slice]]:
    return [
        (topic, rows)
        for group in layout.spans.keys() & memory.keys()
        for name, topic in memory[group].topics.items()
        if (rows := layout.pairs.get((group, name))) is not None
        and topic.topic_id == layout.generations[name]
        and topic.commits
        and rows.start < rows.stop
    ]
