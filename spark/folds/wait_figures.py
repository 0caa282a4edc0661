"""Pure: hours of samples -> how long the oldest message of each topic had waited, over a range."""

import numpy as np

from spark.folds.topic_samples import Topics, TopicSamples
from spark.rules.percentiles import percentiles_of
from spark.tables.columns import Flags, Ints, Values, begins_of

WAITS = ("p50", "p95", "p99", "max", "first", "last")
PERCENTS = (50, 95, 99)
FOR_EVER = 1e12
"""Seconds: longer than any wait."""
HARDLY = 0.02
"""Of a percentile: what it may be longer by without being called a lower bound."""


class WaitFigures:
    """One value for each topic in every column, in seconds; NaN for a topic without a known wait."""

    def __init__(self, topics: Topics) -> None:
        size = len(topics)
        self._topic: list[Ints] = []
        self._waits: list[Values] = []
        """Those that are lower bounds are negative: -1 less their seconds."""
        self._bounds = np.zeros(size, np.int64)
        self._first, self._last, self._max = (np.full(size, np.nan) for _ in range(3))
        self._is_first_bound, self._is_last_bound = (np.zeros(size, np.bool_) for _ in range(2))

    def add(self, samples: TopicSamples) -> None:
        """The samples of the next hour whose wait is known."""
        topic, wait, is_bound = samples.topic, samples["wait_seconds"], samples["wait_is_bound"]
        if not len(topic):
            return
        begins = begins_of(topic)
        of_topic, ends = topic[begins], np.append(begins[1:], len(topic)) - 1
        is_new = np.isnan(self._first[of_topic])
        self._first[of_topic[is_new]] = wait[begins[is_new]]
        self._is_first_bound[of_topic[is_new]] = is_bound[begins[is_new]]
        self._last[of_topic], self._is_last_bound[of_topic] = wait[ends], is_bound[ends]
        self._max[of_topic] = np.fmax(self._max[of_topic], np.maximum.reduceat(wait, begins))
        self._bounds += np.bincount(topic[is_bound], minlength=len(self._bounds))
        self._topic.append(topic.astype(np.int32))
        self._waits.append(np.where(is_bound, -1 - wait, wait))

    def columns(self) -> dict[str, Values]:
        """`wait_at_least`: the sum of 1 for p50, 2 for p95 and so on, of those of WAITS that are lower bounds."""
        topic = np.concatenate([*self._topic, np.empty(0, np.int32)])
        kept = np.concatenate([*self._waits, np.empty(0)])[np.argsort(topic, kind="stable")]
        sizes, is_bound = np.bincount(topic, minlength=len(self._bounds)), kept < 0
        waits = np.where(is_bound, -1 - kept, kept)
        longest = np.where(is_bound, FOR_EVER, waits) if is_bound.any() else None
        of_samples = percentiles_of(waits, sizes, *PERCENTS)
        most = of_samples if longest is None else percentiles_of(longest, sizes, *PERCENTS)
        bounds: list[Flags] = [most[name] > (1 + HARDLY) * of_samples[name] for name in of_samples]
        bounds += [self._bounds > 0, self._is_first_bound, self._is_last_bound]
        return {
            **{f"wait_{name}": values for name, values in of_samples.items()},
            "wait_max": self._max,
            "wait_first": self._first,
            "wait_last": self._last,
            "wait_bounds": self._bounds,
            "wait_at_least": np.sum([flags.astype(np.int64) << bit for bit, flags in enumerate(bounds)], axis=0),
        }


def at_least(bits: int) -> frozenset[str]:
    """Those of WAITS that `wait_at_least` says to be lower bounds."""
    return frozenset(name for bit, name in enumerate(WAITS) if bits >> bit & 1)
