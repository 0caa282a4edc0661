"""Totals of each sample as Arrow -> what only samples can tell, in the driver: for what fits into memory.

A week of eight groups is half a million rows: numpy is done with them before a JVM has started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark.advice.capacity import IN_FLIGHT_SECONDS, WINDOW_SECONDS
from spark.figures.model import Floats, Jumps, Lag, Pace, Windows
from spark.rules.told import (
    COVERED,
    END_OF_EPISODE,
    EVENTS,
    WINDOW_INTERVALS,
    Episodes,
    Ints,
    Key,
    Measured,
    Pair,
    Told,
    runs,
    series_of,
    time_of_micros,
)
from spark.tables.contract import HOUR_MICROS


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Columns of one length; NaN: not known."""

    at: Ints
    """Microseconds UTC."""
    interval: Floats
    lag: Floats
    consumed: Floats


def told_in_memory(totals: pa.Table, thresholds: Mapping[Key, int]) -> Told:
    """`totals` has told.COLUMNS; of topics without a threshold only the windows are asked for."""
    keys, topic = series_of(totals)
    measured: dict[Key, Measured] = {}
    episodes: dict[Key, Episodes] = {}
    for key, samples in _by_topic(totals, keys, topic).items():
        if key in thresholds and len(samples.at):
            measured[key] = measured_of(samples, thresholds[key])
            if measured[key].lag.max > thresholds[key]:
                episodes[key] = episodes_of(samples, thresholds[key])
    return Told(measured, episodes, windows_of(totals, keys, topic), jumps_of(totals, keys, topic))


def measured_of(samples: Samples, threshold: int) -> Measured:
    """Of at least one sample, in order of time, each with a known lag."""
    p50, p95, p99 = (float(value) for value in np.percentile(samples.lag, (50, 95, 99)))
    is_lagging = samples.lag > 0
    return Measured(
        lag=Lag(
            len(samples.lag), p50, p95, p99, float(samples.lag.max()), float(samples.lag[0]), float(samples.lag[-1])
        ),
        seconds_above=float(samples.interval[samples.lag > threshold].sum()),
        known_seconds=float(samples.interval.sum()),
        pace=Pace(int(is_lagging.sum()), int((is_lagging & (samples.consumed > 0)).sum())),
    )


def episodes_of(samples: Samples, threshold: int) -> Episodes:
    """Of samples in order of time, at least one of them above, each with a known lag."""
    is_above = samples.lag > threshold
    is_near = np.diff(samples.at) <= END_OF_EPISODE * 1e6 * samples.interval[1:]
    goes_on = np.concatenate(([False], is_above[:-1] & is_near))
    first = np.flatnonzero(is_above & ~goes_on)
    above = np.flatnonzero(is_above)
    last = above[np.searchsorted(above, [*first[1:], len(is_above)]) - 1]
    seconds = (samples.at[last] - samples.at[first]) / 1e6 + samples.interval[last]
    longest = int(np.argmax(seconds))
    return Episodes(len(first), float(seconds[longest]), _time(samples.at[first[longest]]))


def windows_of(totals: pa.Table, keys: list[Key], topic: Ints) -> dict[Pair, Windows]:
    """The saturated ones of each group, as `told_by_spark.saturated_windows_of` describes them."""
    pairs, group_of = _pairs(keys)
    if not pairs:
        return {}
    group, windows = _of_group(_of_topic(totals, topic), group_of)
    return {
        pairs[group[run.start]]: Windows(windows.seconds[run], windows.consumed[run], windows.members[run])
        for run in runs(group)
    }


def jumps_of(totals: pa.Table, keys: list[Key], topic: Ints) -> dict[Pair, Jumps]:
    """Of groups that have any, as `told_by_spark.jumps_of` describes them."""
    pairs, group_of = _pairs(keys)
    consumed, is_disturbed = np.nan_to_num(_numbers(totals, "consumed")), _is_disturbed(totals)
    moved = np.flatnonzero((consumed > 0) & (is_disturbed | (_numbers(totals, "members") == 0)))
    if not len(moved):
        return {}
    group, hour = group_of[topic[moved]], _micros(totals)[moved] // HOUR_MICROS
    order = np.lexsort((hour, group))
    begins = _begins(group[order], hour[order])
    jumped, disturbed = consumed[moved][order], is_disturbed[moved][order]
    start = (hour[order][begins] * HOUR_MICROS).astype("datetime64[us]")
    sums = [np.add.reduceat(np.where(counts, jumped, 0.0), begins) for counts in (disturbed, ~disturbed)]
    group = group[order][begins]
    return {pairs[group[run.start]]: Jumps(start[run], *(column[run] for column in sums)) for run in runs(group)}


def _pairs(keys: list[Key]) -> tuple[list[Pair], Ints]:
    """The groups, and for each key the place of its group among them."""
    pairs = sorted({key[:2] for key in keys})
    place = {pair: number for number, pair in enumerate(pairs)}
    return pairs, np.array([place[key[:2]] for key in keys], np.int64)


def _of_topic(totals: pa.Table, topic: Ints) -> dict[str, Floats]:
    """One row per topic and window."""
    interval, at = _numbers(totals, "interval_seconds"), _micros(totals)
    size = np.maximum(float(WINDOW_SECONDS), np.ceil(interval * WINDOW_INTERVALS))
    window = np.floor(at / (size * 1e6))
    order = np.lexsort((window, size, topic))
    lag, produced, consumed, members = (
        _numbers(totals, name)[order] for name in ("lag", "produced", "consumed", "members")
    )
    begins = _begins(topic[order], size[order], window[order])
    is_doubtful = _is_disturbed(totals) | _was_unknown(totals, topic)
    doubtful = np.isnan(lag + produced + consumed + members) | is_doubtful[order]
    return {
        "topic": topic[order][begins],
        "size": size[order][begins],
        "window": window[order][begins],
        "least": np.minimum.reduceat(np.minimum(lag, lag - produced + consumed), begins),
        "seconds": np.add.reduceat(np.nan_to_num(_numbers(totals, "seconds")[order]), begins),
        "produced": np.add.reduceat(produced, begins),
        "consumed": np.add.reduceat(consumed, begins),
        "members": np.minimum.reduceat(members, begins),
        "changes": np.maximum.reduceat(members, begins) - np.minimum.reduceat(members, begins),
        "partitions": np.maximum.reduceat(_numbers(totals, "partitions")[order], begins),
        "doubtful": np.add.reduceat(doubtful.astype(np.float64), begins),
    }


def _of_group(topics: Mapping[str, Floats], group_of: Ints) -> tuple[Ints, Windows]:
    """The group of each window that was saturated, in order, and these windows."""
    group = group_of[topics["topic"].astype(np.int64)]
    order = np.lexsort((topics["window"], topics["size"], group))
    of = {name: column[order] for name, column in topics.items()}
    begins = _begins(group[order], of["size"], of["window"])
    added = {
        name: np.add.reduceat(of[name], begins) for name in ("least", "produced", "consumed", "partitions", "doubtful")
    }
    seconds = np.maximum.reduceat(of["seconds"], begins)
    members = np.minimum(np.minimum.reduceat(of["members"], begins), added["partitions"])
    in_flight = IN_FLIGHT_SECONDS * np.divide(added["produced"], seconds, out=np.zeros_like(seconds), where=seconds > 0)
    is_clean = (added["doubtful"] == 0) & (np.maximum.reduceat(of["changes"], begins) == 0) & (members > 0)
    is_covered = seconds >= COVERED * of["size"][begins]
    kept = is_clean & is_covered & (added["least"] > np.maximum(0.0, in_flight))
    return group[order][begins][kept], Windows(seconds[kept], added["consumed"][kept], members[kept])


def _begins(*sorted_columns: NDArray[np.generic]) -> Ints:
    """Places at which any of them has another value than before."""
    differs = np.logical_or.reduce([column[1:] != column[:-1] for column in sorted_columns])
    return np.concatenate(([0], np.flatnonzero(differs) + 1))


def _by_topic(totals: pa.Table, keys: list[Key], topic: Ints) -> dict[Key, Samples]:
    """In order of time, those with a known lag."""
    at, lag = _micros(totals), _numbers(totals, "lag")
    order = np.lexsort((at, topic))
    order = order[~np.isnan(lag[order])]
    interval, consumed = _numbers(totals, "interval_seconds"), _numbers(totals, "consumed")
    ordered = topic[order]
    places = {keys[ordered[run.start]]: order[run] for run in runs(ordered)}
    return {key: Samples(at[own], interval[own], lag[own], consumed[own]) for key, own in places.items()}


def _was_unknown(totals: pa.Table, topic: Ints) -> NDArray[np.bool_]:
    """Whether the lag of the topic's sample before was not known: what was consumed since goes back further."""
    order = np.lexsort((_micros(totals), topic))
    is_unknown, same = np.isnan(_numbers(totals, "lag"))[order], np.diff(topic[order]) == 0
    found = np.zeros(len(order), np.bool_)
    found[order[1:]] = is_unknown[:-1] & same
    return found


def _is_disturbed(totals: pa.Table) -> NDArray[np.bool_]:
    """What says nothing about a capacity, though all is known."""
    events = sum(np.nan_to_num(_numbers(totals, name)) for name in EVENTS)
    is_after_gap: NDArray[np.bool_] = totals["is_after_gap"].to_numpy().astype(bool)
    return is_after_gap | (np.asarray(events) > 0)


def _numbers(totals: pa.Table, name: str) -> Floats:
    """Whole numbers are exact to 2 ** 53, more than any lag."""
    numbers: Floats = totals[name].to_numpy().astype(np.float64)
    return numbers


def _micros(totals: pa.Table) -> Ints:
    micros: Ints = totals["sampled_at"].cast(pa.int64()).to_numpy()
    return micros


def _time(micros: np.int64) -> datetime:
    return time_of_micros(int(micros))
