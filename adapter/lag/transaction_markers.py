"""Pure: the marker that a transaction leaves behind the last record, and that some applications never pass.

A transaction ends with a marker, which takes an offset of its own. An application that commits the last record's offset
plus one stands before the marker for ever: log end - committed is 1 though nothing is left to read, and would keep a
consumer running. A client that commits its own position passes the marker.

From outside a marker cannot be told from a record. So a 1 is believed to be a marker only in groups that a rule calls
`isolation: read_committed`, and only after commit and end have both stood still for as long as a member may hold a
record (`max.poll.interval.ms`: whoever holds one for longer is thrown out of its group) while the group was Stable all
the time: somebody was there to read it, and did not. Once found it stays while both stand, also when the group is Empty
then, or an autoscaler at zero would wake it again and again; any movement ends it. An application that tries its last
record again and again for longer than that without leaving its group is told to have read it.

Only lag gives 0 for it. Offsets stay as they were read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adapter.columns import NOT_KNOWN, Flags, Offsets, Seconds
from adapter.lag.layout import Layout, same_rows
from adapter.lag.snapshot import Snapshot, State

RESIDUE_SECONDS = 300.0
"""Kafka's default for max.poll.interval.ms."""
_MARKER = 1
_NOT_STANDING = np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Residue:
    """One entry per row of the layout."""

    layout: Layout
    committed: Offsets
    log_end: Offsets
    since: Seconds
    """Since when both have stood, the group being Stable, in monotonic seconds."""
    is_found: Flags
    """What is left is a marker."""


def no_residue(layout: Layout) -> Residue:
    rows = len(layout)
    unknown = np.full(rows, NOT_KNOWN, dtype=np.int64)
    return Residue(layout, unknown, unknown, np.full(rows, _NOT_STANDING), np.zeros(rows, dtype=bool))


def followed(
    known: Residue, snapshot: Snapshot, may_have: Flags, is_stable: Flags, now: float, after: float
) -> Residue:
    """What is known after a cycle; `may_have`: rows of groups that a rule calls so, `is_stable`: of Stable ones."""
    known = _moved(known, snapshot.layout)
    is_one = may_have & (snapshot.state != State.AHEAD) & (snapshot.log_end - snapshot.committed == _MARKER)
    stands = is_one & (snapshot.committed == known.committed) & (snapshot.log_end == known.log_end)
    is_found = stands & known.is_found
    since = np.where(stands & is_stable, np.minimum(known.since, now), np.where(is_one & is_stable, now, _NOT_STANDING))
    # What stood still is proven by the reading that ends it, not by the lack of one.
    is_read = (snapshot.state == State.OK) & (snapshot.cause == 0)
    is_found |= stands & is_read & is_stable & (now - since >= after)
    return Residue(snapshot.layout, snapshot.committed, snapshot.log_end, since, is_found)


def _moved(known: Residue, layout: Layout) -> Residue:
    if known.layout is layout:
        return known
    moved = no_residue(layout)
    here, there = same_rows(layout, known.layout)
    committed, log_end = moved.committed.copy(), moved.log_end.copy()
    committed[here], log_end[here] = known.committed[there], known.log_end[there]
    moved.since[here], moved.is_found[here] = known.since[there], known.is_found[there]
    return Residue(layout, committed, log_end, moved.since, moved.is_found)
