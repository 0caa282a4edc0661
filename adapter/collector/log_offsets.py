"""Log ends and starts in each cycle: one ListOffsets per leader and isolation level, into a table of partitions.

The table contains each partition once, however many groups read it; the layout assigns the indexes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from adapter.clock import is_due
from adapter.cluster.groups import NOBODY
from adapter.cluster.topics import Topology
from adapter.collector.offset_plans import OffsetPlan, Plans
from adapter.collector.row_mapping import RowMapping
from adapter.columns import NEVER, NOT_KNOWN, Codes, Flags, Indexes, Offsets, Seconds, is_offset
from adapter.kafka.answers import Failure, FailureCause
from adapter.kafka.calls import Calls
from adapter.kafka.client import Brokers
from adapter.kafka.liveness import Liveness
from adapter.lag.layout import NO_LAYOUT, Layout, carried, same_places
from adapter.lag.snapshot import Cause, Causes, State
from adapter.metrics.problems import hidden_topic
from adapter.protocol.codes import MOVED, NO_ERROR, NOT_CAUGHT_UP, TOPIC_NOT_AUTHORIZED
from adapter.protocol.offset_responses import Columns
from adapter.protocol.prepared_requests import EARLIEST, LATEST
from adapter.settings.models import Isolation

START_SECONDS = 60.0
"""A log start is read at least this often; retention moves it in steps of minutes."""


@dataclass(frozen=True, slots=True, eq=False)
class OffsetTable:
    """The log ends of one round at one isolation level, or log starts, per partition of the layout's table."""

    is_asked: Flags
    offset: Offsets
    sent: Seconds
    received: Seconds
    cause: Codes
    is_doubtful: Flags


@dataclass(frozen=True, slots=True, eq=False)
class Starts:
    """The latest known log starts, per partition of the layout's table; filled in as they are read."""

    layout: Layout
    offset: Offsets
    received: Seconds


@dataclass(frozen=True, slots=True, eq=False)
class _Sent:
    plan: OffsetPlan
    calls: Calls[Columns]
    """The plan's requests that were sent, by node."""
    doubtful: frozenset[int]
    """Nodes that had been silent just before. Other brokers may delay the reading of their responses."""


class Ends:
    def __init__(self, brokers: Brokers, liveness: Liveness, monotonic: Callable[[], float], interval: float) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._monotonic = monotonic
        self._interval = interval
        self._plans = Plans()
        self._starts = _no_starts(NO_LAYOUT)
        self._starts_read = NEVER
        self._is_start_left = np.empty(0, dtype=bool)
        """The partitions whose start could not be read when it was last requested."""
        self._rounds: list[dict[Isolation, _Sent]] = []
        self.have_moved = False
        """Whether the last responses show that Metadata has changed."""

    def begin(self) -> None:
        self.have_moved = False
        self._rounds = []

    @property
    def rounds(self) -> int:
        return len(self._rounds)

    def ask(self, layout: Layout, needed: Mapping[Isolation, Flags], topology: Topology) -> None:
        """Requests ends from the leaders without waiting; `needed` has the partitions per isolation level."""
        if needed:
            plans = {
                level: self._plans.plan((LATEST, level, self.rounds), layout, topology, wanted)
                for level, wanted in needed.items()
            }
            self._rounds.append({level: self._sent(plan) for level, plan in plans.items()})

    def not_asked(self, layout: Layout, needed: Mapping[Isolation, Flags]) -> dict[Isolation, Flags]:
        left = {level: wanted.copy() for level, wanted in needed.items()}
        for level, sent in chain.from_iterable(together.items() for together in self._rounds):
            if level in left:
                here, there = same_places(layout, sent.plan.layout)
                left[level][here] &= ~sent.plan.wanted[there]
        return {level: wanted for level, wanted in left.items() if wanted.any()}

    def _sent(self, plan: OffsetPlan) -> _Sent:
        present = self._liveness.present(plan.questions)
        calls = self._brokers.offsets({node: plan.questions[node] for node in present})
        return _Sent(plan, calls, frozenset(filter(self._liveness.is_doubtful, present)))

    def collect(self, layout: Layout, causes: Causes) -> list[dict[Isolation, OffsetTable]]:
        """Waits for all responses; returns the tables of each round for this layout."""
        starts, rounds = self._starts_in(layout).offset, []
        for together in self._rounds:
            tables = {
                level: _moved_table(self._read(sent, causes), sent.plan.layout, layout)
                for level, sent in together.items()
            }
            rounds.append(tables)
            for table in tables.values():
                is_known = table.is_asked & (table.cause == 0) & (table.offset != NOT_KNOWN)
                self.doubt(np.flatnonzero(is_known & (table.offset < starts)))
        return rounds

    def sent(self, number: int) -> float | None:
        """Returns when the last request of the round was passed to its connection; None if there was none."""
        if number >= len(self._rounds):
            return None
        return max((at for sent in self._rounds[number].values() for at in sent.calls.sent.values()), default=None)

    def doubt(self, places: Indexes) -> None:
        """Reads the start and topic again, because ends that went backward may belong to another log."""
        if len(places):
            self.have_moved = True
            self._starts.offset[places] = NOT_KNOWN

    def _read(self, sent: _Sent, causes: Causes) -> OffsetTable:
        plan = sent.plan
        table = _empty_table(plan.wanted)
        is_leaderless = plan.wanted & (plan.leaders == NOBODY)
        if is_leaderless.any():
            self.have_moved = True
            table.cause[is_leaderless] = causes.code(Cause(State.LEADERLESS, "the partition has no leader"))
        answers = self._brokers.finish(sent.calls)
        self._liveness.note(answers)
        for node, own in plan.places.items():
            table.sent[own] = sent.calls.sent.get(node, NEVER)
            answer = answers.get(node) or self._liveness.failure(node) or Failure(FailureCause.OTHER, "it is not asked")
            if isinstance(answer, Failure):
                table.cause[own] = causes.code(Cause(State.UNKNOWN, answer.text))
                continue
            table.cause[own] = causes.code(Cause(State.ERROR, f"broker {node} omitted the partition from its response"))
            table.received[own] = answer.received
            table.is_doubtful[own] = node in sent.doubtful
            mapping = plan.row_mappings[node](answer.content.shape, plan.layout)
            self._fill(table, mapping, answer.content, causes)
        return table

    def _fill(self, table: OffsetTable, mapping: RowMapping, columns: Columns, causes: Causes) -> None:
        places, offset, error = mapping.target, columns.offset[mapping.source], columns.error[mapping.source]
        table.offset[places] = offset
        table.cause[places] = 0
        absurd = places[(error == NO_ERROR) & ~is_offset(offset)]
        if len(absurd):
            table.cause[absurd] = causes.code(Cause(State.ERROR, "its leader returned an invalid log end"))
        failed = np.flatnonzero(error != NO_ERROR)
        if len(failed):
            self.have_moved |= bool(np.isin(error[failed], MOVED).any())
            topics = columns.shape.topics
            block = np.repeat(np.arange(len(topics)), columns.shape.sizes)[mapping.source[failed]]
            _fill_failed(table, places[failed], error[failed], block, topics, causes)

    def starts(self, layout: Layout, topology: Topology) -> Starts:
        """Returns the latest known starts; those unknown or left are read at once, others when they are due."""
        starts, now = self._starts_in(layout), self._monotonic()
        reads_all = is_due(self._starts_read, START_SECONDS, now, self._interval)
        is_left = self._is_start_left | (starts.offset == NOT_KNOWN)
        wanted = np.full(len(is_left), fill_value=True) if reads_all else is_left
        if wanted.any():
            self._starts_read = now if reads_all else self._starts_read
            # Those that are unknown are different partitions each time, and the plan of all of them is kept.
            purpose = (EARLIEST, Isolation.READ_UNCOMMITTED, int(not reads_all))
            table = self._read(self._sent(self._plans.plan(purpose, layout, topology, wanted)), Causes())
            is_good = wanted & (table.cause == 0)
            starts.offset[is_good], starts.received[is_good] = table.offset[is_good], table.received[is_good]
            self._is_start_left = wanted & ~is_good
        return starts

    def _starts_in(self, layout: Layout) -> Starts:
        """Returns the starts that are known so far; those of new partitions and topic generations are not."""
        former = self._starts
        if former.layout is not layout:
            self._starts = carried(former, _no_starts(layout), same_places(layout, former.layout))
            self._is_start_left = self._starts.offset == NOT_KNOWN
        return self._starts


def _no_starts(layout: Layout) -> Starts:
    size = layout.table_size
    return Starts(layout, np.full(size, NOT_KNOWN, dtype=np.int64), np.full(size, NEVER))


def _empty_table(is_asked: Flags) -> OffsetTable:
    size = len(is_asked)
    return OffsetTable(
        is_asked=is_asked,
        offset=np.full(size, NOT_KNOWN, dtype=np.int64),
        sent=np.full(size, NEVER),
        received=np.full(size, NEVER),
        cause=np.zeros(size, dtype=np.int32),
        is_doubtful=np.zeros(size, dtype=bool),
    )


def _moved_table(table: OffsetTable, before: Layout, layout: Layout) -> OffsetTable:
    if before is layout:
        return table
    return carried(table, _empty_table(np.zeros(layout.table_size, dtype=bool)), same_places(layout, before))


def _fill_failed(
    table: OffsetTable, places: Codes, error: NDArray[np.int16], block: Indexes, topics: Sequence[str], causes: Causes
) -> None:
    """Uses one cause for each run of rows of one topic with the same error."""
    begins = np.flatnonzero((np.diff(block, prepend=-1) != 0) | (np.diff(error, prepend=NO_ERROR) != 0))
    runs = zip(error[begins].tolist(), block[begins].tolist(), strict=True)
    codes = [causes.code(_cause_of(code, topics[number])) for code, number in runs]
    table.cause[places] = np.repeat(codes, np.diff(begins, append=len(places)))


def _cause_of(error: int, topic: str) -> Cause:
    if error == TOPIC_NOT_AUTHORIZED:
        return Cause(State.ERROR, hidden_topic(topic))
    if error in MOVED:
        return Cause(State.UNKNOWN, "its leadership is moving")
    if error == NOT_CAUGHT_UP:
        return Cause(State.UNKNOWN, "its leader has not caught up yet after an election")
    return Cause(State.ERROR, f"its leader returned error {error}")
