"""Where columns have the members of many groups: the groups ("lanes") differ in how many members they can have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


class Slots:
    """A slot for each row of each lane, in tables of lanes of similar size. The slots of all tables are one column, so
    that most of the arithmetic is a single call."""

    def __init__(self, needed: Indexes) -> None:
        """`needed`: rows of each lane."""
        self._tables = tuple(_tables(needed))
        self.number = self._tables[-1].slots.stop
        lanes = [_padded(it) for it in _by_size(needed)]
        self._order: Indexes = np.concatenate(lanes)
        self.of: Indexes = np.full((len(needed), int(needed.max())), self.number)
        """Of each lane (rows): where its rows (columns) are. A row that a lane lacks is one beyond all slots."""
        self._places: Indexes = np.empty(len(needed), np.intp)
        for table, own in zip(self._tables, _by_size(needed), strict=True):
            first = table.slots.start + np.arange(len(own))[:, np.newaxis]
            each = first + np.arange(table.shape[0]) * table.shape[1]
            self.of[own, : table.shape[0]] = np.where(
                np.arange(table.shape[0]) < needed[own, np.newaxis], each, self.number
            )
            self._places[own] = table.places.start + np.arange(len(own))

    def column(self, value: float = 0.0) -> Column:
        """Returns a column with one more entry than there are slots, for the rows that lanes lack."""
        return np.full(self.number + 1, value)

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
