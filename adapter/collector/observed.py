"""Combines one cycle's responses into what it observed for every row of a layout."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from adapter.collector.commits import AcceptedResponse, CommitRound
from adapter.collector.log_offsets import OffsetTable
from adapter.collector.row_mapping import NO_ROWS
from adapter.collector.share_groups import ShareRound, with_shares
from adapter.columns import NEVER, NO_COMMIT, Codes, Flags, Offsets, Seconds, is_offset
from adapter.lag.layout import Layout
from adapter.lag.snapshot import NO_CAUSE, Cause, Causes, Observed, Snapshot, State, nothing_observed
from adapter.lag.states import are_apart, differs_from_known, lacks_commit, without_drift
from adapter.protocol.codes import NO_ERROR
from adapter.settings.models import Isolation

NOT_REPORTED = Cause(State.UNKNOWN, "the latest responses lack the group's commits for the topic")
END_NOT_ASKED = Cause(State.UNKNOWN, "its log end has not been requested yet")


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """What the brokers reported, and how far that is believed."""

    observed: Observed
    progress: Offsets
    """The commits, and of share groups the start offsets."""
    is_doubtful: Flags
    """Rows read from a broker that has only just come back, or taken over the group."""
    start_received: Seconds
    """When the log start was received, which may be in an earlier cycle."""
    is_apart: Flags
    """Rows whose log end was requested too late after the commit."""


def observation_of(
    layout: Layout,
    commits: CommitRound,
    shares: ShareRound,
    share_topics: Mapping[str, Collection[str]],
    ends: Sequence[Mapping[Isolation, OffsetTable]],
    is_committed_only: Flags,
    causes: Causes,
) -> Observation:
    """Returns everything but the log starts, and no pair whose end was requested too late.

    `ends` are the rounds of log ends, `share_topics` have progress."""
    observed, batches = nothing_observed(layout), _batches_of(layout, commits, shares)
    is_doubtful = _with_commits(observed, layout, commits, causes)
    is_end_doubtful, end_sent = _with_ends(observed, layout, ends, batches, is_committed_only, causes)
    progress = with_shares(observed, is_doubtful, layout, share_topics, shares, causes)
    is_apart = are_apart(observed, end_sent)
    observed = without_drift(replace(observed, causes=tuple(causes.known)), is_apart)
    return Observation(observed, progress, is_doubtful | is_end_doubtful, np.full(len(layout), NEVER), is_apart)


def nothing_read(layout: Layout, cause: Cause) -> Observation:
    observed = nothing_observed(layout, (NO_CAUSE, cause))
    observed.commit_cause[:] = 1
    nowhere = np.zeros(len(layout), dtype=bool)
    return Observation(observed, observed.committed, nowhere, np.full(len(layout), NEVER), nowhere)


def in_question(seen: Observation, before: Snapshot) -> list[str]:
    """Returns the groups that have earlier commits than were known, or others if their broker is in doubt."""
    return [
        before.layout.groups[code] for code in np.unique(before.layout.group[_is_questionable(seen, before)]).tolist()
    ]


def _is_questionable(seen: Observation, before: Snapshot) -> Flags:
    """Leadership may have gone to another broker and back between two cycles, so no broker is above doubt."""
    is_reset: Flags = (seen.observed.commit_cause == 0) & lacks_commit(seen.observed, before)
    return is_reset | (seen.is_doubtful & differs_from_known(seen.observed, before))


def with_latest_commits(
    seen: Observation, before: Snapshot, unmoved_since: Mapping[str, float]
) -> tuple[Observation, Flags]:
    """Replaces other commits by those read before if nothing has been committed since. Also returns what is behind.

    `unmoved_since` has the groups for which this was asked after their commits had been read."""
    is_behind = seen.is_doubtful & lacks_commit(seen.observed, before)
    if not unmoved_since:
        return seen, is_behind
    layout, since = before.layout, np.full(len(before.layout), np.inf)
    for group, at in unmoved_since.items():
        since[layout.spans[group]] = at
    # What was received later was also requested later: log ends are never requested while commits are read.
    is_outdated = _is_questionable(seen, before) & (before.received > since)
    is_replaced = is_outdated & ~seen.is_apart
    committed = np.where(is_replaced, before.committed, seen.observed.committed)
    commit_cause = np.where(is_replaced, 0, seen.observed.commit_cause).astype(np.int32)
    observed = replace(seen.observed, committed=committed, commit_cause=commit_cause)
    return replace(
        seen, observed=observed, progress=np.where(is_replaced, committed, seen.progress)
    ), is_behind | is_outdated


def _with_commits(observed: Observed, layout: Layout, commits: CommitRound, causes: Causes) -> Flags:
    """Fills in a round's commits; returns the rows read from a broker that has only just come back."""
    groups = len(layout.groups)
    received, is_doubtful = np.full(groups, NEVER), np.zeros(groups, dtype=bool)
    cause = np.zeros(groups, dtype=np.int32)
    for part in commits.parts:
        received[part.codes] = part.received
        is_doubtful[part.codes] = part.is_doubtful[part.is_accepted]
    for group, at in commits.without_coordinator.items():
        received[layout.codes[group]] = at
    cause[np.isneginf(received)] = causes.code(NOT_REPORTED)
    for group, why in commits.unread.items():
        cause[layout.codes[group]] = causes.code(why)
    observed.commit_received[:] = received[layout.group]
    observed.commit_cause[:] = cause[layout.group]
    for part in commits.parts:
        _fill(observed, layout, part, causes)
    for group, topics in commits.unreported.items():
        for topic in topics:
            observed.commit_cause[layout.pairs.get((group, topic), NO_ROWS)] = causes.code(NOT_REPORTED)
    return is_doubtful[layout.group]


def _fill(observed: Observed, layout: Layout, part: AcceptedResponse, causes: Causes) -> None:
    mapping, columns = part.mapping.row_mapping(part.columns.shape, layout), part.columns
    source, target = mapping.source, mapping.target
    if not part.is_accepted.all():
        accepted_rows = np.repeat(part.is_accepted[columns.shape.group], columns.shape.sizes)
        is_accepted = accepted_rows[source]
        source, target = source[is_accepted], target[is_accepted]
    offset = columns.offset[source]
    observed.committed[target] = offset
    is_bad = (columns.error[source] != NO_ERROR) | ~(is_offset(offset) | (offset == NO_COMMIT))
    observed.commit_cause[target[is_bad]] = causes.code(Cause(State.ERROR, "its commit cannot be read"))


def _batches_of(layout: Layout, commits: CommitRound, shares: ShareRound) -> Codes:
    """Returns, per group of the layout, the first round of log ends requested after its commits; 0 without commits."""
    batches = np.zeros(len(layout.groups), dtype=np.int32)
    for part in commits.parts:
        batches[part.codes] = part.batch
    for group, answer in shares.answers.items():
        batches[layout.codes[group]] = answer.batch
    return batches


def _with_ends(
    observed: Observed,
    layout: Layout,
    rounds: Sequence[Mapping[Isolation, OffsetTable]],
    batches: Codes,
    is_committed_only: Flags,
    causes: Causes,
) -> tuple[Flags, Seconds]:
    """Fills in each row's first end after its commit; returns doubtful rows, and when the ends were requested."""
    rows = len(layout)
    is_doubtful, sent, is_left = np.zeros(rows, dtype=bool), np.full(rows, NEVER), np.ones(rows, dtype=bool)
    batch = batches[layout.group]
    for number, tables in enumerate(rounds):
        for level, table in tables.items():
            is_level = is_committed_only if level is Isolation.READ_COMMITTED else ~is_committed_only
            wanted = is_left & is_level & (batch <= number) & table.is_asked[layout.place]
            places = layout.place[wanted]
            observed.log_end[wanted] = table.offset[places]
            observed.end_received[wanted] = table.received[places]
            observed.end_cause[wanted] = table.cause[places]
            is_doubtful[wanted], sent[wanted] = table.is_doubtful[places], table.sent[places]
            is_left &= ~wanted
    observed.end_cause[is_left] = causes.code(END_NOT_ASKED)
    return is_doubtful, sent
