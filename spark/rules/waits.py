"""Pure: how long the oldest message that waits in a partition has been there.

It is as old as the time for which the log end has been beyond the commit: interpolated between the samples of the same
series, generation and log around the commit. Where the log end was beyond it from the first of these on, the message is
at least as old as that sample.
"""

from dataclasses import dataclass

import numpy as np

from spark.rules.deltas import OrderedSamples
from spark.rules.trail import never_falling, run_of
from spark.tables.columns import Flags, Ints, TableRows, Values, begins_of

NEAR = 2
"""Samples back in which most commits were passed: a group that keeps up is seconds behind."""
LARGEST_KEY = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class _LogEnds:
    """All known log ends, in order of series and time; those of earlier hours first."""

    at: Ints
    end: Values
    """Never falling within a run."""
    run: Ints
    """Of one log; the numbers rise."""


def waits_of(hour: OrderedSamples, deltas: TableRows) -> dict[str, Values]:
    """Columns of `deltas`, which are the hour's: `wait_seconds`, NaN where the lag is not known, and `wait_is_bound`,
    where it is at least that."""
    lag = deltas["lag"]
    wait, is_bound = np.where(lag >= 0, 0.0, np.nan), np.zeros(len(lag), np.bool_)
    rows = np.flatnonzero(lag > 0)
    if len(rows):
        ends, place = _log_ends(hour, deltas["is_reset"])
        wait[rows], is_bound[rows] = _waits(ends, place[rows], deltas["log_end"][rows] - lag[rows])
    return {"wait_seconds": wait, "wait_is_bound": is_bound}


def _log_ends(hour: OrderedSamples, is_reset: Flags) -> tuple[_LogEnds, Ints]:
    """And the place of each sample's log end among them, where it is known."""
    samples, carried, trail = hour.samples, hour.series.carried, hour.series.trail
    known, last = np.flatnonzero(samples["log_end"] >= 0), np.flatnonzero(carried["end_at"] >= 0)
    own, size = hour.series_of[known], len(carried)
    early = np.concatenate((trail["series"], last))
    order = np.argsort(early, kind="stable")
    early = early[order]
    own_place = np.arange(len(own)) + np.cumsum(np.bincount(early, minlength=size))[own]
    numbers = np.bincount(own, minlength=size)
    early_place = np.arange(len(early)) + (np.cumsum(numbers) - numbers)[early]

    def together(values: Values, name: str) -> Values:
        whole = np.empty(len(own) + len(early), values.dtype)
        whole[own_place] = values[known]
        whole[early_place] = np.concatenate((trail[name], carried[name][last]))[order]
        return whole

    series = np.empty(len(own) + len(early), np.int64)
    series[own_place], series[early_place] = own, early
    run = run_of(series, together(is_reset, "is_reset"))
    end = never_falling(together(samples["log_end"], "log_end"), run)
    place = np.empty(len(samples), np.int64)
    place[known] = own_place
    return _LogEnds(together(samples["sampled_at"], "end_at"), end, run), place


def _waits(ends: _LogEnds, place: Ints, passed: Ints) -> tuple[Values, Flags]:
    """Seconds since the log end was at `passed`, and whether it is at least so long. `place`: of now."""
    low = _last_not_beyond(ends, place, passed)
    is_bound = low < 0
    low_end, low_at = ends.end[low], ends.at[low]
    high_end, high_at = ends.end[low + 1], ends.at[low + 1]
    share = (passed - low_end) / np.where(is_bound, 1, high_end - low_end)
    waited = (ends.at[place] - low_at) - share * (high_at - low_at)
    if is_bound.any():
        bound = place[is_bound]
        waited[is_bound] = ends.at[bound] - ends.at[_firsts(ends.run)[bound]]
    return waited / 1e6, is_bound


def _last_not_beyond(ends: _LogEnds, place: Ints, passed: Ints) -> Ints:
    """The place of each run's last log end that is not beyond the offset; negative: all of them are."""
    run, found, left = ends.run[place], np.full(len(place), -1, np.int64), np.arange(len(place))
    for back in range(1, NEAR + 1):
        earlier = np.maximum(place - back, 0)
        is_there = (ends.end[earlier] <= passed) & (ends.run[earlier] == run)
        found[left[is_there]] = earlier[is_there]
        others = np.flatnonzero(~is_there)
        left, place, passed, run = (values[others] for values in (left, place, passed, run))
    if len(left):
        keys, wanted = _keys(ends, run, passed)
        at = np.searchsorted(keys, wanted, side="right") - 1
        found[left] = np.where((at >= 0) & (ends.run[at] == run), at, -1)
    return found


def _keys(ends: _LogEnds, run: Ints, offset: Ints) -> tuple[Ints, Ints]:
    """Numbers in the order of runs and, in each, of offsets: of the log ends, and of these offsets."""
    least = int(ends.end.min())
    width = int(ends.end.max()) - least + 2
    end, offset = ends.end - least, offset - least
    if width * (int(ends.run[-1]) + 1) > LARGEST_KEY:
        values = np.unique(end)
        width = len(values) + 1
        end, offset = np.searchsorted(values, end), np.searchsorted(values, offset, side="right") - 1
    return ends.run * width + end, run * width + np.maximum(offset, -1)


def _firsts(run: Ints) -> Ints:
    """Of each row the place of its run's first one."""
    begins = begins_of(run)
    return np.repeat(begins, np.diff(begins, append=len(run)))
