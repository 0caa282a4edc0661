"""Pure: an hour's samples and what was known before -> deltas.

docs/history.md has the formulas.
"""

from dataclasses import dataclass

import numpy as np

from adapter.verdicts.waits import MARKER, RESIDUE_SECONDS, lag_behind
from spark.rules.trail import is_handover, is_trail
from spark.tables.columns import (
    NOWHERE,
    UNKNOWN,
    Flags,
    Ints,
    TableRows,
    Values,
    aligned_texts,
    begins_of,
    numbered,
    one_of_each,
    unknown,
)
from spark.tables.contract import CARRIED, DELTAS, HOUR_MICROS, NAMES, SERIES

WORTH = ("interval_seconds", "isolation", "state", "members", "log_start", "committed", "log_end", "received_at")
"""Of samples of one series and time, by increasing weight, after whether they are known."""
LATEST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """All series of an hour, those without a sample in it too: CARRIED's columns, as they were before the hour."""

    carried: TableRows
    place: Ints
    """Of each series, the number of its cluster, group, topic and partition."""
    trail: TableRows
    """Earlier log ends, as `spark.rules.trail` has them, in order of series and time, with the `series` of each."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderedSamples:
    """Samples in order of series and time, no two of a series at one time, and the series of each."""

    start: int
    samples: TableRows
    series_of: Ints
    series: Series
    repeated: int
    """Samples that were left out for a better one of the same series and time."""


def ordered_samples(samples: TableRows, carried: TableRows, start: int) -> OrderedSamples:
    """`samples`: of the hour that starts then, with their `writer`, in any order, also several of one series and time;
    `carried`: CARRIED's columns. Samples without some of WORTH's columns do where none is repeated."""
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
    return OrderedSamples(start, ordered, moment // HOUR_MICROS, before, len(samples) - len(ordered))


def deltas_of(hour: OrderedSamples) -> TableRows:
    """DELTAS' columns, sorted by series and time."""
    samples, carried_in = hour.samples, hour.series.carried
    end, committed, at = samples["log_end"], samples["committed"], samples["sampled_at"]
    begins = begins_of(hour.series_of)
    begin = np.repeat(begins, np.diff(begins, append=len(at)))
    samples = samples.extended({"has_marker": has_marker(hour)})
    knows_end, knows_commit = end >= 0, committed >= 0
    last_end, last_commit = _last_before(knows_end, begin), _last_before(knows_commit, begin)

    def before(values: Values, last: Ints, carried: str) -> Values:
        return np.where(last >= 0, values[last], carried_in[carried][hour.series_of])

    end_before, end_at = before(end, last_end, "log_end"), before(at, last_end, "end_at")
    commit_before = before(committed, last_commit, "committed")
    start_before = before(samples["log_start"], last_commit, "log_start")
    has_end, has_commit = knows_end & (end_before >= 0), knows_commit & (commit_before >= 0)
    produced, consumed = end - end_before, committed - commit_before
    is_down, is_back = has_end & (produced < 0), has_commit & (consumed < 0)
    is_beyond = (knows_end & (committed > end)) | (commit_before < start_before)
    is_ahead = has_commit & (consumed > 0) & is_beyond
    is_event = _not_by_handover(hour, last_end, is_down | is_back | is_ahead)
    changes = {
        "seconds": np.where(has_end, (at - end_at) / 1e6, np.nan),
        "produced": np.where(has_end & ~is_down, produced, UNKNOWN),
        "consumed": np.where(has_commit & ~is_back & ~is_ahead, consumed, UNKNOWN),
        "lag": _lag(samples),
        "is_reset": is_down & is_event,
        "is_rewind": is_back & is_event,
        "is_skip": is_ahead & is_event,
        "is_recreation": _is_recreation(hour, (end_before < 0) & (commit_before < 0)),
    }
    return samples.extended(changes).only(column.name for column in DELTAS)


def has_marker(hour: OrderedSamples) -> Flags:
    """Where only a transaction marker follows the commit: as the adapter recognised it, or by the same rule in samples
    in which it did not. The adapter has to wait; afterwards, all samples count of a time in which nothing moved for as
    long as the rule wants, unless the commit then reached the same log end: what was read at last was a message."""
    samples = hour.samples
    is_told: Flags = samples["has_marker"]
    read_committed = samples.code("isolation", "read_committed")
    if read_committed == NOWHERE:
        return is_told
    committed, end, at = samples["committed"], samples["log_end"], samples["sampled_at"]
    may_be = (samples["isolation"] == read_committed) & (samples["state"] == samples.code("state", "ok"))
    may_be &= (committed >= 0) & (end - committed == MARKER) & (samples["members"] > 0)
    begins = begins_of(hour.series_of, committed, may_be)
    lengths = np.diff(begins, append=len(at))
    lasts = at[begins + lengths - 1] - at[begins] >= RESIDUE_SECONDS * 1e6
    after = np.minimum(begins + lengths, len(at) - 1)
    was_read = (hour.series_of[after] == hour.series_of[begins]) & (end[after] == end[begins])
    was_read &= committed[after] == end[begins]
    is_marker: Flags = is_told | (may_be & np.repeat(lasts & ~was_read, lengths))
    return is_marker


def is_known(samples: TableRows) -> Flags:
    """Whether a sample's commit (or its absence) and end are known."""
    has_commit: Flags = (samples["committed"] >= 0) | (samples["state"] == samples.code("state", "no_commit"))
    return has_commit & (samples["log_end"] >= 0)


def _by_number(samples: TableRows, carried: TableRows, number: Ints, place: Ints) -> Series:
    of_one = one_of_each(number)
    names = {name: np.concatenate((samples[name], carried[name])).astype(np.int32, copy=False) for name in SERIES}
    texts = {name: samples.texts[name] for name in (*SERIES, "writer") if name in samples.texts}
    of_series = TableRows({name: codes[of_one] for name, codes in names.items()}, texts)
    number, is_early = number[len(samples) :], is_trail(carried)
    early = np.flatnonzero(is_early)[np.argsort(number[is_early], kind="stable")]
    trail = carried.extended({"series": number}).taken(early)
    return Series(spread(of_series, carried.taken(~is_early), number[~is_early]), place[of_one], trail)


def spread(series: TableRows, carried: TableRows, number: Ints) -> TableRows:
    """CARRIED's columns of all these series; unknown of those that nothing is carried of. `series`: SERIES, and the
    texts of all; `carried`: one row per series, and `number` the place of each one's series."""
    values = {column.name: unknown(column.type, len(series)) for column in CARRIED if column.name not in SERIES}
    for name, of_all in values.items():
        of_all[number] = carried[name]
    return TableRows({**{name: series[name] for name in SERIES}, **values}, series.texts)


def _is_best(ordered: TableRows, moment: Ints) -> Flags:
    """Of rows of one series and time, the one that is known, and known later; then the one with larger values."""
    is_same = np.concatenate((moment[1:] == moment[:-1], [False])) if len(moment) else np.empty(0, np.bool_)
    is_kept = np.ones(len(moment), np.bool_)
    if is_same.any():
        twins = np.flatnonzero(is_same | np.concatenate(([False], is_same[:-1])))
        rows = ordered.taken(twins)
        best_last = np.lexsort([*(rows[name] for name in WORTH if name in rows.columns), is_known(rows), moment[twins]])
        times = moment[twins][best_last]
        is_kept[twins[best_last]] = np.concatenate((times[1:] != times[:-1], [True]))
    return is_kept


def _last_before(is_told: Flags, begin: Ints) -> Ints:
    """For each row the last one before it, of its series, that tells; negative: none."""
    last = np.empty(len(begin), np.int64)
    last[:1] = UNKNOWN
    last[1:] = np.maximum.accumulate(np.where(is_told, np.arange(len(begin)), UNKNOWN))[:-1]
    return np.where(last >= begin, last, UNKNOWN)


def _not_by_handover(hour: OrderedSamples, last_end: Ints, is_change: Flags) -> Flags:
    """These changes, without those across a change of writer. `last_end`: of each row the one before with a known log
    end; negative: none in this hour."""
    is_event, rows = is_change.copy(), np.flatnonzero(is_change)
    samples, carried, series, last = hour.samples, hour.series.carried, hour.series_of[rows], last_end[rows]
    at, writer = samples["sampled_at"], samples["writer"]
    before_at = np.where(last >= 0, at[last], carried["end_at"][series])
    before = np.where(last >= 0, writer[last], carried["writer"][series])
    is_event[rows] = ~is_handover(at[rows], before_at, samples["interval_seconds"][rows], writer[rows], before)
    return is_event


def _lag(samples: TableRows) -> Values:
    end, committed = samples["log_end"], samples["committed"]
    lag = lag_behind(committed, end, samples["log_start"], samples["has_marker"])
    is_state = np.isin(samples["state"], [samples.code("state", state) for state in ("ok", "truncated")])
    return np.where(is_state & (committed >= 0) & (end >= 0) & (lag >= 0), lag, UNKNOWN)


def _is_recreation(hour: OrderedSamples, is_first: Flags) -> Flags:
    """The generation's first known sample, where another one of the same partition has an earlier one; a generation
    without `topic_id` is nothing that could be told from the others. `is_first`: nothing was known before."""
    samples, carried = hour.samples, hour.series.carried
    is_told = (samples["topic_id"] >= 0) & ((samples["log_end"] >= 0) | (samples["committed"] >= 0))
    rows = np.flatnonzero(is_told & is_first)
    first_of_series = np.full(len(carried), LATEST, np.int64)
    first_of_series[hour.series_of[rows]] = samples["sampled_at"][rows]
    was_told = (carried["topic_id"] >= 0) & ((carried["log_end"] >= 0) | (carried["committed"] >= 0))
    first_of_series[was_told] = np.maximum(carried["end_at"][was_told], 0)
    first = np.full(int(hour.series.place.max(initial=-1)) + 1, LATEST, np.int64)
    np.minimum.at(first, hour.series.place, first_of_series)
    is_recreation = np.zeros(len(samples), np.bool_)
    is_recreation[rows] = first[hour.series.place[hour.series_of[rows]]] < samples["sampled_at"][rows]
    return is_recreation
