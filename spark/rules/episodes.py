"""Pure: hours of samples -> how often and how long each topic's lag was above its threshold.

An episode begins with a first sample above the threshold and ends one interval after the last. It crosses hours.
"""

from __future__ import annotations

import numpy as np

from spark.rules.topic_samples import Samples, Topics, carry, previous
from spark.tables.columns import UNKNOWN, Values, begins_of

END_OF_EPISODE = 5
"""After so many intervals without a known lag nobody can say that an episode went on."""


class Episodes:
    """One value for each topic in every column."""

    def __init__(self, topics: Topics) -> None:
        size = len(topics)
        self._thresholds = topics.thresholds
        self._number, self._longest_seconds = np.zeros(size, np.int64), np.zeros(size)
        self._longest_from, self._open_from = np.full(size, UNKNOWN, np.int64), np.full(size, UNKNOWN, np.int64)
        self._sampled_at, self._was_above = np.zeros(size, np.int64), np.zeros(size, np.bool_)

    def add(self, samples: Samples) -> None:
        """The samples of the next hour that have a known lag."""
        topic, at, interval = samples.topic, samples["sampled_at"], samples.interval
        is_above = samples["lag"] > self._thresholds[topic]
        is_near = at - previous(at, topic, self._sampled_at) <= END_OF_EPISODE * 1e6 * interval
        goes_on = previous(is_above, topic, self._was_above) & is_near
        carry(self._sampled_at, at, topic)
        carry(self._was_above, is_above, topic)
        if is_above.any():
            self._add_above(topic[is_above], at[is_above], interval[is_above], goes_on[is_above])

    def columns(self) -> dict[str, Values]:
        return {
            "episodes": self._number,
            "longest_seconds": self._longest_seconds,
            "longest_from": self._longest_from,
        }

    def _add_above(self, topic: Values, at: Values, interval: Values, goes_on: Values) -> None:
        """Of the samples above the threshold. An episode that goes on in the next hour is measured again there."""
        is_first = np.zeros(len(topic), np.bool_)
        is_first[begins_of(topic)] = True
        first = np.flatnonzero(is_first | ~goes_on)
        last = np.append(first[1:], len(topic)) - 1
        began = np.where(goes_on[first], self._open_from[topic[first]], at[first])
        seconds = (at[last] - began) / 1e6 + interval[last]
        self._number += np.bincount(topic[first][~goes_on[first]], minlength=len(self._number))
        carry(self._open_from, began, topic[first])
        self._keep_longest(topic[first], began, seconds)

    def _keep_longest(self, topic: Values, began: Values, seconds: Values) -> None:
        """The first of several that are equally long."""
        order = np.lexsort((began, -seconds, topic))
        best = order[begins_of(topic[order])]
        longer = best[seconds[best] > self._longest_seconds[topic[best]]]
        self._longest_seconds[topic[longer]], self._longest_from[topic[longer]] = seconds[longer], began[longer]
