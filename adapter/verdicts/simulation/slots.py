"""Where columns have the members of many groups: the groups ("lanes") differ in how many members they can have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Indexes

Column = NDArray[np.float64]

_SPREAD = 1.5
"""Lanes of a table differ by this factor at most: a table has as many rows for each lane as for the one with most."""
_LEAST_LANES = 2
"""Of a table: numpy adds the rows of a single lane in another order, and a lane must not depend on those beside it."""


@dataclass(frozen=True, slots=True)
class _Table:
    """Lanes of similar size beside one another, each with a slot in every row."""

    slots: slice
    places: slice
    """Of its lanes, in the order of tables."""
    shape: tuple[int, int]
    """Rows and lanes."""


class Entries(NamedTuple):
    """Those of some lanes, one lane after another. Lanes differ in how many they have."""

    lane: Indexes
    """Of each entry: the place of its lane among these lanes."""
    at: Indexes
    """Of each entry: where it is."""
    first: Indexes
    """Of each lane: the place of its first entry among these entries."""


@dataclass(frozen=True, slots=True)
class Strides:
    """Where the entries of each lane are: the first one, and the others at equal distances after it."""

    first: Indexes
    distance: Indexes
    number: Indexes

    def of(self, lanes: Indexes) -> Entries:
        number, distance = self.number.take(lanes), self.distance.take(lanes)
        first = np.cumsum(number) - number
        lane = np.repeat(np.arange(len(lanes)), number)
        at = np.arange(len(lane)) * distance.take(lane)
        at += (self.first.take(lanes) - first * distance).take(lane)
        return Entries(lane, at, first)


class Slots:
    """A slot for each row of each lane, in tables of lanes of similar size. The slots of all tables are one column, so
    that most of the arithmetic is a single call."""

    def __init__(self, needed: Indexes) -> None:
        """`needed`: rows of each lane."""
        self._tables = tuple(_tables(needed))
        self.number = self._tables[-1].slots.stop
        lanes = [_padded(it) for it in _by_size(needed)]
        self._order: Indexes = np.concatenate(lanes)
        self._places, first, distance = (np.empty(len(needed), np.intp) for _ in range(3))
        for table, own in zip(self._tables, _by_size(needed), strict=True):
            first[own] = table.slots.start + np.arange(len(own))
            distance[own] = table.shape[1]
            self._places[own] = table.places.start + np.arange(len(own))
        self.rows = Strides(first, distance, needed)

    def column(self, value: float = 0.0) -> Column:
        return np.full(self.number, value)

    def tables(self, column: Column) -> tuple[Column, ...]:
        """Returns views of the tables of a column: rows of lanes."""
        return tuple(column[it.slots].reshape(it.shape) for it in self._tables)

    def spread(self, values: Column) -> tuple[Column, ...]:
        """Returns the values of lanes as the tables have their lanes."""
        ordered = values.take(self._order)
        return tuple(ordered[it.places] for it in self._tables)

    def gathered(self, values: Sequence[Column]) -> Column:
        """Returns the values of tables' lanes in the order of lanes."""
        return np.concatenate(values).take(self._places)


def _by_size(rows: Indexes) -> Iterator[Indexes]:
    """Yields the lanes of each table."""
    order = np.argsort(rows, kind="stable")
    first = 0
    for at, lane in enumerate(order):
        if rows[lane] > _SPREAD * rows[order[first]]:
            yield order[first:at]
            first = at
    yield order[first:]


def _padded(lanes: Indexes) -> Indexes:
    return np.resize(lanes, max(len(lanes), _LEAST_LANES))


def _tables(rows: Indexes) -> Iterator[_Table]:
    slot = place = 0
    for lanes in _by_size(rows):
        shape = int(rows[lanes].max()), max(len(lanes), _LEAST_LANES)
        yield _Table(slice(slot, slot + shape[0] * shape[1]), slice(place, place + shape[1]), shape)
        slot, place = slot + shape[0] * shape[1], place + shape[1]
