"""Pure: hours of samples -> what happened to each group as a whole: how its members came and went, hour by hour, and
how often its offsets jumped. A rewind of a hundred partitions at once is one event."""

import numpy as np

from spark.folds.topic_samples import Topics, TopicSamples
from spark.tables.columns import UNKNOWN, Flags, Ints, Values, begins_of
from spark.tables.contract import EVENTS, HOUR_MICROS

ONE_EVENT_INTERVALS = 2.5
"""Samples of one event follow each other as closely: partitions may be read in two cycles."""


class Membership:
    """Hours of each group in which members came, went or were not there."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        size = len(topics.groups)
        self._members, self._hours = np.full(size, UNKNOWN, np.int64), list[dict[str, Values]]()

    def add(self, samples: TopicSamples) -> None:
        """All samples of the next hour."""
        group, at, interval, members = _of_groups(samples, self._topics, samples["members"].astype(np.int64))
        is_known = members >= 0
        group, at, interval, members = group[is_known], at[is_known], interval[is_known], members[is_known]
        if not len(group):
            return
        begins = begins_of(group)
        before = np.roll(members, 1)
        before[begins] = self._members[group[begins]]
        changes = (before != members) & (before >= 0)
        ends = np.append(begins[1:], len(group)) - 1
        self._members[group[ends]] = members[ends]
        hours = {
            "group": group[begins],
            "hour": at[begins] // HOUR_MICROS * HOUR_MICROS,
            "changes": np.add.reduceat(changes.astype(np.int64), begins),
            "without_seconds": np.add.reduceat(np.where(members == 0, interval, 0.0), begins),
            "fewest": np.minimum.reduceat(members, begins),
            "most": np.maximum.reduceat(members, begins),
        }
        keep = (hours["changes"] > 0) | (hours["without_seconds"] > 0)
        self._hours.append({name: column[keep] for name, column in hours.items()})

    def columns(self) -> dict[str, Values]:
        """One row for each of these hours, sorted by group and hour."""
        names = ("group", "hour", "changes", "without_seconds", "fewest", "most")
        empty = {name: np.empty(0, np.float64 if name == "without_seconds" else np.int64) for name in names}
        columns = {name: np.concatenate([empty[name], *(hour[name] for hour in self._hours)]) for name in names}
        order = np.lexsort((columns["hour"], columns["group"]))
        return {name: column[order] for name, column in columns.items()}


class GroupEvents:
    """How often each group had an event of each kind, and when."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        size = (len(topics.groups), len(EVENTS))
        self._number = np.zeros(size, np.int64)
        self._first, self._last = np.full(size, UNKNOWN, np.int64), np.full(size, UNKNOWN, np.int64)

    def add(self, samples: TopicSamples) -> None:
        """All samples of the next hour."""
        for kind, name in enumerate(EVENTS):
            has = samples[name] > 0
            if has.any():
                self._add(kind, samples.taken(has))

    def columns(self) -> dict[str, Values]:
        """One row for each group and kind that it had, sorted by both."""
        group, kind = np.nonzero(self._number)
        return {
            "group": group,
            "kind": kind,
            **{name: getattr(self, f"_{name}")[group, kind] for name in ("number", "first", "last")},
        }

    def _add(self, kind: int, samples: TopicSamples) -> None:
        group, at, interval, _ = _of_groups(samples, self._topics, samples["members"])
        begins = begins_of(group)
        before = np.roll(at, 1)
        before[begins] = self._last[group[begins], kind]
        is_new: Flags = (before < 0) | (at - before > ONE_EVENT_INTERVALS * 1e6 * interval)
        self._number[:, kind] += np.bincount(group[is_new], minlength=len(self._number))
        firsts = begins[self._first[group[begins], kind] < 0]
        self._first[group[firsts], kind] = at[firsts]
        ends = np.append(begins[1:], len(group)) - 1
        self._last[group[ends], kind] = at[ends]


def _of_groups(samples: TopicSamples, topics: Topics, values: Values) -> tuple[Ints, Ints, Values, Values]:
    """Group, time, interval and value of each sample of a group, which may be one of several topics."""
    group, at = topics.group[samples.topic], samples["sampled_at"]
    order = np.lexsort((at, group))
    begins = begins_of(group[order], at[order])
    first = order[begins]
    together = np.maximum.reduceat(values[order], begins) if len(begins) else values[:0]
    return group[first], at[first], samples.interval[first], together
