"""How often the groups of a cluster commit, and how much, measured from the views of successive cycles."""

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
    is_bound: bool = False
    """Whether every read has shown a commit, so that they may come more often."""


@dataclass(slots=True)
class _Seen:
    """Of each row: its latest commit, the first and the last time at which it moved, and the reads in between."""

    layout: Layout
    committed: Offsets
    moves: NDArray[np.int64]
    first: Seconds
    last: Seconds
    begin: Offsets
    read_at: Seconds
    reads: NDArray[np.int64]
    """Since the first move."""
    reads_at_last: NDArray[np.int64]
    """The same at the last move."""


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
        spans, pauses = seen.last[rows] - seen.first[rows], seen.moves[rows] - 1
        passed = seen.committed[rows] - seen.begin[rows]
        fastest = int((spans / pauses).argmin())
        is_bound = bool(seen.reads_at_last[rows][fastest] <= pauses[fastest])
        return CommitPace(float((spans / pauses)[fastest]), float((passed / spans).sum()), is_bound)


def _begun(view: ClusterView) -> _Seen:
    size = len(view.layout)
    times = np.zeros(size)
    counts = [np.zeros(size, np.int64) for _ in range(3)]
    committed, received = view.snapshot.committed.copy(), view.snapshot.received.copy()
    return _Seen(view.layout, committed, counts[0], times, times.copy(), committed.copy(), received, *counts[1:])


def _add(seen: _Seen, view: ClusterView) -> None:
    committed, received = view.snapshot.committed, view.snapshot.received
    has_moved = (committed > seen.committed) & (seen.committed != NO_COMMIT)
    is_first = has_moved & (seen.moves == 0)
    seen.reads += (has_moved | (received > seen.read_at)) & (seen.moves > 0)
    seen.reads_at_last[has_moved] = seen.reads[has_moved]
    seen.read_at = received.copy()
    seen.first[is_first], seen.begin[is_first] = received[is_first], committed[is_first]
    seen.last[has_moved] = received[has_moved]
    seen.moves += has_moved
    seen.committed = np.where(committed == NO_COMMIT, seen.committed, committed)
