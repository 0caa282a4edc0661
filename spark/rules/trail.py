"""Pure: the earlier log ends that an hour hands to the next beside the last one, so that a wait which began in an
earlier hour is known: when the log end passed the commit.

Kept of each series whose commit lags behind its last log end: the last sample that the commit had passed, and of the
later ones the last of each cell. A cell is at most a sixteenth of its samples' age, so a wait that is found between two
of them is wrong by an eighth at most. The newest 32 samples or fewer have a cell each; after that, 16 cells are added
whenever the age of the oldest message that waits doubles.
"""

import numpy as np

from spark.tables.columns import UNKNOWN, Flags, Ints, TableRows, Values, begins_of

CELLS = 32
"""In the age of a sample, at most; half as many at least."""
HANDOVER_INTERVALS = 3
"""Two samples of different writers that are no farther apart may have been stamped by clocks that differ."""


def is_trail(carried: TableRows) -> Flags:
    """Which rows of CARRIED are those of earlier log ends."""
    is_early: Flags = (carried["seen_at"] < 0) & (carried["end_at"] >= 0)
    return is_early


def is_handover(at: Values, before_at: Values, interval: Values, writer: Values, before: Values) -> Flags:
    """Whether a difference crosses a change of writer, so that what goes down may do so by the clocks alone. `before`,
    `before_at`: writer and time of the last sample with a known log end; times in microseconds, intervals in
    seconds."""
    is_other: Flags = (writer != before) & (before >= 0)
    return is_other & (at - before_at <= HANDOVER_INTERVALS * 1e6 * interval.astype(np.float64))


def run_of(series: Ints, is_reset: Flags) -> Ints:
    """The number of each log end's run, in which the log was the same; the numbers rise. `series`: sorted."""
    begins = is_reset.copy()
    begins[begins_of(series)] = True
    run: Ints = np.cumsum(begins)
    return run


def never_falling(end: Values, run: Ints) -> Values:
    """In each run the largest log end so far: it falls where the clocks of two writers differ."""
    falls = np.flatnonzero((end[1:] < end[:-1]) & (run[1:] == run[:-1]))
    if not len(falls):
        return end
    rising = end.copy()
    for number in np.unique(run[falls]).tolist():
        first, last = np.searchsorted(run, (number, number + 1))
        rising[first:last] = np.maximum.accumulate(end[first:last])
    return rising


def own_trail(ends: TableRows, series: Ints, commit: Ints, until: int) -> Flags:
    """Which of an hour's known log ends are kept: as `trail_of`, and the first of the last run, which decides whether
    an earlier hour's go on. `ends`: `end_at`, `log_end` and `is_reset`, sorted by series
    and time; `commit`: of each one's series, negative where
    no commit was known."""
    run, last = run_of(series, ends["is_reset"]), _last_of(series)
    is_first = np.zeros(len(series), np.bool_)
    is_first[begins_of(run)] = True
    may_wait = (commit < 0) | (ends["log_end"][last] > commit)
    is_kept: Flags = is_first & (run == run[last]) & may_wait & (np.arange(len(series)) < last)
    return is_kept | trail_of(ends, series, commit, until)


def trail_of(ends: TableRows, series: Ints, commit: Ints, until: int) -> Flags:
    """Which are kept at an hour's end, `until`; never the last of a series, which is carried anyway."""
    at = ends["end_at"]
    run, last = run_of(series, ends["is_reset"]), _last_of(series)
    is_waiting = (never_falling(ends["log_end"], run) > commit) & (commit >= 0)
    is_passing = np.zeros(len(series), np.bool_)
    is_passing[:-1] = ~is_waiting[:-1] & is_waiting[1:] & (run[1:] == run[:-1])
    is_kept: Flags = (is_passing | (is_waiting & _is_last_of_cell(at, last, until))) & (run == run[last])
    return is_kept & (np.arange(len(series)) < last)


def _is_last_of_cell(at: Ints, last: Ints, until: int) -> Flags:
    level = np.frexp((until - at) // CELLS)[1]
    cell = at >> level
    is_last = np.ones(len(at), np.bool_)
    is_last[:-1] = (cell[1:] != cell[:-1]) | (level[1:] != level[:-1])
    return is_last | (np.arange(len(at)) >= last - 1)


def _last_of(series: Ints) -> Ints:
    """Of each row, the place of its series' last one."""
    ends = np.append(begins_of(series)[1:], len(series)) - 1
    return np.repeat(ends, np.diff(ends, prepend=UNKNOWN))
