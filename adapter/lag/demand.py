"""Pure: what follows from the movement of rows: the age of the oldest message that waits, rates, and when retention
deletes what was not consumed."""

from typing import NamedTuple

import numpy as np

from adapter.columns import NEVER, Flags, Indexes, Offsets, Seconds
from adapter.lag.ring import ENDS, SAME_SECONDS, Past, Ring, Track, past_of
from adapter.verdicts.waits import LogEnds, last_not_beyond, waited

FOLLOWED_SECONDS = 600.0
"""Brokers look for what to delete every 5 minutes (log.retention.check.interval.ms)."""
LONGEST_WINDOWS = 3
"""A rate is over at most so many windows. Only a restart, or brokers that did not answer, leave nothing within them."""
ROWS_AT_ONCE = 8192
"""Bounds the memory that a read of very many rows takes meanwhile."""


class Rates(NamedTuple):
    per_second: Seconds
    """NaN for rows that have not been followed for long enough."""
    followed: Seconds
    """For how many seconds each row has been, without going backward."""


def waits_in(ring: Ring, rows: Indexes, passed: Offsets, received: Seconds) -> tuple[Seconds, Flags]:
    """Returns for how long the oldest message of each row has waited, in seconds, and whether it is at least so long.

    `passed` is the offset of that message, and `received` is as of when, in monotonic seconds."""
    seconds, is_bound = np.zeros(len(rows)), np.ones(len(rows), dtype=bool)
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        seconds[part], is_bound[part] = _waits(ring, rows[part], passed[part], received[part])
    return seconds, is_bound


def _waits(ring: Ring, rows: Indexes, passed: Offsets, received: Seconds) -> tuple[Seconds, Flags]:
    past = past_of(ring.ends, rows)
    seconds, is_bound = np.zeros(len(rows)), np.ones(len(rows), dtype=bool)
    counts = past.is_valid.sum(axis=0)
    earlier = (past.is_valid & (past.received < received - SAME_SECONDS)).sum(axis=0)
    place = np.cumsum(counts) - counts + np.minimum(earlier, counts - 1)
    is_valid = past.is_valid.T
    at = np.rint(1e6 * past.received.T[is_valid]).astype(np.int64)
    log = LogEnds(at, past.offset.T[is_valid], np.repeat(np.arange(len(rows)), counts))
    known = np.flatnonzero(counts > 0)
    # Otherwise the log was reset after the row's last good reading, so nothing is known of its age.
    known = known[log.end[place[known]] > passed[known]]
    seam = ring.seam if _has_gap(ring) else NEVER
    waits, is_bound[known] = _waited(log, place[known], passed[known], seam)
    # The tick of the row's own reading may have been dropped since; then the next one is later than the reading.
    seconds[known] = np.maximum(waits - np.maximum(at[place[known]] / 1e6 - received[known], 0.0), 0.0)
    return seconds, is_bound


def _has_gap(ring: Ring) -> bool:
    """Whether the time without readings lies between two ticks: if one of them was dropped, it is short for its age."""
    return {ring.seam, ring.resumed} <= {tick.at for tick in ring.ends.ticks}


def _waited(log: LogEnds, place: Indexes, passed: Offsets, seam: float) -> tuple[Seconds, Flags]:
    """`adapter.verdicts.waits.waited`, but a message that came while no process read is only known to have waited since
    the first reading of this one, until the time without readings is as short for its age as that between two ticks."""
    waits, is_bound = waited(log, place, passed)
    if not np.isfinite(seam):
        return waits, is_bound
    low, at_seam = last_not_beyond(log, place, passed), round(1e6 * seam)
    is_across = (low >= 0) & (log.at[low] <= at_seam) & (log.at[low + 1] > at_seam)
    gap, age = log.at[low + 1] - log.at[low], log.at[place] - log.at[low]
    is_open = is_across & (gap > ENDS.coarseness * age)
    since_next = (log.at[place] - log.at[low + 1]) / 1e6
    return np.where(is_open, since_next, waits), is_bound | is_open


def rates_in(track: Track, rows: Indexes, window: float) -> Rates:
    """Returns by how many messages each row moved per second, from its newest tick that is `window` seconds or more
    before its last one."""
    return rates_by(past_of(track, rows), window)


def rates_by(past: Past, window: float) -> Rates:
    """Returns the same of a past."""
    newest, columns, last = past.received[-1], np.arange(past.offset.shape[1]), len(past.offset) - 1
    is_before = past.is_valid & (past.received <= newest - window)
    is_before &= past.received >= newest - LONGEST_WINDOWS * window
    base = last - np.argmax(is_before[::-1], axis=0)
    messages, seconds = past.offset[-1] - past.offset[base, columns], newest - past.received[base, columns]
    is_known = is_before.any(axis=0)
    _, followed = _since_first(past)
    return Rates(np.where(is_known, messages / np.where(is_known, seconds, 1.0), np.nan), followed)


def losses_in(starts: Track, rows: Indexes, lead: Offsets) -> tuple[Seconds, Seconds]:
    """Returns in how many seconds the log start of each row passes its commit, and how long it has been followed.

    The start is taken to go on as it moved while it was followed: infinite if it did not move, and NaN if it has been
    followed for less than FOLLOWED_SECONDS."""
    past = past_of(starts, rows)
    deleted, followed = _since_first(past)
    seconds = np.where(deleted > 0, lead * followed / np.maximum(deleted, 1), np.inf)
    return np.where(followed >= FOLLOWED_SECONDS, seconds, np.nan), followed


def _since_first(past: Past) -> tuple[Offsets, Seconds]:
    """Returns how far each row has moved since its first tick that counts, and in how many seconds."""
    first, columns, is_seen = np.argmax(past.is_valid, axis=0), np.arange(past.offset.shape[1]), past.is_valid[-1]
    messages = np.where(is_seen, past.offset[-1] - past.offset[first, columns], 0)
    return messages, np.where(is_seen, past.received[-1] - past.received[first, columns], 0.0)
