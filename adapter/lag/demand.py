"""Pure: what follows from the movement of rows: the age of the oldest message that waits, and rates."""

from typing import NamedTuple

import numpy as np

from adapter.columns import Flags, Indexes, Offsets, Seconds
from adapter.lag.ring import SAME_SECONDS, Ring, Track, past_of
from adapter.verdicts.waits import LogEnds, waited

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
        seconds[part], is_bound[part] = _waits(ring.ends, rows[part], passed[part], received[part])
    return seconds, is_bound


def _waits(ends: Track, rows: Indexes, passed: Offsets, received: Seconds) -> tuple[Seconds, Flags]:
    past = past_of(ends, rows)
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
    seconds[known], is_bound[known] = waited(log, place[known], passed[known])
    return seconds, is_bound


def rates_in(track: Track, rows: Indexes, window: float) -> Rates:
    """Returns by how many messages each row moved per second, from its newest tick that is `window` seconds or more
    before its last one."""
    past = past_of(track, rows)
    if not len(past.offset):
        return Rates(np.full(len(rows), np.nan), np.zeros(len(rows)))
    newest, columns, last = past.received[-1], np.arange(len(rows)), len(past.offset) - 1
    is_before = past.is_valid & (past.received <= newest - window)
    base = last - np.argmax(is_before[::-1], axis=0)
    first = np.argmax(past.is_valid, axis=0)
    messages, seconds = past.offset[-1] - past.offset[base, columns], newest - past.received[base, columns]
    is_known = is_before.any(axis=0)
    followed = np.where(past.is_valid.any(axis=0), newest - past.received[first, columns], 0.0)
    return Rates(np.where(is_known, messages / np.where(is_known, seconds, 1.0), np.nan), followed)
