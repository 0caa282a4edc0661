"""Types of columns, and the values for "unknown".

Differences of offsets count messages, as an upper bound; times are seconds of the monotonic clock."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Offsets = NDArray[np.int64]
Seconds = NDArray[np.float64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]
Indexes = NDArray[np.intp]

NO_COMMIT = -1
"""In `committed`: the group has no commit for the partition (Kafka's own value)."""
NOT_KNOWN = -1
"""In `log_end` and `log_start`."""
NEVER = -np.inf
"""In `received`: no good row was ever received."""

LARGEST_OFFSET = 2**53
"""Larger offsets come from a broken broker, and sums of them would overflow."""


def is_offset(values: NDArray[Any]) -> Flags:
    fits: Flags = (values >= 0) & (values <= LARGEST_OFFSET)
    return fits
