"""What lanes of a replay are given for each minute. Many lanes have the same, which is kept once."""

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Indexes

Value = TypeVar("Value", bound=np.generic)


class ByMinute(Generic[Value]):
    """One column for each lane."""

    def __init__(self, of: Sequence[NDArray[Value]]) -> None:
        """`of`: of each lane, by minute, all of one length. The same object stands for the same column."""
        columns = {id(column): column for column in of}
        places = {key: place for place, key in enumerate(columns)}
        self._of: Indexes = np.array([places[id(column)] for column in of], np.intp)
        self._columns: NDArray[Value] = np.stack(list(columns.values()), axis=1)

    def at(self, minutes: range) -> NDArray[Value]:
        """Returns a row for each minute, with all lanes."""
        rows: NDArray[Value] = self._columns[minutes.start : minutes.stop].take(self._of, axis=1)
        return rows
