"""Pure: hours of samples -> what one member of each group can do, learned only from windows in which the group was
saturated. A group that keeps up consumes what is produced: its rate says nothing about what it could do.
"""

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime

import numpy as np

from adapter.verdicts.capacity import HOURS, WINDOW_INTERVALS, WINDOW_SECONDS, BusyWindows, Capacity, capacity_of
from spark.folds.topic_samples import Topics, TopicSamples, carry, previous
from spark.tables.columns import Flags, Ints, Values, begins_of
from spark.tables.contract import HOUR_MICROS

COVERED = 0.75
"""At least this share of a window's time is covered."""
LATE_INTERVALS = 2
LATE_SHARE = 0.01
"""Of the time in which a group had a backlog in an hour. If the wait varies by less, and by less than LATE_INTERVALS,
messages are read at the rate at which they came in: by members that follow late, as if on purpose."""
UNEVEN = 0.2
"""Where the wait is not known, members are saturated if they read this much more or less than is produced."""
SCALED = 1.5
"""Between the 5th and the 95th percentile: if the number of members differs by as much, and what one of them reads does
not, the load was followed by adding and removing members."""
FEWEST_SCALED = 10
"""Windows, below which that may be chance."""
_OF_WINDOWS = tuple(field.name for field in fields(BusyWindows))
_KEPT = ("group", "busy", "is_late", *_OF_WINDOWS)
_TYPES = {"group": np.intp, "hour": np.intp, "is_late": np.bool_}


class Saturation:
    """Of each group, the windows in which members were busy all the time.

    In every sample of the window, at least one topic of the group has a partition with a backlog
    (`spark.rules.totals`); there is no gap, no reset, no rewind, and no change of members. Nor does it begin with a
    sample whose `consumed` goes back to a time in which the lag was not known. A window lies within one hour.
    """

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._was_unknown = np.zeros(len(topics), np.bool_)
        self._windows: list[dict[str, Values]] = []

    def add(self, samples: TopicSamples) -> None:
        """All samples of the next hour."""
        is_unknown = samples["unknown"] > 0
        was_unknown = previous(is_unknown, samples.topic, self._was_unknown)
        carry(self._was_unknown, is_unknown, samples.topic)
        if not len(samples) or not (samples["waiting"] > 0).any():
            return
        windows = _together(_windows_of_topics(samples, is_unknown | was_unknown), self._topics.group)
        windows = _taken(windows, _is_busy(windows))
        windows["is_late"] = _follows_late(windows)
        since = datetime.fromtimestamp(int(samples["sampled_at"][0]) / 1e6, UTC).astimezone(self._topics.zone)
        offset = since.utcoffset()
        ahead = offset.total_seconds() if offset else 0.0
        own = windows | {"hour": ((windows["begin"] + ahead) // 3600 % HOURS).astype(np.intp)}
        self._windows.append({name: own[name] for name in _KEPT})

    def capacities(self) -> list[Capacity | None]:
        """Of each group; None: it was never saturated."""
        none: dict[str, Values] = {name: np.empty(0, _TYPES.get(name, np.float64)) for name in _KEPT}
        columns = {name: np.concatenate([none[name], *(each[name] for each in self._windows)]) for name in _KEPT}
        order = np.lexsort((columns["begin"], columns["group"]))
        columns = {name: column[order] for name, column in columns.items()}
        bounds = np.searchsorted(columns["group"], np.arange(len(self._topics.groups) + 1))
        windows = BusyWindows(*(columns[name] for name in _OF_WINDOWS))
        return [
            capacity_of(windows.taken(np.arange(first, last)[_shows_capacity(columns, slice(first, last))]))
            for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]


def _windows_of_topics(samples: TopicSamples, is_doubtful: Flags) -> dict[str, Values]:
    """One row for each topic and window."""
    length = np.maximum(float(WINDOW_SECONDS), np.ceil(samples.interval * WINDOW_INTERVALS))
    window = np.floor(samples["sampled_at"] % HOUR_MICROS / (length * 1e6))
    order = np.lexsort((window, length, samples.topic))  # an interval may change within an hour, and back
    samples, length, window, is_doubtful = samples.taken(order), length[order], window[order], is_doubtful[order]
    begins = begins_of(samples.topic, length, window)
    waiting, members = samples["waiting"].astype(np.float64), samples["members"].astype(np.float64)
    seconds, consumed = np.nan_to_num(samples["seconds"]), samples["consumed"].astype(np.float64)
    is_doubtful = is_doubtful | (members < 0) | samples.is_disturbed
    wait = np.where(samples["wait_is_bound"], np.nan, samples["wait_seconds"])
    summed = {
        "waiting_seconds": waiting * seconds,
        "waiting_consumed": samples["waiting_consumed"].astype(np.float64),
        "consumed": np.maximum(consumed, 0),
        "produced": np.maximum(samples["produced"], 0).astype(np.float64),
        "commits": (samples["waiting_consumed"] > 0).astype(np.float64),
        "seconds": seconds,
        "doubtful": is_doubtful.astype(np.float64),
    }
    fewest, most = np.minimum.reduceat(members, begins), np.maximum.reduceat(members, begins)
    return {
        "topic": samples.topic[begins],
        "length": length[begins],
        "window": window[begins],
        "hour_begin": samples["sampled_at"][begins] // HOUR_MICROS * 3600.0,
        "interval": np.maximum.reduceat(samples.interval, begins),
        **{name: np.add.reduceat(column, begins) for name, column in summed.items()},
        "is_waiting": np.minimum.reduceat(waiting, begins) > 0,
        "shortest": np.minimum.reduceat(wait, begins),
        "longest": np.maximum.reduceat(wait, begins),
        "members": fewest,
        "changes": most - fewest,
        "partitions": np.maximum.reduceat(samples["partitions"].astype(np.float64), begins),
    }


def _together(topics: Mapping[str, Values], group_of: Ints) -> dict[str, Values]:
    """One row for each group and window. Of topics without a backlog, each member is taken to read an equal part; those
    with a backlog have one reader for each of their partitions at most."""
    group = group_of[topics["topic"]]
    order = np.lexsort((topics["window"], topics["length"], group))
    by_window = {"group": group[order], **{name: column[order] for name, column in topics.items()}}
    begins = begins_of(by_window["group"], by_window["length"], by_window["window"])
    is_waiting = by_window["is_waiting"]

    def added(column: Values) -> Values:
        total: Values = np.add.reduceat(column, begins)
        return total

    partitions = by_window["partitions"]
    with np.errstate(divide="ignore", invalid="ignore"):
        of_each = by_window["waiting_consumed"] / by_window["waiting_seconds"]
        quiet = np.where(is_waiting, 0.0, by_window["consumed"] / by_window["seconds"])
    members = np.minimum(np.minimum.reduceat(by_window["members"], begins), added(partitions))
    busy = np.minimum(members, added(np.where(is_waiting, partitions, 0.0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = added(np.where(is_waiting, of_each * partitions, 0.0)) / busy + added(np.nan_to_num(quiet)) / members
    seconds = np.maximum.reduceat(by_window["seconds"], begins)
    return {
        **{name: by_window[name][begins] for name in ("group", "length")},
        "begin": by_window["hour_begin"][begins] + by_window["window"][begins] * by_window["length"][begins],
        "seconds": seconds,
        "rate": rate,
        "messages": added(np.where(is_waiting, by_window["consumed"], 0.0)),
        "produced": added(np.where(is_waiting, by_window["produced"], 0.0)),
        "commits": np.maximum.reduceat(np.where(is_waiting, by_window["commits"], 0.0), begins),
        "interval": np.maximum.reduceat(by_window["interval"], begins),
        "shortest": np.minimum.reduceat(np.where(is_waiting, by_window["shortest"], np.inf), begins),
        "longest": np.maximum.reduceat(np.where(is_waiting, by_window["longest"], -np.inf), begins),
        "busy": busy,
        "changes": np.maximum.reduceat(by_window["changes"], begins),
        "doubtful": added(by_window["doubtful"]),
    }


def _taken(windows: Mapping[str, Values], keep: Flags) -> dict[str, Values]:
    return {name: column[keep] for name, column in windows.items()}


def _is_busy(windows: Mapping[str, Values]) -> Flags:
    is_clean = (windows["doubtful"] == 0) & (windows["changes"] == 0) & (windows["busy"] > 0)
    is_busy: Flags = is_clean & (windows["seconds"] >= COVERED * windows["length"])
    return is_busy


def _follows_late(windows: Mapping[str, Values]) -> Flags:
    """Whether consumption follows production at a distance, by the windows of a group's hour together: the oldest
    message waits for the same time throughout. With saturated members it does so by chance alone."""
    group, wait = windows["group"], windows["longest"]
    begins = begins_of(group)
    if not len(begins):
        return np.zeros(0, np.bool_)
    varies = np.fmax.reduceat(wait, begins) - np.fmin.reduceat(windows["shortest"], begins)
    limit = np.maximum(
        LATE_INTERVALS * np.maximum.reduceat(windows["interval"], begins),
        LATE_SHARE * np.add.reduceat(windows["length"], begins),
    )
    is_late = np.repeat(varies < limit, np.diff(begins, append=len(group)))
    is_even = np.abs(windows["messages"] - windows["produced"]) < UNEVEN * windows["produced"]
    late: Flags = np.where(np.isnan(wait), is_even, is_late)
    return late


def _shows_capacity(windows: Mapping[str, Values], own: slice) -> Flags:
    """Of one group's windows: not those in which it follows late, unless its members were scaled, and late with it."""
    is_late: Flags = windows["is_late"][own]
    late = is_late & (windows["commits"][own] > 0)
    is_scaled = np.count_nonzero(late) >= FEWEST_SCALED and _were_scaled(
        windows["busy"][own][late], windows["rate"][own][late]
    )
    return np.ones(len(is_late), np.bool_) if is_scaled else ~is_late


def _were_scaled(members: Values, rate: Values) -> bool:
    """Whether members came and went with the load, each reading as much as ever. Behind an autoscaler that goes by the
    lag, messages always wait about as long, as behind a consumer that reads late on purpose; but the members of that
    one read whatever came in."""
    (fewest, most), (slowest, fastest) = (np.percentile(column, (5, 95)) for column in (members, rate))
    return bool(most >= SCALED * fewest and fastest < SCALED * slowest)
