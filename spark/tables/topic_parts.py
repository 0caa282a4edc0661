"""Topics in order, divided into parts: whatever is computed of whole topics is computed part by part."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from spark.tables.columns import Flags, Ints, TableRows, numbered, one_of_each
from spark.tables.contract import NAMES

Names = tuple[str, ...]
"""Cluster, group and topic, or cluster and group."""

Bounds = tuple[Names, ...]
"""Topics after each of which another part begins, in order."""


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

    def overlaps(self, other: "Part") -> bool:
        """Whether a topic can be in both."""
        begins_before = other.until is None or self.after is None or self.after < other.until
        return begins_before and (self.until is None or other.after is None or other.after < self.until)


WHOLE = Part()


@dataclass(frozen=True, slots=True)
class GroupOfRows:
    """What a footer says of the topics in a row group: none is smaller than the first or larger than the last."""

    first: Names
    last: Names
    rows: int


def topics_in(rows: TableRows) -> tuple[list[Names], Ints]:
    """The topics that occur, in order, and for each row the place of its topic among them."""
    place = numbered(*(rows[name] for name in NAMES))
    row = one_of_each(place)
    texts = [rows.texts[name].to_pylist() for name in NAMES]
    codes = (rows[name][row].tolist() for name in NAMES)
    return [
        (texts[0][cluster], texts[1][group], texts[2][topic]) for cluster, group, topic in zip(*codes, strict=True)
    ], place


def parts_between(bounds: Bounds) -> list[Part]:
    """One more than there are bounds; together they have all topics."""
    return [Part(after, until) for after, until in pairwise((None, *bounds, None))]


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


def bounds_of(groups: Sequence[GroupOfRows], limit: int) -> Bounds:
    """Of as many parts as have about so many rows; fewer where a single topic has more, or rows are in no order."""
    number = -(-sum(group.rows for group in groups) // limit)
    if number <= 1:
        return ()
    ordered = sorted(groups, key=lambda group: group.first)
    ends = list(accumulate(group.rows for group in ordered))
    lasts = {ordered[bisect_left(ends, ends[-1] * each // number)].last for each in range(1, number)}
    last = max(group.last for group in groups)
    return tuple(sorted(topic for topic in lasts if topic < last))


def most_rows(groups: Iterable[GroupOfRows], bounds: Bounds) -> int:
    """Of the largest part, more or less."""
    rows = Counter[int]()
    for group in groups:
        rows[bisect_left(bounds, group.last)] += group.rows
    return max(rows.values(), default=0)
