"""Topics in order, divided into parts: whatever is computed of whole topics is computed part by part."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spark.tables.columns import Flags, Ints, TableRows, numbered, one_of_each
from spark.tables.contract import NAMES

Names = tuple[str, ...]
"""Cluster, group and topic, or cluster and group."""


@dataclass(frozen=True, slots=True)
class Part:
    """The topics after one and up to another, in their order; None: without an end."""

    after: Names | None = None
    until: Names | None = None

    def has(self, topic: Names) -> bool:
        return (self.after is None or self.after < topic) and (self.until is None or topic <= self.until)

    def of(self, rows: TableRows) -> TableRows:
        """Those of these topics."""
        if self == WHOLE or not len(rows):
            return rows
        topics, place = topics_in(rows)
        has: Flags = np.array([self.has(topic) for topic in topics], np.bool_)
        return rows if has.all() else rows.taken(has[place])

    def places(self, topics: Sequence[Names]) -> tuple[int, int]:
        """Where these topics begin and end among others, which are in order."""
        first = 0 if self.after is None else bisect_right(topics, self.after)
        return first, len(topics) if self.until is None else bisect_right(topics, self.until)

    def may_be_in(self, first: Names, last: Names) -> bool:
        """Whether any of these topics lies between two."""
        return (self.after is None or self.after < last) and (self.until is None or first <= self.until)


WHOLE = Part()


def topics_in(rows: TableRows) -> tuple[list[Names], Ints]:
    """The topics that occur, in order, and for each row the place of its topic among them."""
    place = numbered(*(rows[name] for name in NAMES))
    row = one_of_each(place)
    texts = [rows.texts[name].to_pylist() for name in NAMES]
    codes = (rows[name][row].tolist() for name in NAMES)
    return [
        (texts[0][cluster], texts[1][group], texts[2][topic]) for cluster, group, topic in zip(*codes, strict=True)
    ], place


def parts_of(rows: Mapping[Names, int], limit: int, within: Part = WHOLE) -> Iterator[Part]:
    """As few as have no more rows than the limit, or one topic. `rows`: of each topic of `within`."""
    after, before, number = within.after, None, 0
    for topic in sorted(rows):
        if number and number + rows[topic] > limit:
            yield Part(after, before)
            after, number = before, 0
        number += rows[topic]
        before = topic
    yield Part(after, within.until)
