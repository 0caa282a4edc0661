"""Decides the state of every row from the latest cycle and the previous snapshot."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from adapter.columns import NEVER, NO_COMMIT, NOT_KNOWN, Flags, Offsets, Seconds
from adapter.lag.snapshot import NOT_SEEN, Cause, Observed, Snapshot, State

CYCLES_BEFORE_AHEAD = 2
"""A commit can briefly exceed the end after an election; the second consecutive time it counts."""
FIRST_TIME_BEYOND = Cause(State.UNKNOWN, "the commit is beyond the log end, which may be temporary after an election")
START_NOT_READ = Cause(State.UNKNOWN, "its log start has not been read yet")
MOST_SECONDS_APART = 0.5
"""Between receiving a commit and requesting its log end."""
TOO_FAR_APART = Cause(
    State.UNKNOWN, f"its log end could not be requested within {MOST_SECONDS_APART:g} s of its commit"
)
LAST_COMMIT_NOT_KNOWN = Cause(State.UNKNOWN, "it has no commit, and whether one has expired is not known yet")
COMMIT_IS_GONE = Cause(State.UNKNOWN, "its commit is gone, and whether its topic was created again is not known yet")
OLDER_THAN_BEFORE = Cause(
    State.UNKNOWN, "a broker that has just come back, or taken over the group, reports older offsets than before"
)


def settled(observed: Observed, before: Snapshot) -> Snapshot:
    """Returns the snapshot after a cycle; `before` has the same layout."""
    log_start = np.where(observed.log_start == NOT_KNOWN, before.log_start, observed.log_start)
    # The older start may belong to the previous log, so it applies only to the last good row.
    is_read = (observed.commit_cause == 0) & (observed.end_cause == 0) & (observed.log_start != NOT_KNOWN)
    is_reported = observed.committed != NO_COMMIT
    last_commit = np.where(is_reported, observed.committed, before.last_commit)
    is_beyond = is_read & (last_commit > observed.log_end)
    is_again_beyond = is_beyond & (before.beyond + 1 >= CYCLES_BEFORE_AHEAD)
    # For an `ahead` row, the contradicting pair is only shown in the error.
    is_shown_beyond = is_again_beyond & is_reported
    # A log that ends before the last commit has lost messages, so the commit belongs to no message of it.
    is_of_other_log = is_again_beyond & (before.last_commit > observed.log_end)
    is_good = is_read & (~is_beyond | (is_again_beyond & ~is_reported))
    is_commit = is_good & is_reported
    beyond = np.where(is_good, 0, np.minimum(before.beyond + is_beyond, 100)).astype(np.int8)
    committed = np.where(is_good, observed.committed, before.committed)
    received = np.minimum(observed.commit_received, observed.end_received)
    causes = (*observed.causes, START_NOT_READ, FIRST_TIME_BEYOND)
    cause = np.where(observed.commit_cause != 0, observed.commit_cause, observed.end_cause)
    cause = np.where((cause == 0) & ~is_read, len(causes) - 2, cause)
    cause = np.where(is_beyond & ~is_good, len(causes) - 1, cause).astype(np.int32)
    otherwise = np.array([each.state or State.UNKNOWN for each in causes], dtype=np.int8)[cause]
    return replace(
        before,
        committed=np.where(is_shown_beyond, observed.committed, committed),
        log_end=np.where(is_good | is_shown_beyond, observed.log_end, before.log_end),
        log_start=log_start,
        received=np.where(is_good | is_shown_beyond, received, before.received),
        state=_states(committed, log_start, is_good, beyond, otherwise),
        cause=cause,
        causes=causes,
        last_commit=np.where(is_of_other_log, NO_COMMIT, np.where(is_commit, last_commit, before.last_commit)),
        last_commit_at=np.where(is_commit | is_of_other_log, received, before.last_commit_at),
        beyond=beyond,
    )


def has_gone_backward(observed: Observed, before: Snapshot) -> Flags:
    """Rows whose log end is before the known one, as after an election or when a topic was created again.

    The new log may already be longer than the old one, so a commit that moved back before the log start counts as well.
    So does the first commit beyond the end: the leader may have been deposed without knowing it."""
    is_known = (observed.end_cause == 0) & (observed.log_end != NOT_KNOWN)
    is_committed = (observed.commit_cause == 0) & (observed.committed != NO_COMMIT)
    is_older = is_committed & (observed.committed < np.minimum(before.committed, before.log_start))
    is_beyond = is_committed & (observed.committed > observed.log_end) & (before.beyond == 0)
    is_less: Flags = (is_known & ((observed.log_end < before.log_end) | is_beyond)) | is_older
    return is_less


def lacks_commit(observed: Observed, before: Snapshot) -> Flags:
    """Rows whose known commit is not reported, or an earlier one instead. A recalled one may have been reset."""
    is_older: Flags = (observed.commit_cause != 0) | (observed.committed < before.committed)
    return is_older & (before.received > NEVER)


def differs_from_known(observed: Observed, before: Snapshot) -> Flags:
    """Rows whose known commit is not reported, or another one instead."""
    is_other: Flags = (observed.commit_cause != 0) | (observed.committed != before.committed)
    return is_other & (before.received > NEVER)


def without_steps_backward(observed: Observed, before: Snapshot, is_doubtful: Flags) -> Observed:
    """Ignores offsets that go backward in `is_doubtful` rows: their brokers may report old ones for a moment."""
    if not is_doubtful.any():
        return observed
    is_older_end = (observed.end_cause == 0) & (observed.log_end < before.log_end) & (before.received > NEVER)
    is_step_backward = is_doubtful & (lacks_commit(observed, before) | is_older_end)
    return _without(observed, is_step_backward, OLDER_THAN_BEFORE)


def are_apart(observed: Observed, end_sent: Seconds) -> Flags:
    """Whether the end was requested too late after the commit."""
    is_apart: Flags = end_sent > observed.commit_received + MOST_SECONDS_APART
    return is_apart


def without_drift(observed: Observed, is_apart: Flags) -> Observed:
    """Ignores pairs that are apart: messages produced in between would count as lag."""
    return _without(observed, is_apart, TOO_FAR_APART)


def without_commit_unknown(observed: Observed, before: Snapshot, is_remembered: Flags) -> Observed:
    """Ignores rows without any commit, of groups that are remembered, while it is not yet known what of them is."""
    is_uncommitted = (observed.committed == NO_COMMIT) & (before.last_commit == NO_COMMIT)
    return _without(observed, is_uncommitted & is_remembered, LAST_COMMIT_NOT_KNOWN)


def without_lost_commits(observed: Observed, before: Snapshot, *, is_described: bool) -> Observed:
    """Ignores lost commits until Metadata was read after the loss: the log may be that of a topic created again."""
    is_lost = (observed.committed == NO_COMMIT) & (before.committed != NO_COMMIT) & (observed.end_cause == 0)
    is_too_early = (before.cause == 0) | (not is_described)
    return _without(observed, is_lost & is_too_early, COMMIT_IS_GONE)


def with_movement(snapshot: Snapshot, progress: Offsets, received: Seconds, is_read: Flags) -> Snapshot:
    """Notes which commits have moved; `is_read` marks the rows whose progress was read.

    For a share group, progress is its start offset. A commit that expires or is deleted is no progress."""
    is_seen = snapshot.progress != NOT_SEEN
    is_other = (progress != snapshot.progress) & (progress != NO_COMMIT) & is_seen
    is_first, watched_since = is_read & ~is_seen, snapshot.watched_since
    return replace(
        snapshot,
        progress=np.where(is_read, progress, snapshot.progress),
        moved_at=np.where(is_read & is_other, received, snapshot.moved_at),
        watched_since=np.where(is_first, received, watched_since) if is_first.any() else watched_since,
    )


def _without(observed: Observed, is_ignored: Flags, cause: Cause) -> Observed:
    is_ignored = is_ignored & (observed.commit_cause == 0)
    if not is_ignored.any():
        return observed
    commit_cause = np.where(is_ignored, len(observed.causes), observed.commit_cause)
    return replace(observed, commit_cause=commit_cause.astype(np.int32), causes=(*observed.causes, cause))


def _states(
    committed: Offsets, log_start: Offsets, is_good: Flags, beyond: NDArray[np.int8], otherwise: NDArray[np.int8]
) -> NDArray[np.int8]:
    conditions = [
        beyond >= CYCLES_BEFORE_AHEAD,
        is_good & (committed == NO_COMMIT),
        is_good & (committed < log_start),
        is_good,
    ]
    states = [State.AHEAD, State.NO_COMMIT, State.TRUNCATED, State.OK]
    return np.select(conditions, [np.int8(state) for state in states], otherwise).astype(np.int8)
