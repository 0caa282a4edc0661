"""Pure: hours of samples -> how long the oldest message of each topic had waited, over a range."""

import numpy as np

from spark.folds.topic_samples import Topics, TopicSamples
from spark.rules.percentiles import percentiles_of
from spark.tables.columns import Ints, Values, begins_of


class WaitFigures:
    """One value for each topic in every column, in seconds; NaN for a topic without a known wait."""

    def __init__(self, topics: Topics) -> None:
        size = len(topics)
        self._topic: list[Ints] = []
        self._waits: list[Values] = []
        self._bounds = np.zeros(size, np.int64)
        self._first, self._last, self._max = (np.full(size, np.nan) for _ in range(3))

    def add(self, samples: TopicSamples) -> None:
        """The samples of the next hour whose wait is known."""
        topic, wait = samples.topic, samples["wait_seconds"]
        begins = begins_of(topic)
        of_topic, first = topic[begins], wait[begins]
        self._first[of_topic] = np.where(np.isnan(self._first[of_topic]), first, self._first[of_topic])
        self._last[of_topic] = wait[np.append(begins[1:], len(topic)) - 1] if len(topic) else first
        if len(topic):
            self._max[of_topic] = np.fmax(self._max[of_topic], np.maximum.reduceat(wait, begins))
        self._bounds += np.bincount(topic[samples["wait_is_bound"]], minlength=len(self._bounds))
        self._topic.append(topic.astype(np.int32))
        self._waits.append(wait)

    def columns(self) -> dict[str, Values]:
        topic = np.concatenate([*self._topic, np.empty(0, np.int32)])
        waits = np.concatenate([*self._waits, np.empty(0)])[np.argsort(topic, kind="stable")]
        percentiles = percentiles_of(waits, np.bincount(topic, minlength=len(self._bounds)), 50, 95, 99)
        return {
            **{f"wait_{name}": values for name, values in percentiles.items()},
            "wait_max": self._max,
            "wait_first": self._first,
            "wait_last": self._last,
            "wait_bounds": self._bounds,
        }
