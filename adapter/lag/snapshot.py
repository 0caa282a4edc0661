"""All offsets of one cluster at one time as columns with one entry per row of the layout.

Differences of offsets count messages, as an upper bound; times are seconds of the monotonic clock."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapter.columns import NEVER, NO_COMMIT, NOT_KNOWN, Codes, Flags, Offsets, Seconds
from adapter.lag.layout import NO_LAYOUT, Layout, carried, same_rows


class State(IntEnum):
    """What the latest cycle found out about a row; see `values` for the resulting lag."""

    OK = 0
    NO_COMMIT = 1
    TRUNCATED = 2
    AHEAD = 3
    STALE = 4
    LEADERLESS = 5
    ERROR = 6
    UNKNOWN = 7


class Cause(NamedTuple):
    """Why a row could not be read. A tuple, because a cycle may create tens of thousands."""

    state: State
    text: str


NOT_ONE = np.inf
"""In `marker_since`."""
NOT_WATCHED = np.inf
NOT_SEEN = -2
"""In `progress`."""
NO_CAUSE = Cause(State.OK, "")


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The last good row of every partition (commit and end of the same cycle), and its current state.

    An `ahead` row has the latest pair instead, which contradicts itself."""

    layout: Layout
    committed: Offsets
    log_end: Offsets
    log_start: Offsets
    """The latest known start, which may be from a later cycle than commit and end."""
    received: Seconds
    """When the older of commit and end was received; NEVER if the row has had no pair yet."""
    state: NDArray[np.int8]
    cause: Codes
    """Index into `causes`: why the latest cycle found no good row."""
    causes: tuple[Cause, ...]
    last_commit: Offsets
    """The last commit that was seen, also after it expired; 0 for a partition that was added while its group slept;
    NO_COMMIT if there was none, or the log ended before it in two cycles running."""
    last_commit_at: Seconds
    """When it was last received, or the log was seen to end before it; NEVER if no commit was seen."""
    beyond: NDArray[np.int8]
    """The number of consecutive good cycles in which the commit was beyond the log end."""
    has_marker: Flags
    """Whether only a transaction marker follows `last_commit`."""
    marker_since: Seconds
    """Since when a Stable group has left one message, or a marker, behind `last_commit`; NOT_ONE: it has not."""
    progress: Offsets
    """The latest commit as it was read, or a share group's start; NOT_SEEN: the group had not been read when the row
    was added, so its first commit may be old."""
    moved_at: Seconds
    """When progress last moved, which proves that a member reads the topic; NEVER if that was not seen."""
    watched_since: Seconds
    """Since when a movement of progress would have been seen; NOT_WATCHED before its first reading."""
    is_added: Flags
    """Whether the partition was added to a remembered topic and not read since."""

    def cause_of(self, row: int) -> Cause:
        return self.causes[int(self.cause[row])]

    @property
    def why_unread(self) -> set[str]:
        """Returns each cause of the latest cycle with the name of its first partition."""
        unread = np.flatnonzero(self.cause)
        _, firsts = np.unique(self.cause[unread], return_index=True)
        return {f"{self.layout.name(row)}: {self.cause_of(row).text}" for row in unread[firsts].tolist()}


def empty_snapshot(layout: Layout = NO_LAYOUT) -> Snapshot:
    rows = len(layout)
    return Snapshot(
        layout=layout,
        committed=np.full(rows, NO_COMMIT, dtype=np.int64),
        log_end=np.full(rows, NOT_KNOWN, dtype=np.int64),
        log_start=np.full(rows, NOT_KNOWN, dtype=np.int64),
        received=np.full(rows, NEVER),
        state=np.full(rows, State.UNKNOWN, dtype=np.int8),
        cause=np.zeros(rows, dtype=np.int32),
        causes=(NO_CAUSE,),
        last_commit=np.full(rows, NO_COMMIT, dtype=np.int64),
        last_commit_at=np.full(rows, NEVER),
        beyond=np.zeros(rows, dtype=np.int8),
        has_marker=np.zeros(rows, dtype=bool),
        marker_since=np.full(rows, NOT_ONE),
        progress=np.full(rows, NOT_SEEN, dtype=np.int64),
        moved_at=np.full(rows, NEVER),
        watched_since=np.full(rows, NOT_WATCHED),
        is_added=np.zeros(rows, dtype=bool),
    )


def moved_to(
    snapshot: Snapshot, layout: Layout, groups_read: Collection[str] = (), now: float = NOT_WATCHED
) -> Snapshot:
    """Returns the same rows in another layout; new partitions and topic generations start as unknown.

    New rows of `groups_read`, the groups read before, are known to have had no commit until now."""
    fresh = empty_snapshot(layout)
    was_read = np.array([group in groups_read for group in layout.groups], dtype=bool)
    fresh.progress[was_read[layout.group]] = NO_COMMIT
    fresh.watched_since[was_read[layout.group]] = now
    moved = carried(snapshot, fresh, same_rows(layout, snapshot.layout))
    return replace(moved, causes=snapshot.causes)


def with_movement_of(snapshot: Snapshot, former: Snapshot) -> Snapshot:
    """Takes over what another collector saw of the movement of rows that this one has not read yet."""
    here, there = same_rows(snapshot.layout, former.layout)
    progress, moved_at = snapshot.progress.copy(), snapshot.moved_at.copy()
    watched_since = snapshot.watched_since.copy()
    progress[here], moved_at[here] = former.progress[there], former.moved_at[there]
    watched_since[here] = former.watched_since[there]
    return replace(snapshot, progress=progress, moved_at=moved_at, watched_since=watched_since)


@dataclass(slots=True)
class Causes:
    """The distinct causes of one cycle; columns hold their index, 0 for none."""

    known: dict[Cause, int] = field(default_factory=lambda: {NO_CAUSE: 0})

    def code(self, cause: Cause | None) -> int:
        return self.known.setdefault(cause or NO_CAUSE, len(self.known))


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """The result of one cycle for every row of a layout, before any decision."""

    committed: Offsets
    commit_received: Seconds
    commit_cause: Codes
    log_end: Offsets
    end_received: Seconds
    end_cause: Codes
    log_start: Offsets
    """The latest known start; NOT_KNOWN also if the known one may belong to another log."""
    causes: Sequence[Cause]


def nothing_observed(layout: Layout, causes: Sequence[Cause] = (NO_CAUSE,)) -> Observed:
    rows = len(layout)
    return Observed(
        committed=np.full(rows, NO_COMMIT, dtype=np.int64),
        commit_received=np.full(rows, NEVER),
        commit_cause=np.zeros(rows, dtype=np.int32),
        log_end=np.full(rows, NOT_KNOWN, dtype=np.int64),
        end_received=np.full(rows, NEVER),
        end_cause=np.zeros(rows, dtype=np.int32),
        log_start=np.full(rows, NOT_KNOWN, dtype=np.int64),
        causes=causes,
    )
