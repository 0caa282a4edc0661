"""The types of the columns, and the values that mean "nothing is known".

Offsets are messages; times are seconds of the monotonic clock.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Offsets = NDArray[np.int64]
Seconds = NDArray[np.float64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]

NO_COMMIT = -1
"""In `committed`: the group has no commit for the partition (Kafka's own sign for it)."""
NOT_KNOWN = -1
"""In `log_end` and `log_start`; offsets are never negative."""
NEVER = -np.inf
"""In `received`: nothing good was ever received for the row."""

LARGEST_OFFSET = 2**53
"""Larger ones come from something that is broken, and sums of them would not fit."""


def is_offset(values: NDArray[Any]) -> Flags:
    """Where a value can be an offset at all."""
    fits: Flags = (values >= 0) & (values <= LARGEST_OFFSET)
    return fits
