"""Recognises a transaction marker behind the last record, which some applications never pass.

A transaction ends with a marker that has its own offset. An application that commits the last record's offset plus one
stays before the marker: log end - committed is 1 although nothing is left to read, and would keep a consumer running. A
client that commits its own position passes the marker.

From outside, a marker looks like a record. So a lag of 1 counts as a marker only in groups with `isolation:
read_committed`, and only after commit and end have not moved for as long as a member may hold a record
(`max.poll.interval.ms`) while the group was Stable throughout. A marker stays recognised while neither moves, even if
the group becomes Empty; otherwise an autoscaler at zero would scale it up again and again. An application that retries
its last record for longer without leaving its group counts as having read it.

Only lag becomes 0. Offsets stay as they were read."""

from dataclasses import dataclass

import numpy as np

from adapter.columns import NOT_KNOWN, Flags, Offsets, Seconds
from adapter.lag.layout import Layout, same_rows
from adapter.lag.snapshot import Snapshot, State

RESIDUE_SECONDS = 300.0
"""Kafka's default for max.poll.interval.ms."""
_MARKER = 1
_MOVING = np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Residue:
    layout: Layout
    committed: Offsets
    log_end: Offsets
    since: Seconds
    """Since when neither has moved while the group was Stable, in monotonic seconds."""
    is_found: Flags


def no_residue(layout: Layout) -> Residue:
    rows = len(layout)
    unknown = np.full(rows, NOT_KNOWN, dtype=np.int64)
    return Residue(layout, unknown, unknown, np.full(rows, _MOVING), np.zeros(rows, dtype=bool))


def followed(
    known: Residue, snapshot: Snapshot, may_have: Flags, is_stable: Flags, now: float, after: float
) -> Residue:
    """Returns the state after a cycle; `may_have` marks rows of read_committed groups, `is_stable` of Stable ones."""
    known = _moved(known, snapshot.layout)
    is_one = may_have & (snapshot.state != State.AHEAD) & (snapshot.log_end - snapshot.committed == _MARKER)
    is_unmoved = is_one & (snapshot.committed == known.committed) & (snapshot.log_end == known.log_end)
    is_found = is_unmoved & known.is_found
    since = np.where(is_unmoved & is_stable, np.minimum(known.since, now), np.where(is_one & is_stable, now, _MOVING))
    # A reading that shows movement ends it; a missing reading does not.
    is_read = (snapshot.state == State.OK) & (snapshot.cause == 0)
    is_found |= is_unmoved & is_read & is_stable & (now - since >= after)
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
