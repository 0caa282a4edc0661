"""All offsets of one cluster at one time, as columns: one row per group, topic and partition that may count.

Every column has one entry per row of its layout. Offsets are messages; times are seconds of the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapter.topology import Topology

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


class State(IntEnum):
    """What is known of a row in the newest cycle; `lag.py` says what each gives."""

    OK = 0
    NO_COMMIT = 1
    TRUNCATED = 2
    AHEAD = 3
    STALE = 4
    LEADERLESS = 5
    ERROR = 6
    UNKNOWN = 7


class Cause(NamedTuple):
    """Why a row could not be read in a cycle. A tuple: a cycle may make and look up tens of thousands."""

    state: State
    text: str


NO_CAUSE = Cause(State.OK, "")


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Which rows there are, sorted by group, topic and partition; the same object while nothing changes."""

    groups: tuple[str, ...]
    topics: tuple[str, ...]
    generations: Mapping[str, str | None]
    """Topic -> topic id."""
    group: Codes
    topic: Codes
    partition: Codes
    pairs: Mapping[tuple[str, str], slice]
    """(group, topic) -> its rows, one per partition in order."""
    spans: Mapping[str, slice]
    """Group -> its rows; empty for a group without any."""
    bases: Mapping[str, slice]
    """Topic -> its place in a table that has every partition once, however many groups read it."""
    place: NDArray[np.intp]
    """Row -> its partition's place in that table."""

    codes: Mapping[str, int]
    """Group -> its code."""

    def __len__(self) -> int:
        return len(self.partition)

    @property
    def table_size(self) -> int:
        """How many places the table of partitions has."""
        return self.bases[self.topics[-1]].stop if self.topics else 0

    def name(self, row: int) -> str:
        return f"{self.topics[self.topic[row]]}/{self.partition[row]}"


def layout_of(wanted: Mapping[str, Collection[str]], topology: Topology) -> Layout:
    """The rows of `wanted` (group -> topics): all partitions of those topics that exist."""
    groups = tuple(sorted(wanted))
    chosen = [
        (code, group, topic)
        for code, group in enumerate(groups)
        for topic in sorted(wanted[group])
        if topic in topology.topics
    ]
    topics = tuple(sorted({topic for _, _, topic in chosen}))
    topic_codes = {topic: code for code, topic in enumerate(topics)}
    sizes = np.array([len(topology.topics[topic].leaders) for _, _, topic in chosen], dtype=np.int64)
    ends = np.cumsum(sizes)
    pairs = {
        (group, topic): slice(int(end - size), int(end))
        for (_, group, topic), size, end in zip(chosen, sizes, ends, strict=True)
    }
    total = int(ends[-1]) if chosen else 0
    group_column = np.repeat(np.array([code for code, _, _ in chosen], dtype=np.int32), sizes)
    bounds = np.searchsorted(group_column, np.arange(len(groups) + 1))
    topic_column = np.repeat(np.array([topic_codes[topic] for _, _, topic in chosen], dtype=np.int32), sizes)
    partition_column = (np.arange(total) - np.repeat(ends - sizes, sizes)).astype(np.int32)
    stops = np.cumsum([len(topology.topics[topic].leaders) for topic in topics], dtype=np.intp).astype(np.intp)
    begins = np.concatenate([np.zeros(1, dtype=np.intp), stops])
    return Layout(
        groups=groups,
        topics=topics,
        generations={topic: topology.topics[topic].generation for topic in topics},
        group=group_column,
        topic=topic_column,
        partition=partition_column,
        pairs=pairs,
        spans={group: slice(int(bounds[code]), int(bounds[code + 1])) for code, group in enumerate(groups)},
        bases={topic: slice(int(begins[code]), int(begins[code + 1])) for code, topic in enumerate(topics)},
        place=(begins[topic_column] + partition_column).astype(np.intp),
        codes={group: code for code, group in enumerate(groups)},
    )


NO_LAYOUT = layout_of({}, Topology())


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The last good row of every partition (commit and end of one cycle, never mixed), and its state now."""

    layout: Layout
    committed: Offsets
    log_end: Offsets
    log_start: Offsets
    """The newest known one, which may be of a later cycle than the other two."""
    received: Seconds
    """When the older of commit and end was received; NEVER where there was no good row yet."""
    state: NDArray[np.int8]
    cause: Codes
    """Index into `causes`: why the newest cycle gave no good row."""
    causes: tuple[Cause, ...]
    beyond: NDArray[np.int8]
    """In how many good cycles running the commit was beyond the log end."""

    def cause_of(self, row: int) -> Cause:
        return self.causes[int(self.cause[row])]


def empty_snapshot(layout: Layout = NO_LAYOUT) -> Snapshot:
    """Rows of which nothing is known."""
    rows = len(layout)
    return Snapshot(
        layout=layout,
        committed=np.full(rows, NO_COMMIT, dtype=np.int64),
        log_end=np.full(rows, NOT_KNOWN, dtype=np.int64),
        log_start=np.full(rows, NOT_KNOWN, dtype=np.int64),
        received=np.full(rows, NEVER),
        state=np.full(rows, State.UNKNOWN, dtype=np.int8),
        cause=np.zeros(rows, dtype=np.int32),
        causes=(NO_CAUSE,),
        beyond=np.zeros(rows, dtype=np.int8),
    )


def moved_to(snapshot: Snapshot, layout: Layout) -> Snapshot:
    """The same rows in another layout; new partitions and new generations of a topic begin with nothing known."""
    if layout is snapshot.layout:
        return snapshot
    here, there = same_rows(layout, snapshot.layout)
    moved = empty_snapshot(layout)
    for new, known in zip(_columns(moved), _columns(snapshot), strict=True):
        new[here] = known[there]
    return replace(moved, causes=snapshot.causes)


def same_rows(layout: Layout, old: Layout) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows of `layout` that are in the old one too, and where they are there."""
    both = [
        (rows.start, before.start, min(rows.stop - rows.start, before.stop - before.start))
        for pair, rows in layout.pairs.items()
        if (before := old.pairs.get(pair)) is not None and old.generations[pair[1]] == layout.generations[pair[1]]
    ]
    starts, olds, counts = np.array(both, dtype=np.intp).reshape(-1, 3).T
    number = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts, counts) + number, np.repeat(olds, counts) + number


def _columns(snapshot: Snapshot) -> tuple[NDArray[Any], ...]:
    return (
        snapshot.committed,
        snapshot.log_end,
        snapshot.log_start,
        snapshot.received,
        snapshot.state,
        snapshot.cause,
        snapshot.beyond,
    )


@dataclass(slots=True)
class Causes:
    """The causes of one cycle, each once; columns hold their index, 0 for none."""

    known: dict[Cause, int] = field(default_factory=lambda: {NO_CAUSE: 0})

    def code(self, cause: Cause | None) -> int:
        return self.known.setdefault(cause or NO_CAUSE, len(self.known))

    def table(self) -> tuple[Cause, ...]:
        return tuple(self.known)


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """What one cycle gave for every row of a layout, before anything is decided."""

    committed: Offsets
    commit_received: Seconds
    commit_cause: Codes
    log_end: Offsets
    end_received: Seconds
    end_cause: Codes
    log_start: Offsets
    """The newest known one; NOT_KNOWN also where the one that was known may be of another log."""
    causes: Sequence[Cause]


def nothing_observed(layout: Layout, causes: Sequence[Cause] = (NO_CAUSE,)) -> Observed:
    """Columns to be filled in."""
    rows = len(layout)
    return Observed(
        committed=np.full(rows, NO_COMMIT, dtype=np.int64),
        commit_received=np.full(rows, NEVER),
        commit_cause=np.zeros(rows, dtype=np.int32),
        log_end=np.full(rows, NOT_KNOWN, dtype=np.int64),
        end_received=np.full(rows, NEVER),
        end_cause=np.zeros(rows, dtype=np.int32),
        log_start=np.full(rows, NOT_KNOWN, dtype=np.int64),
        causes=causes,
    )
