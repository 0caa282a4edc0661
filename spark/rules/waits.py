"""Pure: how long the oldest message that waits in a partition has been there, by the log ends of its series.

`adapter.verdicts.waits` has the rule. What goes down within a series is a reset, unless the writer changed.
"""

import numpy as np

from adapter.verdicts.waits import LogEnds, waited
from spark.rules.deltas import OrderedSamples
from spark.rules.trail import never_falling, run_of
from spark.tables.columns import Flags, Ints, TableRows, Values


def waits_of(hour: OrderedSamples, deltas: TableRows) -> dict[str, Values]:
    """Columns of `deltas`, which are the hour's: `wait_seconds`, NaN where the lag is not known, and `wait_is_bound`,
    where it is at least that."""
    lag = deltas["lag"]
    wait, is_bound = np.where(lag >= 0, 0.0, np.nan), np.zeros(len(lag), np.bool_)
    rows = np.flatnonzero(lag > 0)
    if len(rows):
        ends, place = _log_ends(hour, deltas["is_reset"])
        wait[rows], is_bound[rows] = waited(ends, place[rows], deltas["log_end"][rows] - lag[rows])
    return {"wait_seconds": wait, "wait_is_bound": is_bound}


def _log_ends(hour: OrderedSamples, is_reset: Flags) -> tuple[LogEnds, Ints]:
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
    return LogEnds(together(samples["sampled_at"], "end_at"), end, run), place
