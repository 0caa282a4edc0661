"""Recognises a transaction marker behind the last record, which some applications never pass.

A transaction ends with a marker that has its own offset. An application that commits the last record's offset plus one
stays before the marker: log end - committed is 1 although nothing is left to read, and would keep a consumer running. A
client that commits its own position passes the marker.

From outside, a marker looks like a record. So a lag of 1 counts as a marker only in groups with `isolation:
read_committed`, and only after commit and end have not moved for as long as a member may hold a record
(`max.poll.interval.ms`) while the group was Stable throughout. A marker stays recognised while neither moves, even if
the group becomes Empty or its commit expires; otherwise an autoscaler at zero would scale it up again and again. An
application that retries its last record for longer without leaving its group counts as having read it.

Only lag becomes 0. Offsets stay as they were read."""

from dataclasses import dataclass, replace

import numpy as np

from adapter.columns import NO_COMMIT, NOT_KNOWN, Flags, Offsets, Seconds
from adapter.lag.layout import Layout, carried, same_rows
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

    def in_layout(self, layout: Layout) -> "Residue":
        if self.layout is layout:
            return self
        return carried(self, no_residue(layout), same_rows(layout, self.layout))

    def with_found(self, is_known: Flags, committed: Offsets) -> "Residue":
        """Marks rows that were known to have a marker behind that commit."""
        return replace(
            self,
            committed=np.where(is_known, committed, self.committed),
            log_end=np.where(is_known, committed + _MARKER, self.log_end),
            is_found=self.is_found | is_known,
        )


def no_residue(layout: Layout) -> Residue:
    rows = len(layout)
    committed, log_end = np.full((2, rows), NOT_KNOWN, dtype=np.int64)
    return Residue(layout, committed, log_end, np.full(rows, _MOVING), np.zeros(rows, dtype=bool))


def followed(known: Residue, snapshot: Snapshot, may_have: Flags, is_stable: Flags, now: float) -> Residue:
    """Returns the state after a cycle; `may_have` marks rows of read_committed groups, `is_stable` of Stable ones."""
    known, committed = known.in_layout(snapshot.layout), snapshot.last_commit
    is_one = may_have & (snapshot.state != State.AHEAD) & (committed != NO_COMMIT)
    is_one &= snapshot.log_end - committed == _MARKER
    is_unmoved = is_one & (committed == known.committed) & (snapshot.log_end == known.log_end)
    is_found = is_unmoved & known.is_found
    since = np.where(is_unmoved & is_stable, np.minimum(known.since, now), np.where(is_one & is_stable, now, _MOVING))
    # A reading that shows movement ends it; a missing reading does not.
    is_read = (snapshot.state == State.OK) & (snapshot.cause == 0)
    is_found |= is_unmoved & is_read & is_stable & (now - since >= RESIDUE_SECONDS)
    return Residue(snapshot.layout, committed, snapshot.log_end, since, is_found)
