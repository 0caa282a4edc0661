"""Pure: how many messages wait in a partition and how long the oldest one has been there, for the metrics API, the
history's tables and the reports.

It is as old as the time for which the log end has been beyond the commit: interpolated between the log ends of the same
log around the commit. Where the log end was beyond it from the first of these on, the message is at least as old as
that log end."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags, Indexes, Offsets, Seconds

Micros = NDArray[np.int64]

MARKER = 1
"""Offsets that a transaction marker takes."""
RESIDUE_SECONDS = 300.0
"""For so long a member may hold a record (Kafka's default for max.poll.interval.ms): what a member of a read_committed
group leaves for longer, and is one offset, is a marker."""

NEAR = 2
"""Log ends back in which most commits were passed: a group that keeps up is seconds behind."""
LARGEST_KEY = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class LogEnds:
    """Known log ends, in order of partition and time."""

    at: Micros
    """When each was read, in microseconds."""
    end: Offsets
    """Never falling within a run."""
    run: Indexes
    """The number of the log that it is of; never falling."""


def waited(ends: LogEnds, place: Indexes, passed: Offsets) -> tuple[Seconds, Flags]:
    """Returns for how long the log end had been beyond each offset of `passed`, in seconds, and whether it is at least
    so long.

    `place`: the index of the log end that was current then, which is beyond the offset."""
    low = last_not_beyond(ends, place, passed)
    is_bound = low < 0
    low_end, low_at = ends.end[low], ends.at[low]
    high_end, high_at = ends.end[low + 1], ends.at[low + 1]
    share = (passed - low_end) / np.where(is_bound, 1, high_end - low_end)
    micros = (ends.at[place] - low_at) - share * (high_at - low_at)
    if is_bound.any():
        bound = place[is_bound]
        micros[is_bound] = ends.at[bound] - ends.at[np.searchsorted(ends.run, ends.run[bound])]
    return micros / 1e6, is_bound


def last_not_beyond(ends: LogEnds, place: Indexes, passed: Offsets) -> Indexes:
    """Returns the index of each run's last log end that is not beyond the offset; negative: all of them are."""
    run, low, left = ends.run[place], np.full(len(place), -1, np.intp), np.arange(len(place))
    for back in range(1, NEAR + 1):
        earlier = np.maximum(place - back, 0)
        is_there = (ends.end[earlier] <= passed) & (ends.run[earlier] == run)
        low[left[is_there]] = earlier[is_there]
        others = np.flatnonzero(~is_there)
        left, place, passed, run = (values[others] for values in (left, place, passed, run))
    if len(left):
        keys, wanted = _keys(ends, run, passed)
        at = np.searchsorted(keys, wanted, side="right") - 1
        low[left] = np.where((at >= 0) & (ends.run[at] == run), at, -1)
    return low


def _keys(ends: LogEnds, run: Indexes, offset: Offsets) -> tuple[Offsets, Offsets]:
    """Returns numbers in the order of runs and, in each, of offsets: of the log ends, and of these offsets."""
    least = int(ends.end.min())
    width = int(ends.end.max()) - least + 2
    end, offset = ends.end - least, offset - least
    if width * (int(ends.run[-1]) + 1) > LARGEST_KEY:
        values = np.unique(end)
        width = len(values) + 1
        end, offset = np.searchsorted(values, end), np.searchsorted(values, offset, side="right") - 1
    return ends.run * width + end, run * width + np.maximum(offset, -1)


def lag_behind(committed: Offsets, log_end: Offsets, log_start: Offsets, has_marker: Flags) -> Offsets:
    """Messages before the log start are deleted, so nobody waits for them; nor does a transaction marker behind the
    commit."""
    lag: Offsets = np.where(has_marker, 0, log_end - np.maximum(committed, log_start))
    return lag


def lag_without_commit(
    log_end: Offsets, log_start: Offsets, counts_from_start: Flags, last_commit: Offsets, has_marker: Flags
) -> Offsets:
    """A commit that has expired counts on. A partition that was never committed (a negative `last_commit`) counts
    nothing, or with `offsetReset: earliest` the whole log. Never below 0."""
    never_committed = np.where(counts_from_start, log_end - log_start, 0)
    lag: Offsets = np.where(last_commit < 0, never_committed, lag_behind(last_commit, log_end, log_start, has_marker))
    return np.maximum(lag, 0)


def beyond_flight(lag: Seconds, arriving: Seconds, seconds: Seconds | float) -> Seconds:
    """Returns the lag without what arrived in so many seconds (rates are messages per second): a member has read it,
    or is about to, and has not committed it yet. Every commit interval, the lag of a group that keeps up rises by as
    much and falls again."""
    return np.maximum(lag - arriving * seconds, 0.0)
