"""Recognises a transaction marker behind the last record, which some applications never pass.

A transaction ends with a marker that has its own offset. An application that commits the last record's offset plus one
stays before the marker: log end - committed is 1 although nothing is left to read, and would keep a consumer running. A
client that commits its own position passes the marker.

From outside, a marker looks like a record. So a lag of 1 counts as a marker only in groups with `isolation:
read_committed`, and only after commit and end have not moved for as long as a member may hold a record
(`max.poll.interval.ms`) while the group was Stable, its members read the topic, and the row was read throughout. A
marker stays recognised while neither moves, even if the group becomes Empty or its commit expires; otherwise an
autoscaler at zero would scale it up again and again. An application that retries its last record for longer without
leaving its group counts as having read it.

Only lag becomes 0. Offsets stay as they were read."""

from dataclasses import replace

import numpy as np

from adapter.columns import NO_COMMIT, Flags
from adapter.lag.snapshot import NOT_ONE, Snapshot, State
from adapter.verdicts.waits import MARKER, RESIDUE_SECONDS


def with_markers(
    snapshot: Snapshot, before: Snapshot, may_have: Flags, has_reader: Flags, now: float, max_age: float
) -> Snapshot:
    """`may_have` marks rows of read_committed groups, `has_reader` those of topics that members of a Stable group read;
    `before` has the same layout."""
    commit = snapshot.last_commit
    is_one = may_have & (snapshot.state != State.AHEAD) & (commit != NO_COMMIT)
    is_one &= snapshot.log_end - commit == MARKER
    is_unmoved = is_one & (commit == before.last_commit)
    # If the machine was suspended between two readings, members may have been suspended with it.
    is_continued = is_unmoved & (snapshot.received <= before.received + max_age)
    since = np.where(is_continued, np.minimum(before.marker_since, now), now)
    # While the row is not read, members may be unable to read the record. What was proven before stays so.
    is_read = (snapshot.state == State.OK) & (snapshot.cause == 0)
    since = np.where(is_one & has_reader & is_read, since, NOT_ONE)
    is_proven = now - since >= RESIDUE_SECONDS
    return replace(snapshot, has_marker=is_unmoved & (before.has_marker | is_proven), marker_since=since)
