"""Pure: one hour's samples and what was known before -> deltas, as columns in the driver's memory.

The same as `deltas_by_spark`; docs/history.md has the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spark.tables.columns import UNKNOWN, Flags, Ints, Rows, Values, aligned_texts, begins_of, numbered
from spark.tables.contract import CARRIED, DELTAS, HOUR_MICROS, NAMES, SERIES

LATEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """All series of an hour, those without a sample in it too: CARRIED's columns, as they were before the hour."""

    known: Rows
    place: Ints
    """Of each series, the number of its cluster, group, topic and partition."""


@dataclass(frozen=True, slots=True, eq=False)
class Hour:
    """Samples in order of series and time, no two of a series at one time, and the series of each."""

    start: int
    samples: Rows
    of: Ints
    series: Series


def hour_of(samples: Rows, carried: Rows, start: int) -> Hour:
    """`samples`: of the hour that starts then, in any order, also several of one series and time; `carried`: CARRIED's
    columns, no two of one series."""
    samples, carried = aligned_texts((samples, carried)) if len(carried) else (samples, carried)
    keys = (
        {name: np.concatenate((samples[name], carried[name])) for name in SERIES} if len(carried) else samples.columns
    )
    topic = numbered(*(keys[name] for name in NAMES))
    place = numbered(topic, keys["partition"])
    number = numbered(place, keys["topic_id"])
    before = _by_number(samples, carried, number, place)
    own = number[: len(samples)]
    moment = own * HOUR_MICROS + (samples["sampled_at"] - start)
    order = np.argsort(moment, kind="stable")
    ordered, moment = samples.taken(order), moment[order]
    is_kept = _is_best(ordered, moment)
    if not is_kept.all():
        ordered, moment = ordered.taken(is_kept), moment[is_kept]
    return Hour(start, ordered, moment // HOUR_MICROS, before)


def deltas_of(hour: Hour) -> Rows:
    """DELTAS' columns, sorted by series and time."""
    samples, known = hour.samples, hour.series.known
    end, committed, at = samples["log_end"], samples["committed"], samples["sampled_at"]
    begins = begins_of(hour.of)
    begin = np.repeat(begins, np.diff(begins, append=len(at)))
    knows_end, knows_commit = end >= 0, committed >= 0
    last_end, last_commit = _last_before(knows_end, begin), _last_before(knows_commit, begin)

    def before(values: Values, last: Ints, carried: str) -> Values:
        return np.where(last >= 0, values[last], known[carried][hour.of])

    end_before, end_at = before(end, last_end, "log_end"), before(at, last_end, "end_at")
    commit_before = before(committed, last_commit, "committed")
    start_before = before(samples["log_start"], last_commit, "log_start")
    has_end, has_commit = knows_end & (end_before >= 0), knows_commit & (commit_before >= 0)
    produced, consumed = end - end_before, committed - commit_before
    is_reset, is_rewind = has_end & (produced < 0), has_commit & (consumed < 0)
    is_beyond = (knows_end & (committed > end)) | (commit_before < start_before)
    is_skip = has_commit & (consumed > 0) & is_beyond
    changes = {
        "seconds": np.where(has_end, (at - end_at) / 1e6, np.nan),
        "produced": np.where(has_end & ~is_reset, produced, UNKNOWN),
        "consumed": np.where(has_commit & ~is_rewind & ~is_skip, consumed, UNKNOWN),
        "lag": _lag(samples),
        "is_reset": is_reset,
        "is_rewind": is_rewind,
        "is_skip": is_skip,
        "is_recreation": _is_recreation(hour, (end_before < 0) & (commit_before < 0)),
    }
    return samples.extended(changes).only(column.name for column in DELTAS)


def carried_of(hour: Hour, remembered: int) -> Rows:
    """CARRIED's columns at the hour's end, sorted by series, without series of which nothing was known for so many
    microseconds."""
    samples, known = hour.samples, hour.series.known
    end, committed, at = samples["log_end"], samples["committed"], samples["sampled_at"]
    last_end, last_commit = _last_of(hour, end >= 0), _last_of(hour, committed >= 0)
    seen = _last_of(hour, (end >= 0) | (committed >= 0))

    def now(values: Values, last: Ints, carried: str) -> Values:
        return np.where(last >= 0, values[last] if len(values) else UNKNOWN, known[carried])

    values = {
        "seen_at": now(at, seen, "seen_at"),
        "end_at": now(at, last_end, "end_at"),
        "log_end": now(end, last_end, "log_end"),
        "committed": now(committed, last_commit, "committed"),
        "log_start": now(samples["log_start"], last_commit, "log_start"),
    }
    return known.extended(values).taken(values["seen_at"] >= max(0, hour.start + HOUR_MICROS - remembered))


def is_known(samples: Rows) -> Flags:
    """Whether a sample's commit (or its absence) and end are known."""
    has_commit: Flags = (samples["committed"] >= 0) | (samples["state"] == samples.code("state", "no_commit"))
    return has_commit & (samples["log_end"] >= 0)


def _by_number(samples: Rows, carried: Rows, number: Ints, place: Ints) -> Series:
    count = int(number.max(initial=-1)) + 1
    of_one = np.zeros(count, np.int64)
    of_one[number] = np.arange(len(number))
    names = {
        name: np.concatenate((samples[name], carried[name])).astype(np.int32, copy=False)[of_one] for name in SERIES
    }
    values = {}
    for column in CARRIED:
        if column.name not in SERIES:
            values[column.name] = np.full(count, UNKNOWN, np.int64)
            values[column.name][number[len(samples) :]] = carried[column.name]
    texts = {name: samples.texts[name] for name in SERIES if name in samples.texts}
    return Series(Rows({**names, **values}, texts), place[of_one])


def _is_best(ordered: Rows, moment: Ints) -> Flags:
    """Of rows of one series and time, the one that is known, and known later; then the one with larger values."""
    is_same = np.concatenate((moment[1:] == moment[:-1], [False])) if len(moment) else np.empty(0, np.bool_)
    is_kept = np.ones(len(moment), np.bool_)
    if is_same.any():
        twins = np.flatnonzero(is_same | np.concatenate(([False], is_same[:-1])))
        rows = ordered.taken(twins)
        values = (
            "interval_seconds",
            "isolation",
            "state",
            "members",
            "log_start",
            "committed",
            "log_end",
            "received_at",
        )
        best_last = np.lexsort([*(rows[name] for name in values), is_known(rows), moment[twins]])
        times = moment[twins][best_last]
        is_kept[twins[best_last]] = np.concatenate((times[1:] != times[:-1], [True]))
    return is_kept


def _last_before(is_told: Flags, begin: Ints) -> Ints:
    """For each row the last one before it, of its series, that tells; negative: none."""
    last = np.empty(len(begin), np.int64)
    last[:1] = UNKNOWN
    last[1:] = np.maximum.accumulate(np.where(is_told, np.arange(len(begin)), UNKNOWN))[:-1]
    return np.where(last >= begin, last, UNKNOWN)


def _last_of(hour: Hour, is_told: Flags) -> Ints:
    """For each series its last row that tells; negative: none."""
    last = np.full(len(hour.series.known), UNKNOWN, np.int64)
    rows = np.flatnonzero(is_told)
    last[hour.of[rows]] = rows
    return last


def _lag(samples: Rows) -> Values:
    end, committed = samples["log_end"], samples["committed"]
    lag = end - np.maximum(committed, samples["log_start"])
    is_state = np.isin(samples["state"], [samples.code("state", state) for state in ("ok", "truncated")])
    return np.where(is_state & (committed >= 0) & (end >= 0) & (lag >= 0), lag, UNKNOWN)


def _is_recreation(hour: Hour, is_first: Flags) -> Flags:
    """The generation's first known sample, where another one of the same partition has an earlier one; a generation
    without `topic_id` is nothing that could be told from the others. `is_first`: nothing was known before."""
    samples, known = hour.samples, hour.series.known
    is_told = (samples["topic_id"] >= 0) & ((samples["log_end"] >= 0) | (samples["committed"] >= 0))
    rows = np.flatnonzero(is_told & is_first)
    first_of_series = np.full(len(known), LATEST, np.int64)
    first_of_series[hour.of[rows]] = samples["sampled_at"][rows]
    was_told = (known["topic_id"] >= 0) & ((known["log_end"] >= 0) | (known["committed"] >= 0))
    first_of_series[was_told] = np.maximum(known["end_at"][was_told], 0)
    first = np.full(int(hour.series.place.max(initial=-1)) + 1, LATEST, np.int64)
    np.minimum.at(first, hour.series.place, first_of_series)
    found = np.zeros(len(samples), np.bool_)
    found[rows] = first[hour.series.place[hour.of[rows]]] < samples["sampled_at"][rows]
    return found
