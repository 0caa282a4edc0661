"""Pure: hours of samples -> production by the hours of a time zone that is not whole hours ahead of UTC. Where it is,
the hours of the tables are the zone's own."""

from datetime import UTC, datetime

import numpy as np

from spark.folds.topic_samples import Topics, TopicSamples
from spark.tables.columns import Ints, Values, begins_of

HOUR_SECONDS = 3600


class LocalHours:
    """What each topic produced in each of these hours."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._parts: list[dict[str, Values]] = []

    def add(self, samples: TopicSamples) -> None:
        """All samples of the next hour of UTC, which has parts of two hours of the zone."""
        ahead = self._seconds_ahead(samples)
        if ahead % HOUR_SECONDS == 0:
            return
        at = samples["sampled_at"] // 1_000_000
        start = (at + ahead) // HOUR_SECONDS * HOUR_SECONDS - ahead
        is_known = (samples["produced"] >= 0) & ~np.isnan(samples["seconds"])
        self._parts.append(
            _summed(
                samples.topic[is_known],
                start[is_known],
                samples["produced"][is_known].astype(np.float64),
                samples["seconds"][is_known],
            )
        )

    def columns(self) -> dict[str, Values]:
        """One row for each topic and hour, sorted by both: `group`, `place` (of the topic in its group), `hour`,
        `produced` and `covered_seconds`."""
        none = {"topic": np.empty(0, np.int64), "start": np.empty(0, np.int64), "produced": np.empty(0)}
        none["covered_seconds"] = np.empty(0)
        columns = {name: np.concatenate([none[name], *(part[name] for part in self._parts)]) for name in none}
        order = np.lexsort((columns["start"], columns["topic"]))
        whole = _summed(*(columns[name][order] for name in ("topic", "start", "produced", "covered_seconds")))
        group = self._topics.group[whole["topic"]]
        return {
            "group": group,
            "place": whole["topic"] - np.searchsorted(self._topics.group, group),
            "hour": whole["start"] * 1_000_000,
            "produced": whole["produced"],
            "covered_seconds": whole["covered_seconds"],
        }

    def _seconds_ahead(self, samples: TopicSamples) -> int:
        if not len(samples):
            return 0
        first = datetime.fromtimestamp(int(samples["sampled_at"][0]) // 1_000_000, UTC).astimezone(self._topics.zone)
        offset = first.utcoffset()
        return round(offset.total_seconds()) if offset else 0


def _summed(topic: Ints, start: Ints, produced: Values, seconds: Values) -> dict[str, Values]:
    """`topic` and `start`: in order."""
    begins = begins_of(topic, start)
    if not len(begins):
        return {"topic": topic, "start": start, "produced": produced, "covered_seconds": seconds}
    return {
        "topic": topic[begins],
        "start": start[begins],
        "produced": np.add.reduceat(produced, begins),
        "covered_seconds": np.add.reduceat(seconds, begins),
    }
