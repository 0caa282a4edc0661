"""Pure: hours of samples -> how often and how long each topic's lag was above its threshold.

An episode begins with a first sample above the threshold and ends one interval after the last. It crosses hours, and
gaps over which no commit moved: the lag did not fall in them.
"""

import numpy as np

from spark.folds.topic_samples import Topics, TopicSamples, carry, previous
from spark.tables.columns import UNKNOWN, Ints, Values, begins_of
from spark.tables.contract import EVENTS

END_OF_EPISODE = 5
"""After so many intervals without a known lag nobody can say that an episode went on."""


class Episodes:
    """One value for each topic in every column."""

    def __init__(self, topics: Topics) -> None:
        size = len(topics)
        self._thresholds = topics.thresholds
        self._number, self._longest_seconds = np.zeros(size, np.int64), np.zeros(size)
        self._longest_from, self._open_from = np.full(size, UNKNOWN, np.int64), np.full(size, UNKNOWN, np.int64)
        self._first_from = np.full(size, UNKNOWN, np.int64)
        self._last_until, self._longest_quiet = np.full(size, UNKNOWN, np.int64), np.zeros(size)
        self._sampled_at, self._was_above = np.zeros(size, np.int64), np.zeros(size, np.bool_)
        self._moves, self._moves_of_known = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._bridged_seconds = np.zeros(size)

    def add(self, samples: TopicSamples) -> None:
        """All samples of the next hour."""
        moves, is_known = self._moves_until(samples), samples["lag"] >= 0
        samples, moves = samples.taken(is_known), moves[is_known]
        topic, at, interval = samples.topic, samples["sampled_at"], samples.interval
        is_above = samples["lag"] > self._thresholds[topic]
        passed = at - previous(at, topic, self._sampled_at)
        is_near = passed <= END_OF_EPISODE * 1e6 * interval
        stood_still = moves == previous(moves, topic, self._moves_of_known)
        goes_on = is_above & previous(is_above, topic, self._was_above) & (is_near | stood_still)
        bridged = np.where(goes_on & ~is_near, passed / 1e6 - interval, 0.0)
        self._bridged_seconds += np.bincount(topic, bridged, minlength=len(self._bridged_seconds))
        carry(self._sampled_at, at, topic)
        carry(self._was_above, is_above, topic)
        carry(self._moves_of_known, moves, topic)
        if is_above.any():
            self._add_above(topic[is_above], at[is_above], interval[is_above], goes_on[is_above])

    def columns(self) -> dict[str, Values]:
        return {
            "episodes": self._number,
            "longest_seconds": self._longest_seconds,
            "longest_from": self._longest_from,
            "first_from": self._first_from,
            "last_until": self._last_until,
            "longest_quiet": self._longest_quiet,
            "bridged_seconds": self._bridged_seconds,
        }

    def _moves_until(self, samples: TopicSamples) -> Ints:
        """For each sample in how many of its topic, up to it, commits moved."""
        is_moving = np.logical_or.reduce([samples["consumed"] > 0, *(samples[name] > 0 for name in EVENTS)])
        moves: Ints = np.cumsum(is_moving)
        begins = begins_of(samples.topic)
        before = self._moves[samples.topic[begins]] - (moves[begins] - is_moving[begins])
        moves += np.repeat(before, np.diff(begins, append=len(samples)))
        carry(self._moves, moves, samples.topic)
        return moves

    def _add_above(self, topic: Values, at: Values, interval: Values, goes_on: Values) -> None:
        """Of the samples above the threshold. An episode that goes on in the next hour is measured again there."""
        is_first = np.zeros(len(topic), np.bool_)
        is_first[begins_of(topic)] = True
        first = np.flatnonzero(is_first | ~goes_on)
        last = np.append(first[1:], len(topic)) - 1
        began = np.where(goes_on[first], self._open_from[topic[first]], at[first])
        seconds = (at[last] - began) / 1e6 + interval[last]
        self._number += np.bincount(topic[first][~goes_on[first]], minlength=len(self._number))
        self._keep_quiet(topic[first], began, seconds, goes_on[first])
        self._keep_first(topic[first], began)
        carry(self._open_from, began, topic[first])
        self._keep_longest(topic[first], began, seconds)

    def _keep_quiet(self, topic: Values, began: Values, seconds: Values, goes_on: Values) -> None:
        """The time between an episode and the next one."""
        until = began + (seconds * 1e6).astype(np.int64)
        before = previous(until, topic, self._last_until)
        quiet = np.where((before >= 0) & ~goes_on, (began - before) / 1e6, 0.0)
        np.maximum.at(self._longest_quiet, topic, quiet)
        carry(self._last_until, until, topic)

    def _keep_first(self, topic: Values, began: Values) -> None:
        """`topic`: sorted, and in order of time."""
        first = begins_of(topic)
        first = first[self._first_from[topic[first]] < 0]
        self._first_from[topic[first]] = began[first]

    def _keep_longest(self, topic: Values, began: Values, seconds: Values) -> None:
        """The first of several that are equally long."""
        order = np.lexsort((began, -seconds, topic))
        best = order[begins_of(topic[order])]
        longer = best[seconds[best] > self._longest_seconds[topic[best]]]
        self._longest_seconds[topic[longer]], self._longest_from[topic[longer]] = seconds[longer], began[longer]
