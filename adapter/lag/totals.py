"""Sums the rows per group and topic once per snapshot, so that a query costs nothing per partition."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.columns import NEVER, Indexes, Offsets
from adapter.lag.snapshot import Snapshot
from adapter.lag.values import Treatment, Values

NO_VALUE = -1
"""No partition has a value: none has a commit."""
LARGEST = (2**63 - 1) // 1000
"""The autoscaler counts thousandths in 64 bits; larger values would overflow."""


@dataclass(frozen=True, slots=True)
class Totals:
    """One entry per group and topic, in the order of the rows. Plain lists, because they are read entry by entry.

    Values are in thousandths."""

    group: list[int]
    """Code in the layout's names, like `topic`."""
    topic: list[int]
    lag: list[int]
    lag_max: list[int]
    lead_min: list[int]
    """Over the partitions with a commit; NO_VALUE if there are none."""
    uncommitted: list[int]
    oldest: list[float]
    """When the oldest part was received, in monotonic seconds; NEVER if a part is unknown."""
    oldest_commit: list[float]
    """Like `oldest`, for whether commits exist: a commit beyond the log end does."""
    is_stale: list[bool]
    """Outside of the group's rule, or abandoned."""
    is_asked: list[bool]
    was_committed: list[bool]
    """Whether the group has, or once had, a commit for the topic."""
    is_in_doubt: list[bool]
    spans: Mapping[int, range]

    def __len__(self) -> int:
        return len(self.group)


NO_TOTALS = Totals([], [], [], [], [], [], [], [], [], [], [], [], {})


def totals_of(snapshot: Snapshot, treatment: Treatment, values: Values, rows: Indexes) -> Totals:
    """Returns totals over `rows`, which are sorted like the layout."""
    layout = snapshot.layout
    starts = np.flatnonzero(np.diff(layout.pair[rows], prepend=-1))
    if not len(starts):
        return NO_TOTALS
    received = np.where(values.is_known[rows], snapshot.received[rows], NEVER)
    known_commit = np.where(values.is_commit_known[rows], snapshot.received[rows], NEVER)
    lead = np.where(values.has_commit[rows], values.lead[rows], np.iinfo(np.int64).max)
    lead_min = np.minimum.reduceat(lead, starts)
    first = rows[starts]
    return Totals(
        group=layout.group[first].tolist(),
        topic=layout.topic[first].tolist(),
        lag=_milli(_sums(values.lag[rows], starts)).tolist(),
        lag_max=_milli(np.maximum.reduceat(values.lag[rows], starts)).tolist(),
        lead_min=np.where(lead_min == np.iinfo(np.int64).max, NO_VALUE, _milli(lead_min)).tolist(),
        uncommitted=_milli(np.add.reduceat(~values.has_commit[rows], starts, dtype=np.int64)).tolist(),
        oldest=np.minimum.reduceat(received, starts).tolist(),
        oldest_commit=np.minimum.reduceat(known_commit, starts).tolist(),
        is_stale=(treatment.is_outside | treatment.is_abandoned)[first].tolist(),
        is_asked=treatment.is_asked[first].tolist(),
        was_committed=np.logical_or.reduceat(snapshot.last_commit_at[rows] > NEVER, starts).tolist(),
        is_in_doubt=treatment.is_in_doubt[first].tolist(),
        spans=_spans(layout.group[first]),
    )


def _sums(lag: Offsets, starts: Indexes) -> Offsets:
    """Saturates instead of overflowing."""
    is_too_large = np.add.reduceat(lag.astype(np.float64), starts) > LARGEST
    return np.where(is_too_large, LARGEST, np.add.reduceat(lag, starts))


def _milli(values: Offsets) -> Offsets:
    return 1000 * np.minimum(values, LARGEST)


def _spans(group: NDArray[np.int32]) -> dict[int, range]:
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.append(begins[1:], len(group))
    return {
        code: range(begin, end)
        for code, begin, end in zip(group[begins].tolist(), begins.tolist(), ends.tolist(), strict=True)
    }
