"""Pure: what moved before this process started, from the cycles that the history has of it, before what it saw itself.

What the rows of both have in common goes on; a log that was reset meanwhile, commits that were set back and a first
commit begin anew, as they do from one cycle to the next."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from adapter.columns import NEVER, Flags, Offsets, Seconds
from adapter.lag.layout import Layout
from adapter.lag.ring import (
    ALL,
    COMMITS,
    ENDS,
    NEVER_READ,
    NOT_SEEN,
    SAME_SECONDS,
    STARTS,
    Depth,
    Ring,
    Tick,
    Track,
    begins_anew,
    empty_ring,
    extended,
    moved_to,
    narrowed,
    thinned,
)


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """The rows of a cluster whose past is wanted."""

    cluster: str
    layout: Layout
    is_committed_only: Flags
    """Whether the log end of a row is that of read_committed."""


@dataclass(frozen=True, slots=True, eq=False)
class EarlierCycle:
    """One cycle that the history has, in the rows of a layout."""

    at: float
    """When its last offset was received, in seconds of this machine's monotonic clock; may be negative."""
    committed: Offsets
    log_end: Offsets
    log_start: Offsets
    received: Seconds
    """When commit and end were; `at` where the end is not known."""
    is_commit: Flags
    """Whether it is known what was committed; NO_COMMIT is known as well."""
    is_end: Flags


def ring_of(layout: Layout, cycles: Iterable[EarlierCycle]) -> Ring:
    """Returns what these cycles saw; each begins where the one before has ended, others are left out."""
    ring = empty_ring(layout)
    for cycle in cycles:
        if cycle.at > ring.seam:
            ring = _followed_by(ring, cycle)
    return ring


def _followed_by(ring: Ring, cycle: EarlierCycle) -> Ring:
    at, received = cycle.at, cycle.received
    is_start = cycle.log_start >= 0
    return replace(
        ring,
        ends=extended(ring.ends, at, cycle.log_end, received, cycle.is_end, ENDS),
        commits=extended(ring.commits, at, cycle.committed, received, cycle.is_commit, COMMITS),
        starts=extended(ring.starts, at, cycle.log_start, np.full(len(ring.layout), at), is_start, STARTS),
        seam=at,
    )


def preceded_by(ring: Ring, earlier: Ring) -> Ring:
    """Returns the ring with what was seen before its first cycle, in its own layout; a ring that has it as it is."""
    if ring.seam != NEVER:
        return ring
    earlier = moved_to(earlier, ring.layout)
    return replace(
        ring,
        ends=_preceded(ring.ends, earlier.ends, ENDS),
        commits=_preceded(ring.commits, earlier.commits, COMMITS),
        starts=_preceded(ring.starts, earlier.starts, STARTS),
        seam=earlier.seam,
        resumed=ring.ends.ticks[0].at if ring.ends.ticks else NEVER,
    )


def _preceded(track: Track, earlier: Track, depth: Depth) -> Track:
    if not earlier.ticks:
        return track
    last = earlier.ticks[-1]
    is_own, was_seen = track.begun != NOT_SEEN, earlier.begun != NOT_SEEN
    goes_on = was_seen & ~(is_own & (begins_anew(last.offset[ALL], track.begin) | _has_begun_anew(track)))
    # A row that this process has not read yet goes on with the last offset that the history has.
    own = tuple(_filled(tick, last, was_seen & ~is_own) for tick in track.ticks)
    begin, begun = np.where(goes_on, earlier.begin, track.begin), np.where(goes_on, earlier.begun, track.begun)
    joined = Track((), begin, begun, earlier.later)
    ticks = (*(tick.on(joined.base) for tick in earlier.ticks), *own)
    return narrowed(replace(joined, ticks=thinned(ticks, depth)))


def _has_begun_anew(track: Track) -> Flags:
    """Whether a row was read before the offset that its newest ones belong with."""
    has = np.zeros(len(track.begun), dtype=bool)
    for tick in track.ticks:
        has |= (tick.age < NEVER_READ) & (tick.received() < track.begun - SAME_SECONDS)
    return has


def _filled(tick: Tick, last: Tick, rows: Flags) -> Tick:
    """Returns it with the last offsets in these rows, and without distances."""
    age = np.where(rows, tick.at - last.at + last.age, tick.age).astype(np.float32)
    return Tick(tick.at, np.where(rows, last.offset[ALL], tick.offset[ALL]), age)
