"""Pure: an hour's totals of some topics as columns, sorted by topic and time, and how one hour follows another."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from zoneinfo import ZoneInfo

import numpy as np

from spark.tables.columns import Flags, Ints, TableRows, Values, begins_of
from spark.tables.contract import EVENTS, HOUR_MICROS, NAMES, TOTALS
from spark.tables.topic_parts import Names, topics_in

UTC = ZoneInfo("UTC")
_READ = {
    *(*NAMES, "sampled_at", "interval_seconds", "lag", "partitions", "unknown", "members", "seconds"),
    *("produced", "consumed"),
    *("waiting", "waiting_consumed", "is_after_gap", *EVENTS),
    *("wait_seconds", "wait_is_bound"),
}
COLUMNS = tuple(column for column in TOTALS if column.name in _READ)
"""The columns of `totals` that are read."""


@dataclass(frozen=True)
class Topics:
    """Topics of whole groups, in the order of their keys. Everything about a topic is a column in this order."""

    keys: Sequence[Names]
    thresholds: Ints
    zone: ZoneInfo = UTC
    """Of the hours of the day."""

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def groups(self) -> list[Names]:
        return sorted({key[:2] for key in self.keys})

    @cached_property
    def group(self) -> Ints:
        """The place of each topic's group in `groups`."""
        places = {pair: place for place, pair in enumerate(self.groups)}
        return np.array([places[key[:2]] for key in self.keys], np.int64)

    @cached_property
    def places(self) -> dict[Names, int]:
        return {key: place for place, key in enumerate(self.keys)}


@dataclass(frozen=True, slots=True, eq=False)
class TopicSamples:
    topic: Ints
    """The place of each sample's topic."""
    rows: TableRows

    def __len__(self) -> int:
        return len(self.topic)

    def __getitem__(self, column: str) -> Values:
        return self.rows[column]

    def taken(self, keep: Values) -> "TopicSamples":
        return TopicSamples(self.topic[keep], self.rows.taken(keep))

    @property
    def with_known_lag(self) -> "TopicSamples":
        return self.taken(self["lag"] >= 0)

    @property
    def interval(self) -> Values:
        """In seconds."""
        return self["interval_seconds"].astype(np.float64)

    @property
    def is_disturbed(self) -> Flags:
        """Whether a sample says nothing about a rate, although everything is known."""
        is_disturbed: Flags = np.logical_or.reduce([self["is_after_gap"], *(self[name] > 0 for name in EVENTS)])
        return is_disturbed


def samples_of(totals: TableRows, topics: Topics) -> TopicSamples:
    """Totals of one hour, in any order; those of other topics are left out."""
    topic = places_of(totals, topics)
    if (topic < 0).any():
        totals, topic = totals.taken(topic >= 0), topic[topic >= 0]
    order = np.argsort(topic * HOUR_MICROS + totals["sampled_at"] % HOUR_MICROS, kind="stable")
    return TopicSamples(topic[order], totals.taken(order))


def previous(values: Values, topic: Ints, carried: Values) -> Values:
    """The value in the topic's sample before. `carried`: for each topic, its last value in earlier hours."""
    before = np.roll(values, 1)
    first = begins_of(topic)
    before[first] = carried[topic[first]]
    return before


def carry(carried: Values, values: Values, topic: Ints) -> None:
    """Puts each topic's last value into `carried`."""
    last = np.append(begins_of(topic)[1:], len(topic)) - 1 if len(topic) else begins_of(topic)
    carried[topic[last]] = values[last]


def places_of(rows: TableRows, topics: Topics) -> Ints:
    """The place of each row's topic, -1 for another one."""
    keys, place = topics_in(rows)
    return np.array([topics.places.get(key, -1) for key in keys], np.int64)[place]
