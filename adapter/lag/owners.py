"""Which member owns the partition of each row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Codes

NOT_ASKED = -1
"""In `codes`: the owner is not known."""
OwnerIds = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Owners:
    """The same object until a partition changes hands."""

    names: tuple[str, ...]
    """Member ids, sorted."""
    codes: Codes
    """Row -> index of its owner's name; NOT_ASKED if the owner is unknown."""

    @property
    def ids(self) -> OwnerIds:
        """Row -> a number that stays with its owner while others come and go; NOT_ASKED if the owner is unknown."""
        numbers = np.array([hash(name) for name in (*self.names, "")], np.int64)
        return np.where(self.codes == NOT_ASKED, NOT_ASKED, numbers[self.codes])


NO_OWNERS = Owners((), np.empty(0, np.int32))
