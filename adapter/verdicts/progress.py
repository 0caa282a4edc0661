"""Which partitions stand still over a span of time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Flags

Messages = NDArray[Any]
"""Negative where it is not known."""


def stands_still(consumed: Messages, produced: Messages, lag_max: Messages) -> Flags:
    """Nothing was consumed although messages waited from the beginning: without consumption the lag only grows, by what
    is produced."""
    still: Flags = (consumed == 0) & (produced >= 0) & (lag_max > produced)
    return still


def has_moved(consumed: Messages, produced: Messages, lag_max: Messages) -> Flags:
    """Something was consumed, or nothing waited at the beginning."""
    waited_for_nothing = (consumed == 0) & (produced >= 0) & (lag_max >= 0) & (lag_max <= produced)
    moved: Flags = (consumed > 0) | waited_for_nothing
    return np.asarray(moved, np.bool_)
