"""Pure: one hour's deltas -> its totals and partitions, and which partitions had a backlog throughout, so that their
member was busy all the time."""

import numpy as np

from adapter.verdicts.capacity import IN_FLIGHT_SECONDS
from adapter.verdicts.waits import lag_without_commit
from spark.tables.columns import UNKNOWN, Flags, Ints, TableRows, Values, begins_of, numbered
from spark.tables.contract import EVENTS, GAP, HOUR_MICROS, NAMES, PARTITIONS, TOTALS

LARGEST = np.iinfo(np.int64).max


def topic_totals_of(deltas: TableRows) -> TableRows:
    """TOTALS' columns, sorted by topic and time; `deltas`: of one hour, sorted by series, with the columns of
    `spark.rules.waits`."""
    topic = numbered(*(deltas[name] for name in NAMES))
    moment = topic * HOUR_MICROS + deltas["sampled_at"] % HOUR_MICROS
    order = np.argsort(moment, kind="stable")
    begins = begins_of(moment[order])
    partitions = np.diff(begins, append=len(order))
    moment[order] = np.repeat(np.arange(len(begins)), partitions)
    state = deltas["state"]
    is_uncommitted, is_stale = (state == deltas.code("state", each) for each in ("no_commit", "stale"))
    is_settled = (deltas["lag"] >= 0) | (is_uncommitted & (deltas["log_end"] >= 0))
    lags = deltas["lag"][order]
    lag, with_lag = sums(lags, begins)
    unknown = counts((~is_stale & ~is_settled)[order], begins)
    has_lag = (unknown == 0) & (with_lag > 0)
    produced, _ = sums(deltas["produced"][order], begins)
    seconds = deltas["seconds"][order]
    is_waiting = has_backlog(deltas, moment)[order]
    interval = greatest(deltas["interval_seconds"][order], begins)
    bounds = deltas["wait_is_bound"]  # seldom any
    is_bound = counts(bounds[order], begins) > 0 if bounds.any() else np.zeros(len(begins), np.bool_)
    first = order[begins]
    columns = {
        **{name: deltas[name][first] for name in (*NAMES, "sampled_at")},
        "interval_seconds": interval,
        "lag": np.where(has_lag, lag, UNKNOWN),
        "lag_max": np.where(has_lag, greatest(lags, begins), UNKNOWN),
        "wait_seconds": np.where(has_lag, np.fmax.reduceat(deltas["wait_seconds"][order], begins), np.nan),
        "wait_is_bound": has_lag & is_bound,
        "partitions_with_lag": np.where(has_lag, counts(lags > 0, begins), UNKNOWN),
        "partitions": partitions,
        "uncommitted": counts(is_uncommitted[order], begins),
        "stale": counts(is_stale[order], begins),
        "unknown": unknown,
        "members": greatest(deltas["members"][order], begins),
        "seconds": seconds_of(np.where(deltas["produced"][order] >= 0, seconds, np.nan), begins) / partitions,
        "produced": produced,
        "consumed": sums(deltas["consumed"][order], begins)[0],
        "waiting": counts(is_waiting, begins),
        "waiting_consumed": sums(np.where(is_waiting, deltas["consumed"][order], 0), begins)[0],
        **{name: counts(deltas[f"is_{name.removesuffix('s')}"][order], begins) for name in EVENTS},
        "is_after_gap": least(seconds, begins) > interval.astype(np.float64) * GAP,
    }
    return TableRows(columns, deltas.texts).only(column.name for column in TOTALS)


def partitions_of(deltas: TableRows) -> TableRows:
    """PARTITIONS' columns; `deltas`: of one hour, sorted by series."""
    begins = begins_of(*(deltas[name] for name in (*NAMES, "partition")))
    seconds = np.where(deltas["produced"] >= 0, deltas["seconds"], np.nan)
    last = _last_of(deltas["sampled_at"], begins)
    has_moved = (deltas["consumed"] > 0) | deltas["is_rewind"] | deltas["is_skip"] | (deltas["lag"] == 0)
    columns = {
        **{name: deltas[name][begins] for name in (*NAMES, "partition")},
        "starts_at": deltas["sampled_at"][begins] // HOUR_MICROS * HOUR_MICROS,
        "samples": np.diff(begins, append=len(deltas)),
        "seconds": seconds_of(seconds, begins),
        **{name: sums(deltas[name], begins)[0] for name in ("produced", "consumed")},
        "lag_max": greatest(deltas["lag"], begins),
        "moved_at": greatest(np.where(has_moved, deltas["sampled_at"], UNKNOWN), begins),
        "uncommitted_lag": _uncommitted_lag(deltas)[last],
        "owner": deltas["owner"][last],
    }
    return TableRows(columns, deltas.texts).only(column.name for column in PARTITIONS)


def _uncommitted_lag(deltas: TableRows) -> Values:
    """A log start that is not known is as unknown as a log end."""
    is_latest, is_earliest = (
        deltas["offset_reset"] == deltas.code("offset_reset", it) for it in ("latest", "earliest")
    )
    end, start, last = deltas["log_end"], deltas["log_start"], deltas["last_commit"]
    counts_offsets = is_earliest | (last >= 0)
    is_known = np.where(counts_offsets, (end >= 0) & (start >= 0), is_latest)
    is_known &= deltas["state"] == deltas.code("state", "no_commit")
    return np.where(is_known, lag_without_commit(end, start, is_earliest, last, deltas["has_marker"]), UNKNOWN)


def _last_of(sampled_at: Values, begins: Ints) -> Ints:
    """The place of each segment's latest row: the generations of a partition follow each other by their ids."""
    latest = np.repeat(np.maximum.reduceat(sampled_at, begins), np.diff(begins, append=len(sampled_at)))
    places = np.where(sampled_at == latest, np.arange(len(sampled_at)), UNKNOWN)
    last: Ints = np.maximum.reduceat(places, begins)
    return last


def sums(values: Values, begins: Ints) -> tuple[Values, Ints]:
    """Of what is known, unknown where nothing is or where no 64 bits hold it; and how many are known."""
    is_told = values >= 0
    number = counts(is_told, begins)
    told = values if is_told.all() else np.where(is_told, values, 0)
    total = np.add.reduceat(told, begins, dtype=np.result_type(told, np.int64))
    return np.where((number > 0) & ~_is_beyond(told, begins), total, UNKNOWN), number


def _is_beyond(told: Values, begins: Ints) -> Flags:
    """Whether a sum of whole numbers has more than 64 bits; few values are large enough to be asked one by one."""
    if told.dtype.kind == "f" or int(told.max(initial=0)) * len(told) <= LARGEST:
        return np.zeros(len(begins), np.bool_)
    is_beyond: Flags = np.add.reduceat(told, begins, dtype=np.float64) >= LARGEST
    return is_beyond


def seconds_of(values: Values, begins: Ints) -> Values:
    """Sums of what is a number; NaN where nothing is."""
    total = np.add.reduceat(np.nan_to_num(values), begins)
    return np.where(counts(~np.isnan(values), begins) > 0, total, np.nan)


def counts(flags: Flags, begins: Ints) -> Ints:
    if not flags.any():
        return np.zeros(len(begins), np.int64)
    numbers: Ints = np.add.reduceat(flags, begins, dtype=np.int64)
    return numbers


def greatest(values: Values, begins: Ints) -> Values:
    largest: Values = np.maximum.reduceat(values, begins)
    return largest


def least(values: Values, begins: Ints) -> Values:
    """Of what is a number; NaN where nothing is."""
    smallest: Values = np.fmin.reduceat(values, begins)
    return smallest


def has_backlog(deltas: TableRows, moment: Ints) -> Flags:
    """Whether a lag outlasted each sample. `deltas`: one hour, sorted by series; `moment`: 0, 1, … for each topic and
    sample. Where the owner of a partition is known, it counts only if all partitions of that owner have a backlog: a
    member with little to do shows what it did, not what it can do."""
    lag, produced, consumed = deltas["lag"], deltas["produced"], deltas["consumed"]
    is_known = (lag >= 0) & (produced >= 0) & (consumed >= 0)
    least = np.minimum(lag, lag - produced + consumed)
    has_own: Flags = is_known & (least > IN_FLIGHT_SECONDS * _production_rate(deltas))
    is_owned = deltas["owner"] >= 0
    if has_own.any() and is_owned.any():
        owner = numbered(moment, _owner_in_topic(deltas))
        is_idle = np.bincount(owner[is_owned & ~has_own], minlength=int(owner.max()) + 1) > 0
        has_own &= ~(is_owned & is_idle[owner])
    return has_own


def _owner_in_topic(deltas: TableRows) -> Ints:
    """Of each row its owner as a small number, so that those of a moment can be counted without sorting them."""
    topic = numbered(*(deltas[name] for name in NAMES))
    owner, begins = numbered(topic, deltas["owner"]), begins_of(topic)
    first: Ints = np.repeat(np.minimum.reduceat(owner, begins), np.diff(begins, append=len(topic)))
    return owner - first


def _production_rate(deltas: TableRows) -> Values:
    """Of each row's partition, over the hour: in a single sample it is chance."""
    begins = begins_of(*(deltas[name] for name in (*NAMES, "partition")))
    is_known = deltas["produced"] >= 0
    produced = np.add.reduceat(np.where(is_known, deltas["produced"], 0.0), begins)
    seconds = np.add.reduceat(np.where(is_known, deltas["seconds"], 0.0), begins)
    rate = np.divide(produced, seconds, out=np.zeros(len(begins)), where=seconds > 0)
    return np.repeat(rate, np.diff(begins, append=len(deltas)))
