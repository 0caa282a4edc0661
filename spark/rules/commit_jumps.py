"""Pure: samples -> by how much a group's commits moved, in each hour, although no member need have read that."""

from __future__ import annotations

import numpy as np

from spark.rules.topic_samples import Samples, Topics
from spark.tables.columns import Values, begins_of
from spark.tables.contract import HOUR_MICROS


class CommitJumps:
    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._hours: list[dict[str, Values]] = []

    def add(self, samples: Samples) -> None:
        """All samples of the next hour."""
        is_disturbed = samples.is_disturbed
        moved = (samples["consumed"] > 0) & (is_disturbed | (samples["members"] == 0))
        if not moved.any():
            return
        group = self._topics.group[samples.topic[moved]]
        consumed, is_disturbed = samples["consumed"][moved].astype(np.float64), is_disturbed[moved]
        begins = begins_of(group)
        self._hours.append(
            {
                "group": group[begins],
                "hour": samples["sampled_at"][moved][begins] // HOUR_MICROS * HOUR_MICROS,
                "after_disturbance": np.add.reduceat(np.where(is_disturbed, consumed, 0.0), begins),
                "without_members": np.add.reduceat(np.where(is_disturbed, 0.0, consumed), begins),
            }
        )

    def columns(self) -> dict[str, Values]:
        """One row for each group and hour that has a jump, sorted by both. `after_disturbance`: in samples after a gap,
        and with a reset, rewind, skip or topic made again; `without_members`: in other samples, of a group without a
        member."""
        names = ("group", "hour", "after_disturbance", "without_members")
        types = (np.int64, np.int64, np.float64, np.float64)
        columns = {
            name: np.concatenate([np.empty(0, type_), *(hour[name] for hour in self._hours)])
            for name, type_ in zip(names, types, strict=True)
        }
        order = np.lexsort((columns["hour"], columns["group"]))
        return {name: column[order] for name, column in columns.items()}
