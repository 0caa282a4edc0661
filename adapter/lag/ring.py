"""Pure: the latest log ends, commits and log starts of every row with their receipt times, coarser with age.

What follows from movement, such as rates, is computed from it for the rows that are read, so a cycle only adds columns.
All rows are kept, because a metric must have a value as soon as it is asked for, not a minute or an hour later."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapter.columns import NEVER, NOT_KNOWN, Flags, Indexes, Offsets, Seconds
from adapter.lag.layout import NO_LAYOUT, Layout, same_rows
from adapter.lag.snapshot import Observed, Snapshot


class Depth(NamedTuple):
    """How much of a track is kept."""

    most: int
    """Ticks."""
    coarseness: float
    """A tick is dropped if its neighbours are no farther apart than this share of the older one's age."""


ENDS, COMMITS, STARTS = Depth(24, 1 / 2), Depth(12, 1 / 2), Depth(9, 3 / 4)
"""These keep at least the log ends of 4,000 cycles (11 hours, at one every 10 s), the commits of 60 cycles, and the log
starts of 3 hours, as they are read every minute. A tick has 8 bytes for a row, and the newest of each track 12, so a
row takes 420 at most. It takes 24 more once a partition has moved by more than FARTHEST, and 12 for each tick, 612 in
all, as long as one does so within what is remembered."""
SAME_SECONDS = 0.001
"""Receipt times that are closer are the same: they are kept with 32 bits."""
NOT_SEEN = np.inf
"""In `begun`."""
NEVER_READ = np.float32(1e12)
"""In `age`: the row had not been read by then, in contrast to one that is known to have no commit. It is finite, so
that differences are, too."""
ALL = slice(None)
FARTHEST = 2**32 - 1
"""Distances of offsets are kept with 32 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """Offsets as how far each is beyond another one, in half the memory. Where a row does not count, it is 0."""

    base: Offsets
    """Shared by the ticks of a track."""
    beyond: NDArray[np.uint32]

    def __getitem__(self, rows: Indexes | slice) -> Offsets:
        offsets: Offsets = self.base[rows] + self.beyond[rows]
        return offsets

    @property
    def nbytes(self) -> int:
        """Returns what only this one takes."""
        return self.beyond.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class Tick:
    """The offsets that were known at the end of one cycle."""

    at: float
    """When the cycle decided, in monotonic seconds."""
    offset: Offsets | Distances
    age: NDArray[np.float32]
    """How long before `at` each was received, in seconds. With 32 bits, an age of one hour is exact to 0.3 ms."""

    def received(self, rows: Indexes | slice = ALL) -> Seconds:
        """Returns when each was, with 64 bits: with 32, times on a machine that has run for a day are off by 4 ms."""
        return self.at - self.age[rows].astype(np.float64)

    def counts(self, begun: Seconds) -> Flags:
        """Returns the rows whose offset belongs with the newest one, which `begun` then."""
        does: Flags = self.received() >= begun - SAME_SECONDS
        return does

    def on(self, base: Offsets) -> "Tick":
        """Returns the same tick with a base that is the same for all rows that count."""
        return replace(self, offset=Distances(base, self.offset.beyond)) if isinstance(self.offset, Distances) else self


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """The ticks of one kind of offset."""

    ticks: tuple[Tick, ...]
    """The oldest first. A row that was not read in a cycle has the offset and receipt time of the tick before. All but
    the newest have distances, as far as these fit."""
    begin: Offsets
    """Each row's first offset that belongs with the newest: those before it were of another log, or were taken back."""
    begun: Seconds
    """When that was received; NOT_SEEN if none ever was. Its tick may have been dropped."""
    later: Offsets | None = None
    """What distances are beyond, once those from `begin` no longer fit."""

    @property
    def base(self) -> Offsets:
        return self.begin if self.later is None else self.later


class Past(NamedTuple):
    """The ticks of some rows as matrices, a row for what they began with and one for each tick, the oldest first."""

    received: Seconds
    offset: Offsets
    is_valid: Flags
    """False in the ticks before `begun`, and in the first row where the ticks go back as far."""


@dataclass(frozen=True, slots=True, eq=False)
class Ring:
    layout: Layout
    ends: Track
    commits: Track
    """NO_COMMIT where the group has none."""
    starts: Track
    seam: float = NEVER
    """The offsets received until then were read back from the history, those after it were received by this process;
    NEVER: nothing was read back."""
    resumed: float = NEVER
    """When the first cycle of this process decided."""


def empty_ring(layout: Layout = NO_LAYOUT) -> Ring:
    rows = len(layout)
    return Ring(layout, ends=_empty_track(rows), commits=_empty_track(rows), starts=_empty_track(rows))


def moved_to(ring: Ring, layout: Layout) -> Ring:
    """Returns the same rows in another layout; new partitions and topic generations have no past."""
    if layout is ring.layout:
        return ring
    rows = same_rows(layout, ring.layout)
    ends, commits, starts = (_moved(track, len(layout), rows) for track in (ring.ends, ring.commits, ring.starts))
    return replace(ring, layout=layout, ends=ends, commits=commits, starts=starts)


def followed_by(ring: Ring, observed: Observed, snapshot: Snapshot, start_received: Seconds, now: float) -> Ring:
    """Returns the ring after the cycle that observed this and decided on `snapshot`, in the layout of both.

    An end counts without a commit, unless it goes backward; `start_received` is that of each row's latest start."""
    ring, is_good = moved_to(ring, snapshot.layout), snapshot.cause == 0
    is_end = (observed.end_cause == 0) & (is_good | (observed.log_end >= np.maximum(snapshot.log_end, 0)))
    is_start = (observed.log_start >= 0) & (start_received > _received(ring.starts) + SAME_SECONDS)
    ends = extended(ring.ends, now, observed.log_end, observed.end_received, is_end, ENDS)
    commits = extended(ring.commits, now, observed.committed, observed.commit_received, is_good, COMMITS)
    starts = ring.starts
    if is_start.any():
        starts = extended(starts, now, observed.log_start, start_received, is_start, STARTS)
    return replace(ring, ends=ends, commits=commits, starts=starts)


def past_of(track: Track, rows: Indexes) -> Past:
    begun = track.begun[rows]
    is_seen, first = begun != NOT_SEEN, np.where(begun == NOT_SEEN, 0.0, begun)
    received = np.array([first, *(tick.received(rows) for tick in track.ticks)])
    is_valid = is_seen & (received >= first - SAME_SECONDS)
    is_valid[0] = is_seen & (first > (track.ticks[0].at if track.ticks else NOT_SEEN))
    return Past(received, np.array([track.begin[rows], *(tick.offset[rows] for tick in track.ticks)]), is_valid)


def bytes_of(ring: Ring) -> int:
    """Returns what the columns take."""
    tracks = (ring.ends, ring.commits, ring.starts)
    ticks = sum(tick.offset.nbytes + tick.age.nbytes for track in tracks for tick in track.ticks)
    later = sum(track.later.nbytes for track in tracks if track.later is not None)
    return ticks + later + sum(track.begin.nbytes + track.begun.nbytes for track in tracks)


def _received(track: Track) -> Seconds:
    """Returns when each row was last received; NEVER if it was not."""
    if not track.ticks:
        return np.full(len(track.begun), NEVER)
    newest = track.ticks[-1]
    return np.where(track.begun == NOT_SEEN, NEVER, newest.received())


def extended(track: Track, at: float, offset: Offsets, received: Seconds, is_read: Flags, depth: Depth) -> Track:
    """Returns the track after one more cycle, which decided at `at` and read the offsets of the rows `is_read`."""
    before = track.ticks[-1] if track.ticks else Tick(at, *_nothing(len(track.begun)))
    former = before.offset[ALL]
    is_new = is_read & (begins_anew(former, offset) | (track.begun == NOT_SEEN))
    age = np.where(is_read, at - received, (at - before.at) + before.age).astype(np.float32)
    tick = Tick(at, np.where(is_read, offset, former), age)
    if is_new.any():
        track = _begun_anew(track, offset, received, is_new)
    track = narrowed(track)
    return replace(track, ticks=thinned((*track.ticks, tick), depth))


def _begun_anew(track: Track, offset: Offsets, received: Seconds, is_new: Flags) -> Track:
    begin, begun = np.where(is_new, offset, track.begin), np.where(is_new, received, track.begun)
    anew = replace(track, begin=begin, begun=begun)
    return replace(anew, ticks=tuple(tick.on(anew.base) for tick in track.ticks))


def narrowed(track: Track) -> Track:
    """Returns the track with distances instead of offsets. If some do not fit, all are counted from the oldest tick,
    and what does not fit even then stays as it is."""
    ticks = tuple(_narrowed(tick, track) for tick in track.ticks)
    if all(isinstance(tick.offset, Distances) for tick in ticks):
        return replace(track, ticks=ticks)
    oldest = track.ticks[0]
    later = replace(track, later=np.where(oldest.counts(track.begun), oldest.offset[ALL], track.begin))
    whole = tuple(replace(tick, offset=tick.offset[ALL]) for tick in track.ticks)
    return replace(later, ticks=tuple(_narrowed(tick, later) for tick in whole))


def _narrowed(tick: Tick, track: Track) -> Tick:
    if isinstance(tick.offset, Distances):
        return tick
    beyond = np.where(tick.counts(track.begun), tick.offset - track.base, 0)
    fits = beyond.min(initial=0) >= 0 and beyond.max(initial=0) <= FARTHEST
    return replace(tick, offset=Distances(track.base, beyond.astype(np.uint32))) if fits else tick


def begins_anew(before: Offsets, after: Offsets) -> Flags:
    """Whether an offset does not belong with the one before: what goes backward is of another log, or was set back;
    and a first commit need not have been consumed up to."""
    is_anew: Flags = (after < before) | ((before < 0) & (after >= 0))
    return is_anew


def thinned(ticks: tuple[Tick, ...], depth: Depth) -> tuple[Tick, ...]:
    return _thinned(ticks, depth.coarseness)[-depth.most :]


def _thinned(ticks: tuple[Tick, ...], coarseness: float) -> tuple[Tick, ...]:
    """Drops ticks whose neighbours are close together for their age; never the oldest, nor the two newest."""
    now, kept = ticks[-1].at, list(ticks[-2:])
    for older, tick in zip(reversed(ticks[:-3]), reversed(ticks[1:-2]), strict=True):
        if kept[0].at - older.at > coarseness * (now - older.at):
            kept.insert(0, tick)
    return tuple(ticks[:-2][:1] + tuple(kept))


def _moved(track: Track, size: int, rows: tuple[Indexes, Indexes]) -> Track:
    here, there = rows
    ticks = []
    for tick in track.ticks:
        offset, age = _nothing(size)
        offset[here], age[here] = tick.offset[there], tick.age[there]
        ticks.append(Tick(tick.at, offset, age))
    moved = _empty_track(size)
    moved.begin[here], moved.begun[here] = track.begin[there], track.begun[there]
    return narrowed(replace(moved, ticks=tuple(ticks)))


def _empty_track(size: int) -> Track:
    return Track((), np.full(size, NOT_KNOWN, dtype=np.int64), np.full(size, NOT_SEEN))


def _nothing(size: int) -> tuple[Offsets, NDArray[np.float32]]:
    return np.full(size, NOT_KNOWN, dtype=np.int64), np.full(size, NEVER_READ)
