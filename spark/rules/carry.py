"""Pure: what an hour hands to the next: of every series the last known values, and the trail of its log ends.

What an hour's samples alone hand on (`last_known_of`) is found without the hours before it, and then added to what
these hand on (`carried_on`), so tasks can start with any hour.
"""

from datetime import timedelta

import numpy as np

from spark.rules.deltas import OrderedSamples, spread
from spark.rules.trail import is_handover, is_trail, own_trail, trail_of
from spark.tables.columns import (
    UNKNOWN,
    Flags,
    Ints,
    TableRows,
    Values,
    begins_of,
    joined,
    numbered,
    one_of_each,
    unknown,
)
from spark.tables.contract import CARRIED, HOUR_MICROS, NAMES, REMEMBERED, SERIES

REMEMBERED_MICROS = REMEMBERED // timedelta(microseconds=1)
SERIES_IN_ORDER = (*NAMES, "partition", "topic_id")
OF_END = ("end_at", "log_end", "writer", "interval_seconds", "is_reset")
"""Of CARRIED, what is known of a log end."""
LARGEST = np.iinfo(np.int64).max
TYPES = {column.name: column.type for column in CARRIED}


def last_known_of(hour: OrderedSamples) -> TableRows:
    """CARRIED's columns as the hour's own samples have them: one row per series, unknown where they have nothing, and
    the trails."""
    samples, series = hour.samples, hour.series.carried
    committed = samples["committed"]
    ends, of_end = _own_ends(hour)
    last_end, last_commit = _last_of(of_end, len(series)), _last_of(hour.series_of, len(series), committed >= 0)
    of_ends = {name: _at(ends[name], last_end, name) for name in OF_END}
    commit_at = _at(samples["sampled_at"], last_commit, "seen_at")
    columns = {
        **of_ends,
        "seen_at": np.maximum(of_ends["end_at"], commit_at),
        "committed": _at(committed, last_commit, "committed"),
        "log_start": _at(samples["log_start"], last_commit, "log_start"),
    }
    last = TableRows({**series.columns, **columns}, {**series.texts, "writer": samples.texts["writer"]})
    rows = _may_be_kept(ends, of_end, _passed(last))
    ends, of_end = ends.taken(rows), of_end[rows]
    is_kept = own_trail(ends, of_end, _passed(last)[of_end], hour.start + HOUR_MICROS)
    return joined([last, _trail_rows(last, ends.taken(is_kept), of_end[is_kept])])


def carried_on(carried: TableRows, last_known: TableRows, start: int) -> TableRows:
    """CARRIED's columns at an hour's end, sorted by series and time. `carried`: into the hour; `last_known`: of its own
    samples; `start`: of the hour."""
    both = joined([carried, last_known])
    number, is_own, is_early = _numbers(both), np.arange(len(both)) >= len(carried), is_trail(both)
    series = both.only((*SERIES, "writer")).taken(one_of_each(number))
    before, own = (spread(series, both.taken(rows), number[rows]) for rows in (~is_early & ~is_own, ~is_early & is_own))
    last = _renewed(before, own)
    rows = np.flatnonzero(both["end_at"] >= 0)
    rows = rows[np.lexsort((both["end_at"][rows], number[rows]))]
    of_end = number[rows]
    ends = _with_junctions(both.taken(rows).only(OF_END), of_end, is_own[rows])
    is_reset = last["is_reset"].copy()
    is_reset[of_end] = ends["is_reset"]  # the last of each series is written last
    is_kept = trail_of(ends, of_end, _passed(last)[of_end], start + HOUR_MICROS)
    last = last.extended({"is_reset": is_reset})
    is_remembered = last["seen_at"] >= max(0, start + HOUR_MICROS - REMEMBERED_MICROS)
    is_kept &= is_remembered[of_end]
    trail = _trail_rows(last, ends.taken(is_kept), of_end[is_kept])
    whole = joined([last.taken(is_remembered), trail])
    place = np.concatenate((np.flatnonzero(is_remembered), of_end[is_kept]))
    return whole.taken(np.lexsort((whole["end_at"], place)))


def _own_ends(hour: OrderedSamples) -> tuple[TableRows, Ints]:
    """OF_END's columns of the known log ends of the hour alone, and the series of each."""
    samples, series, is_told = hour.samples, hour.series_of, hour.samples["log_end"] >= 0
    if not is_told.all():
        samples = samples.only(("sampled_at", "log_end", "writer", "interval_seconds")).taken(is_told)
        series = series[is_told]
    end, at = samples["log_end"], samples["sampled_at"]
    is_reset = np.zeros(len(series), np.bool_)
    falls = np.flatnonzero((end[1:] < end[:-1]) & (series[1:] == series[:-1])) + 1
    is_reset[falls] = ~_is_handover(samples, at, falls)
    columns = {"end_at": at, **{name: samples[name] for name in ("log_end", "writer", "interval_seconds")}}
    return TableRows({**columns, "is_reset": is_reset}, {"writer": samples.texts["writer"]}), series


def _may_be_kept(ends: TableRows, series: Ints, passed: Ints) -> Ints:
    """The few rows that decide what is kept of an hour: those beyond the commit and the one before them, the first and
    the last of each log. `passed`: of each series."""
    end, is_reset = ends["log_end"], ends["is_reset"]
    begins = begins_of(series)
    may_be = end > np.where(passed >= 0, passed, LARGEST)[series]
    falls = (end[1:] < end[:-1]) & ~is_reset[1:]
    falls[begins[1:] - 1] = False
    if falls.any():  # by a handover: what is beyond the commit is not seen from single rows
        return np.arange(len(end))
    may_be[:-1] |= may_be[1:]
    may_be |= is_reset
    may_be[begins] = True
    may_be[begins - 1] = True
    return np.flatnonzero(may_be)


def _with_junctions(ends: TableRows, series: Ints, is_own: Flags) -> TableRows:
    """Whether the first log end of an hour is a reset depends on the last one before it."""
    follows = (series[1:] == series[:-1]) & is_own[1:] & ~is_own[:-1]
    falls = np.flatnonzero(follows & (ends["log_end"][1:] < ends["log_end"][:-1])) + 1
    is_reset = ends["is_reset"].copy()
    is_reset[falls] = ~_is_handover(ends, ends["end_at"], falls)
    return ends.extended({"is_reset": is_reset})


def _is_handover(ends: TableRows, at: Ints, rows: Ints) -> Flags:
    """Of rows that follow another of their series."""
    writer, interval = ends["writer"], ends["interval_seconds"]
    return is_handover(at[rows], at[rows - 1], interval[rows], writer[rows], writer[rows - 1])


def _trail_rows(series: TableRows, ends: TableRows, number: Ints) -> TableRows:
    """CARRIED's columns: of each log end those of its series and its own."""
    columns = {name: unknown(type_, len(number)) for name, type_ in TYPES.items()}
    own = {name: series[name][number] for name in SERIES} | {name: ends[name] for name in OF_END}
    return TableRows({name: {**columns, **own}[name] for name in series.columns}, series.texts)


def _renewed(before: TableRows, own: TableRows) -> TableRows:
    """Of the same series in the same order: what is known of the later, else what was known before."""
    has_end, has_commit = own["end_at"] >= 0, own["committed"] >= 0
    is_newer = dict.fromkeys(OF_END, has_end) | dict.fromkeys(("committed", "log_start"), has_commit)
    values = {name: np.where(newer, own[name], before[name]) for name, newer in is_newer.items()}
    return before.extended({**values, "seen_at": np.maximum(before["seen_at"], own["seen_at"])})


def _passed(last: TableRows) -> Ints:
    """Up to where nothing waits; negative: no commit is known. `last`: one row per series."""
    return np.where(last["committed"] >= 0, np.maximum(last["committed"], last["log_start"]), UNKNOWN)


def _numbers(rows: TableRows) -> Ints:
    return numbered(*(rows[name] for name in SERIES_IN_ORDER))


def _last_of(series: Ints, number: int, is_told: Flags | None = None) -> Ints:
    """For each series its last row, of those that tell; negative: none."""
    last = np.full(number, UNKNOWN, np.int64)
    rows = np.arange(len(series)) if is_told is None else np.flatnonzero(is_told)
    last[series[rows]] = rows
    return last


def _at(values: Values, rows: Ints, name: str) -> Values:
    """Of CARRIED's column; unknown where a row is negative."""
    nothing = unknown(TYPES[name], len(rows))
    return np.where(rows >= 0, values[rows], nothing) if len(values) else nothing
