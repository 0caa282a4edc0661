"""What a cycle hands to the history: what it observed and believed, not what is served in its place."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from adapter.columns import Codes, Flags, Offsets
from adapter.lag.layout import Layout
from adapter.lag.owners import Owners
from adapter.lag.snapshot import Observed


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One cluster's cycle; every column has one entry per row of the layout."""

    cluster: str
    sampled_at: float
    """Start of the cycle, in seconds since the epoch."""
    interval_seconds: float
    to_epoch: float
    """Seconds since the epoch, minus those of the monotonic clock."""
    layout: Layout
    observed: Observed
    state: NDArray[np.int8]
    """`State`, with stale rows marked as such."""
    members: Codes
    """Members of the row's group; NOT_ASKED if it was not described."""
    is_committed_only: Flags
    """Whether the end is that of read_committed."""
    owners: Owners
    counts_from_start: Flags
    """Whether the whole log counts if there never was a commit (offsetReset: earliest)."""
    last_commit: Offsets
    """From which a row counts whose commit has expired; NO_COMMIT in all other rows."""
    has_marker: Flags
    """Whether only a transaction marker follows the last commit."""

    @property
    def rows(self) -> int:
        return len(self.layout)

    @property
    def size(self) -> int:
        """Bytes of its columns; samples share layouts and owners."""
        own = (self.state, self.members, self.is_committed_only)
        read = (getattr(self.observed, column.name) for column in fields(Observed) if column.name != "causes")
        return sum(column.nbytes for column in (*own, *read))


Keep = Callable[[Sample], None]
"""Takes a sample and returns at once; never raises."""
