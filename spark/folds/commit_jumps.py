"""Pure: samples -> by how much a group's commits moved, in each hour, although no member need have read that."""

import numpy as np

from spark.folds.topic_samples import Topics, TopicSamples
from spark.tables.columns import Values, begins_of
from spark.tables.contract import HOUR_MICROS


class CommitJumps:
    """Messages that were skipped or counted late (samples after a gap, and with a reset, rewind, skip or topic made
    again), and messages of samples without a member; but a group that never has one assigns its partitions manually."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._hours: list[dict[str, Values]] = []
        self._has_members = np.zeros(len(topics.groups), np.bool_)

    def add(self, samples: TopicSamples) -> None:
        """All samples of the next hour."""
        self._has_members[self._topics.group[samples.topic[samples["members"] > 0]]] = True
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
                "disturbed": np.add.reduceat(np.where(is_disturbed, consumed, 0.0), begins),
                "without_members": np.add.reduceat(np.where(is_disturbed, 0.0, consumed), begins),
            }
        )

    def columns(self) -> dict[str, Values]:
        """One row for each group and hour that has a jump, sorted by both: `group`, `hour` and `messages`."""
        types = {"group": np.int64, "hour": np.int64, "disturbed": np.float64, "without_members": np.float64}
        hours = {
            name: np.concatenate([np.empty(0, type_), *(hour[name] for hour in self._hours)])
            for name, type_ in types.items()
        }
        messages = hours["disturbed"] + np.where(self._has_members[hours["group"]], hours["without_members"], 0.0)
        order = np.lexsort((hours["hour"], hours["group"]))
        order = order[messages[order] > 0]
        return {"group": hours["group"][order], "hour": hours["hour"][order], "messages": messages[order]}
