"""Pure: the state of every row as it is reported, and the lag and lead that follow from its offsets.

| state | lag | lead |
|---|---|---|
| ok, truncated | log end - max(committed, log start) | committed - log start, never below 0 |
| no_commit | as from the last commit seen; without one, by the rule 0, or log end - log start | none |
| ahead | refused: the commit is beyond the end in two cycles running | refused |
| leaderless, error, unknown | those of the last good row, until it is too old | same |"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.columns import NEVER, NO_COMMIT, Flags, Offsets
from adapter.lag.snapshot import Snapshot, State
from adapter.verdicts.waits import lag_behind, lag_without_commit


@dataclass(frozen=True, slots=True, eq=False)
class Treatment:
    counts_from_start: Flags
    """Without a commit, the whole log counts (offsetReset: earliest)."""
    counts_before_first: Flags
    """The same until the group commits for the topic for the first time, or once the log has lost the last commit."""
    is_outside: Flags
    """Not among the topics of the group's rule: stale."""
    is_asked: Flags
    """Read only because the selector of an HPA names the topic: stale for all queries that do not name it with the
    group."""
    is_abandoned: Flags
    """No member of a Stable group reads the topic: stale, unless the settings list it for this group by name."""
    is_in_doubt: Flags
    """No member read the topic when the group was last described as Stable, which is too long ago to rely on."""


def states_of(snapshot: Snapshot, treatment: Treatment) -> NDArray[np.int8]:
    """Returns every row's state as reported in the history and in the adapter's own metrics."""
    is_stale = treatment.is_outside | treatment.is_asked | treatment.is_abandoned
    read = np.where(treatment.is_in_doubt, np.int8(State.UNKNOWN), snapshot.state)
    return np.where(is_stale, np.int8(State.STALE), read).astype(np.int8)


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The values of each row; meaningful only where `is_known`."""

    lag: Offsets
    lead: Offsets
    has_commit: Flags
    is_known: Flags
    """There is a good row and nothing contradicts it; its age is checked when it is read."""
    is_commit_known: Flags
    """It is known whether a commit exists, even if it is beyond the end."""


def values_of(snapshot: Snapshot, treatment: Treatment) -> Values:
    start = snapshot.log_start
    has_commit = snapshot.committed != NO_COMMIT
    from_commit = np.maximum(lag_behind(snapshot.committed, snapshot.log_end, start, snapshot.has_marker), 0)
    pair, is_seen = snapshot.layout.pair, treatment.counts_before_first & (snapshot.last_commit_at > NEVER)
    is_first = treatment.counts_before_first & (is_seen | ~np.isin(pair, pair[is_seen]))
    counts_from_start = treatment.counts_from_start | is_first
    without_commit = lag_without_commit(
        snapshot.log_end, start, counts_from_start, snapshot.last_commit, snapshot.has_marker
    )
    return Values(
        lag=np.where(has_commit, from_commit, without_commit),
        lead=np.maximum(snapshot.committed - start, 0),
        has_commit=has_commit,
        # If the latest start is beyond the last good end, how many records follow it is unknown.
        is_known=(snapshot.received > NEVER) & (snapshot.state != State.AHEAD) & (start <= snapshot.log_end),
        is_commit_known=snapshot.received > NEVER,
    )
