"""Pure: one cycle's answers -> what it observed for every row of a layout."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from adapter.commits import CommitRound, Part
from adapter.ends import EndTable
from adapter.settings import Isolation
from adapter.snapshot import (
    LARGEST_OFFSET,
    NEVER,
    NO_COMMIT,
    Cause,
    Causes,
    Flags,
    Layout,
    Observed,
    State,
)
from adapter.wire import NO_ERROR

NOT_REPORTED = Cause(State.UNKNOWN, "the group's commits for the topic are missing in the last answers")


def with_commits(observed: Observed, layout: Layout, commits: CommitRound, causes: Causes) -> Flags:
    """Fill in a round's commits, whose groups are the layout's; gives the rows that a doubtful broker told."""
    groups = len(layout.groups)
    received, is_doubtful = np.full(groups, NEVER), np.zeros(groups, dtype=bool)
    cause = np.zeros(groups, dtype=np.int32)
    for part in commits.parts:
        received[part.codes] = part.received
        is_doubtful[part.codes] = part.is_doubtful
    for group, at in commits.headless.items():
        received[layout.codes[group]] = at
    is_unanswered = np.isneginf(received)
    if is_unanswered.any():
        cause[is_unanswered] = causes.code(NOT_REPORTED)
        for group, why in commits.problems.items():
            cause[layout.codes[group]] = causes.code(why)
    observed.commit_received[:] = received[layout.group]
    observed.commit_cause[:] = cause[layout.group]
    for part in commits.parts:
        _fill(observed, layout, part, causes)
    for pair in commits.unreported:
        rows = layout.pairs.get(pair)
        if rows is not None:
            observed.commit_cause[rows] = causes.code(NOT_REPORTED)
    return is_doubtful[layout.group]


def _fill(observed: Observed, layout: Layout, part: Part, causes: Causes) -> None:
    wiring, columns = part.learnt.wiring(layout), part.columns
    if not part.is_accepted.all():
        accepted_rows = np.repeat(part.is_accepted[columns.shape.group], columns.shape.sizes)
        wiring = wiring.only(accepted_rows[wiring.wire])
    offset = columns.offset[wiring.wire]
    observed.committed[wiring.target] = offset
    is_bad = (columns.error[wiring.wire] != NO_ERROR) | (offset < NO_COMMIT) | (offset > LARGEST_OFFSET)
    if is_bad.any():
        observed.commit_cause[wiring.target[is_bad]] = causes.code(Cause(State.ERROR, "its commit cannot be read"))


def with_ends(
    observed: Observed, layout: Layout, tables: Mapping[Isolation, EndTable], is_committed_only: Flags
) -> Flags:
    """Fill in the log ends, each row's of its isolation level; gives the rows that a doubtful broker told."""
    is_doubtful = np.zeros(len(layout), dtype=bool)
    for level, table in tables.items():
        wanted = is_committed_only if level is Isolation.READ_COMMITTED else ~is_committed_only
        rows: Flags | slice = slice(None) if wanted.all() else wanted
        places = layout.place[rows]
        observed.log_end[rows] = table.log_end[places]
        observed.end_received[rows] = table.received[places]
        observed.end_cause[rows] = table.cause[places]
        is_doubtful[rows] = table.is_doubtful[places]
    return is_doubtful
