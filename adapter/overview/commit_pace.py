"""How often the groups of a cluster commit, and how much: seen by whoever looks at each cycle's view."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapter.columns import NO_COMMIT, Offsets, Seconds
from adapter.lag.layout import Layout
from adapter.metrics.store import ClusterView


@dataclass(frozen=True, slots=True)
class CommitPace:
    seconds: float
    """Between two commits of the partition that is committed most often."""
    per_second: float
    """Messages that all partitions' commits pass."""


@dataclass(slots=True)
class _Seen:
    """Of each row: its latest commit, and the first and the last time at which it moved."""

    layout: Layout
    committed: Offsets
    moves: NDArray[np.int64]
    first: Seconds
    last: Seconds
    begin: Offsets


@dataclass(slots=True)
class CommitWatch:
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def look(self, views: Iterable[ClusterView]) -> None:
        """Call it at least once per cycle. What was seen before the rows changed is forgotten."""
        for view in views:
            seen = self._seen.get(view.cluster)
            if seen is None or seen.layout is not view.layout:
                self._seen[view.cluster] = _begun(view)
            else:
                _add(seen, view)

    def of(self, view: ClusterView, group: str) -> CommitPace | None:
        """Returns None unless at least three moves of a commit have been seen."""
        seen = self._seen.get(view.cluster)
        if seen is None or group not in seen.layout.spans:
            return None
        span = seen.layout.spans[group]
        rows = np.arange(span.start, span.stop)
        rows = rows[seen.moves[rows] > 2]
        if not len(rows):
            return None
        spans = seen.last[rows] - seen.first[rows]
        passed = seen.committed[rows] - seen.begin[rows]
        return CommitPace(float((spans / (seen.moves[rows] - 1)).min()), float((passed / spans).sum()))


def _begun(view: ClusterView) -> _Seen:
    size = len(view.layout)
    times = np.zeros(size)
    committed = view.snapshot.committed.copy()
    return _Seen(view.layout, committed, np.zeros(size, np.int64), times, times.copy(), committed.copy())


def _add(seen: _Seen, view: ClusterView) -> None:
    committed, received = view.snapshot.committed, view.snapshot.received
    has_moved = (committed > seen.committed) & (seen.committed != NO_COMMIT)
    is_first = has_moved & (seen.moves == 0)
    seen.first[is_first], seen.begin[is_first] = received[is_first], committed[is_first]
    seen.last[has_moved] = received[has_moved]
    seen.moves += has_moved
    seen.committed = np.where(committed == NO_COMMIT, seen.committed, committed)
