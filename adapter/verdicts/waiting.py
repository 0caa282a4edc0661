"""How many messages wait in a partition: the metrics API serves this number, and the history's tables keep it."""

from __future__ import annotations

import numpy as np

from adapter.columns import Flags, Offsets


def lag_behind(committed: Offsets, log_end: Offsets, log_start: Offsets, has_marker: Flags) -> Offsets:
    """Messages before the log start are deleted, so nobody waits for them; nor does a transaction marker behind the
    commit."""
    lag: Offsets = np.where(has_marker, 0, log_end - np.maximum(committed, log_start))
    return lag


def lag_without_commit(
    log_end: Offsets, log_start: Offsets, counts_from_start: Flags, last_commit: Offsets, has_marker: Flags
) -> Offsets:
    """A commit that has expired counts on. A partition that was never committed (a negative `last_commit`) counts
    nothing, or with `offsetReset: earliest` the whole log. Never below 0."""
    never_committed = np.where(counts_from_start, log_end - log_start, 0)
    lag: Offsets = np.where(last_commit < 0, never_committed, lag_behind(last_commit, log_end, log_start, has_marker))
    return np.maximum(lag, 0)
