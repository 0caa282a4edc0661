"""Pure: hours of samples -> each topic's lag over all of them: exact percentiles, extremes, time above the threshold.

Of an hour's samples only the lags are kept, eight bytes each.
"""

import numpy as np

from spark.rules.percentiles import percentiles_of
from spark.rules.topic_samples import Samples, Topics
from spark.tables.columns import UNKNOWN, Ints, Values, begins_of


class LagFigures:
    """One value for each topic in every column; UNKNOWN or NaN for a topic without a known lag."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._lags: list[tuple[Values, Ints]] = []
        """Of each hour: the lags, sorted by topic, and where each topic ends."""
        self._samples, self._lagging, self._moving = (self._counts() for _ in range(3))
        self._seconds_above, self._known_seconds = (np.zeros(len(topics)) for _ in range(2))
        self._first, self._last, self._since, self._until = (self._counts() + UNKNOWN for _ in range(4))

    def add(self, samples: Samples) -> None:
        """The samples of the next hour that have a known lag."""
        topic, lag, interval = samples.topic, samples["lag"], samples.interval
        self._add_ends(samples)
        self._samples += self._counts(topic)
        is_lagging = (lag > 0) & (samples["members"] != 0)
        self._lagging += self._counts(topic[is_lagging])
        self._moving += self._counts(topic[is_lagging & (samples["consumed"] > 0)])
        self._known_seconds += self._sums(topic, interval)
        self._seconds_above += self._sums(topic, np.where(lag > self._topics.thresholds[topic], interval, 0.0))
        self._lags.append((lag, np.cumsum(self._counts(topic))))

    def columns(self) -> dict[str, Values]:
        lags = [self._lags_of(place) for place in range(len(self._topics))]
        return {
            "samples": self._samples,
            **percentiles_of(np.concatenate([*lags, np.empty(0, np.int64)]), self._samples, 50, 95, 99),
            "max": np.array([of.max(initial=UNKNOWN) for of in lags], np.int64),
            "first": self._first,
            "last": self._last,
            "since": self._since,
            "until": self._until,
            "seconds_above": self._seconds_above,
            "known_seconds": self._known_seconds,
            "lagging": self._lagging,
            "moving": self._moving,
        }

    def _add_ends(self, samples: Samples) -> None:
        """What the first and the last sample of each topic say."""
        topic, lag, at = samples.topic, samples["lag"], samples["sampled_at"]
        begins = begins_of(topic)
        new = begins[self._samples[topic[begins]] == 0]
        self._first[topic[new]], self._since[topic[new]] = lag[new], at[new]
        ends = np.append(begins[1:], len(topic)) - 1 if len(topic) else begins
        until = at[ends] + (samples.interval[ends] * 1e6).astype(np.int64)
        self._last[topic[ends]], self._until[topic[ends]] = lag[ends], until

    def _lags_of(self, place: int) -> Values:
        parts = [lags[(ends[place - 1] if place else 0) : ends[place]] for lags, ends in self._lags]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _counts(self, topic: Ints | None = None) -> Ints:
        return np.bincount(np.empty(0, np.int64) if topic is None else topic, minlength=len(self._topics))

    def _sums(self, topic: Ints, values: Values) -> Values:
        return np.bincount(topic, values, minlength=len(self._topics))
