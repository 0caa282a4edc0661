"""What is known of all groups as columns, for series and tables: where a read is refused, a figure is NaN.

The groups are those of a listing of lags, with the same rows, so that these figures never contradict a read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from adapter.columns import Flags, Indexes, Seconds
from adapter.lag.demand import losses_in, rates_in, waits_in
from adapter.lag.ring import Track
from adapter.metrics.query import Known
from adapter.metrics.store import ClusterView
from adapter.settings.models import Level

ROWS_AT_ONCE = 8192
"""Bounds the memory of a column, and the time for which computing it holds up other threads."""


class Part(NamedTuple):
    """The rows of some whole groups of one cluster."""

    view: ClusterView
    rows: Indexes
    window: float
    """The seconds that a rate covers at least."""

    def starts(self, level: Level) -> Indexes:
        """Returns where each item begins in `rows`."""
        layout = self.view.layout
        match level:
            case Level.PARTITION:
                return np.arange(len(self.rows))
            case Level.TOPIC:
                return np.flatnonzero(np.diff(layout.pair[self.rows], prepend=-1))
            case Level.GROUP:
                return np.flatnonzero(np.diff(layout.group[self.rows], prepend=-1))


def parts_of(known: Known, groups: Callable[[str, str], bool] = lambda _, __: True) -> Iterator[Part]:
    """Yields the rows of the known groups in order, those of several small groups together.

    `groups(cluster, group)` says which of them."""
    for one in known.chosen:
        view, waiting, size = one.view, [], 0
        for code, entries in groupby(one.entries, key=one.totals.group.__getitem__):
            if groups(view.cluster, view.layout.groups[code]):
                of_group = [one.rows_of(entry) for entry in entries]
                waiting += of_group
                size += sum(map(len, of_group))
            if size >= ROWS_AT_ONCE:
                yield Part(view, np.concatenate(waiting), known.window)
                waiting, size = [], 0
        if waiting:
            yield Part(view, np.concatenate(waiting), known.window)


@dataclass(frozen=True, slots=True)
class Figure:
    column: Callable[[Part], Seconds]
    """One value for each row; NaN if it is not known or does not exist."""
    fold: Callable[[Seconds, Indexes], Seconds]

    def of(self, part: Part, level: Level) -> Seconds:
        """Returns one value for each item."""
        column = self.column(part)
        return column if level is Level.PARTITION else self.fold(column, part.starts(level))


def _lag(part: Part) -> Seconds:
    return part.view.values.lag[part.rows].astype(np.float64)


def _committed(part: Part) -> Seconds:
    has_commit = part.view.values.has_commit[part.rows]
    return np.where(has_commit, part.view.snapshot.committed[part.rows], np.nan)


def _log_end(part: Part) -> Seconds:
    return part.view.snapshot.log_end[part.rows].astype(np.float64)


def _log_start(part: Part) -> Seconds:
    return part.view.snapshot.log_start[part.rows].astype(np.float64)


def _is_uncommitted(part: Part) -> Seconds:
    return (~part.view.values.has_commit[part.rows]).astype(np.float64)


def _wait(part: Part) -> Seconds:
    seconds, is_bound = _waits(part)
    return np.where(is_bound, np.nan, seconds)


def _least_wait(part: Part) -> Seconds:
    return _waits(part)[0]


def _waits(part: Part) -> tuple[Seconds, Flags]:
    snapshot, lag = part.view.snapshot, part.view.values.lag[part.rows]
    seconds, is_bound, waiting = np.zeros(len(lag)), np.zeros(len(lag), dtype=bool), np.flatnonzero(lag)
    rows = part.rows[waiting]
    passed = snapshot.log_end[rows] - lag[waiting]
    seconds[waiting], is_bound[waiting] = waits_in(part.view.ring, rows, passed, snapshot.received[rows])
    return seconds, is_bound


def _production(part: Part) -> Seconds:
    return _rate(part, part.view.ring.ends)


def _consumption(part: Part) -> Seconds:
    return _rate(part, part.view.ring.commits)


def _rate(part: Part, track: Track) -> Seconds:
    return np.round(rates_in(track, part.rows, part.window).per_second, 3)


def _seconds_to_loss(part: Part) -> Seconds:
    """Infinite where there is nothing to lose."""
    values, rows = part.view.values, part.rows
    seconds, waiting = np.full(len(rows), np.inf), np.flatnonzero(values.has_commit[rows] & (values.lag[rows] > 0))
    seconds[waiting] = losses_in(part.view.ring.starts, rows[waiting], values.lead[rows[waiting]])[0]
    return seconds


def _sum(column: Seconds, starts: Indexes) -> Seconds:
    return np.add.reduceat(column, starts)


def _sum_of_some(column: Seconds, starts: Indexes) -> Seconds:
    """Leaves out NaN; NaN where there is nothing else."""
    is_there = ~np.isnan(column)
    sums = np.add.reduceat(np.where(is_there, column, 0.0), starts)
    return np.where(np.logical_or.reduceat(is_there, starts), sums, np.nan)


def _largest(column: Seconds, starts: Indexes) -> Seconds:
    return np.maximum.reduceat(column, starts)


def _least(column: Seconds, starts: Indexes) -> Seconds:
    return np.minimum.reduceat(column, starts)


LAG = Figure(_lag, _sum)
COMMITTED = Figure(_committed, _sum_of_some)
LOG_END = Figure(_log_end, _sum)
LOG_START = Figure(_log_start, _sum)
UNCOMMITTED = Figure(_is_uncommitted, _sum)
WAIT = Figure(_wait, _largest)
LEAST_WAIT = Figure(_least_wait, _largest)
PRODUCTION = Figure(_production, _sum)
CONSUMPTION = Figure(_consumption, _sum)
SECONDS_TO_LOSS = Figure(_seconds_to_loss, _least)
