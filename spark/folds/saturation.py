"""Pure: hours of samples -> what one member of each group can do, learned only from windows in which the group was
saturated. A group that keeps up consumes what is produced: its rate says nothing about what it could do.
"""

from collections.abc import Mapping

import numpy as np

from spark.folds.topic_samples import Topics, TopicSamples, carry, previous
from spark.rules.percentiles import percentiles_of
from spark.tables.columns import Flags, Ints, Values, begins_of
from spark.tables.contract import HOUR_MICROS

WINDOW_SECONDS = 60
"""A window is at least this long: commits come in steps, so shorter ones measure the step."""
WINDOW_INTERVALS = 4
COVERED = 0.75
"""At least this share of a window's time is covered."""


class Saturation:
    """Of each group, the windows in which members were busy all the time.

    In every sample of the window, each topic of the group has a partition with a backlog (`spark.rules.totals`); there
    is no gap, no reset, no rewind, and no change of members. Nor does it begin with a sample whose `consumed` goes back
    to a time in which the lag was not known. A window lies within one hour.
    """

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._was_unknown = np.zeros(len(topics), np.bool_)
        self._group: list[Ints] = []
        self._seconds: list[Values] = []
        self._rates: list[Values] = []
        """Messages per second and member."""

    def add(self, samples: TopicSamples) -> None:
        """All samples of the next hour."""
        is_unknown = samples["lag"] < 0
        was_unknown = previous(is_unknown, samples.topic, self._was_unknown)
        carry(self._was_unknown, is_unknown, samples.topic)
        of_group = _together(_windows_of_topics(samples, was_unknown), self._topics.group)
        windows = {name: column[_is_saturated(of_group)] for name, column in of_group.items()}
        self._group.append(windows["group"].astype(np.int64))
        self._seconds.append(windows["seconds"])
        of_each = windows["waiting_consumed"] / windows["waiting_seconds"]
        self._rates.append(of_each * windows["partitions"] / windows["members"])

    def columns(self) -> dict[str, Values]:
        """One value for each group; 0 windows and NaN for one that was never saturated."""
        group, seconds, rates = (
            np.concatenate([np.empty(0), *parts]) for parts in (self._group, self._seconds, self._rates)
        )
        order = np.argsort(group, kind="stable")
        number = len(self._topics.groups)
        windows = np.bincount(group.astype(np.int64), minlength=number)
        return {
            "windows": windows,
            "seconds": np.bincount(group.astype(np.int64), seconds, minlength=number),
            **percentiles_of(rates[order], windows, 50, 95),
        }


def _windows_of_topics(samples: TopicSamples, was_unknown: Values) -> dict[str, Values]:
    """One row for each topic and window."""
    size = np.maximum(float(WINDOW_SECONDS), np.ceil(samples.interval * WINDOW_INTERVALS))
    window = np.floor(samples["sampled_at"] % HOUR_MICROS / (size * 1e6))
    order = np.lexsort((window, size, samples.topic))  # an interval may change within an hour, and back
    samples, size, window, was_unknown = samples.taken(order), size[order], window[order], was_unknown[order]
    begins = begins_of(samples.topic, size, window)
    waiting, members = samples["waiting"].astype(np.float64), samples["members"].astype(np.float64)
    seconds = np.nan_to_num(samples["seconds"])
    is_doubtful = (samples["lag"] < 0) | (members < 0) | samples.is_disturbed | was_unknown
    fewest, most = np.minimum.reduceat(members, begins), np.maximum.reduceat(members, begins)
    return {
        "topic": samples.topic[begins],
        "size": size[begins],
        "window": window[begins],
        "least_waiting": np.minimum.reduceat(waiting, begins),
        "waiting_seconds": np.add.reduceat(waiting * seconds, begins),
        "waiting_consumed": np.add.reduceat(samples["waiting_consumed"].astype(np.float64), begins),
        "seconds": np.add.reduceat(seconds, begins),
        "members": fewest,
        "changes": most - fewest,
        "partitions": np.maximum.reduceat(samples["partitions"].astype(np.float64), begins),
        "doubtful": np.add.reduceat(is_doubtful.astype(np.float64), begins),
    }


def _together(topics: Mapping[str, Values], group_of: Ints) -> dict[str, Values]:
    """One row for each group and window: the group's members work at all its topics."""
    group = group_of[topics["topic"]]
    order = np.lexsort((topics["window"], topics["size"], group))
    ordered = {"group": group[order], **{name: column[order] for name, column in topics.items()}}
    begins = begins_of(ordered["group"], ordered["size"], ordered["window"])
    added = {
        name: np.add.reduceat(ordered[name], begins)
        for name in ("waiting_seconds", "waiting_consumed", "partitions", "doubtful")
    }
    return {
        **{name: ordered[name][begins] for name in ("group", "size")},
        **added,
        **{name: np.maximum.reduceat(ordered[name], begins) for name in ("seconds", "changes")},
        "least_waiting": np.minimum.reduceat(ordered["least_waiting"], begins),
        "members": np.minimum(np.minimum.reduceat(ordered["members"], begins), added["partitions"]),
    }


def _is_saturated(windows: Mapping[str, Values]) -> Flags:
    """A group that stands still shows what it does, not what it can do."""
    is_clean = (windows["doubtful"] == 0) & (windows["changes"] == 0) & (windows["members"] > 0)
    is_covered = windows["seconds"] >= COVERED * windows["size"]
    is_busy = (windows["least_waiting"] > 0) & (windows["waiting_consumed"] > 0)
    is_saturated: Flags = is_clean & is_covered & is_busy
    return is_saturated
