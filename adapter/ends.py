"""Log ends and starts, cycle by cycle: one ListOffsets per leader and isolation level, into a table of partitions.

The table has every partition once, however many groups read it; its places are those of the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.answers import Answer, Failure
from adapter.brokers import Brokers
from adapter.liveness import Liveness
from adapter.offset_plans import OffsetPlan, Plans
from adapter.questions import EARLIEST, LATEST
from adapter.responses import Columns
from adapter.settings import Isolation
from adapter.snapshot import NEVER, NOT_KNOWN, Cause, Causes, Codes, Flags, Layout, Offsets, Seconds, State, is_offset
from adapter.topology import NO_LEADER, Topology
from adapter.wire import NO_ERROR
from adapter.wiring import Indexes

START_SECONDS = 60.0
"""A log start is read at least this often: retention moves it in steps of minutes."""
FIRST_PATIENCE = START_SECONDS / 6
"""So long a start that could not be read is left alone at first, and twice as long each time: others are due anyway."""
NOT_CAUGHT_UP = 78
"""A new leader does not know yet how far its followers are; seen for seconds where leadership moves again and again."""
MOVED_ERRORS = (3, 5, 6, 74, 75, 100)
"""Unknown partition, no leader, not the leader, wrong epoch, unknown id: Metadata has news."""
TOPIC_NOT_AUTHORIZED = 29


@dataclass(frozen=True, slots=True, eq=False)
class EndTable:
    """Per place of the layout's partition table."""

    log_end: Offsets
    received: Seconds
    cause: Codes
    is_doubtful: Flags


@dataclass(slots=True, eq=False)
class _Starts:
    """What is known of a layout's starts, and when those that are not known may be asked for again."""

    layout: Layout
    leaders: Codes
    known: Offsets
    not_before: Seconds
    patience: Seconds


class Ends:
    """The ends and starts of one cluster's partitions. Used by one thread."""

    def __init__(self, brokers: Brokers, liveness: Liveness, monotonic: Callable[[], float], interval: float) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._monotonic = monotonic
        self._slack = interval / 2
        self._plans = Plans()
        self._starts: _Starts | None = None
        self._starts_read = NEVER
        self.have_moved = False
        """Whether the last answers say that Metadata has news."""

    def read(
        self, layout: Layout, topology: Topology, needed: Mapping[Isolation, Flags], causes: Causes
    ) -> dict[Isolation, EndTable]:
        """The newest ends; `needed`: per isolation level the places that some row wants."""
        self.have_moved = False
        leaders = self._plans.leaders(layout, topology)
        starts = self._starts = _moved(self._starts, layout, leaders)
        tables = {
            level: self._read_level(self._plans.plan(layout, leaders, wanted, LATEST, level), causes)
            for level, wanted in needed.items()
        }
        for table in tables.values():
            is_told = (table.cause == 0) & (table.log_end != NOT_KNOWN)
            self.doubt(np.flatnonzero(is_told & (table.log_end < starts.known)))
        return tables

    def doubt(self, places: Indexes) -> None:
        """Their ends lie before what was known: it may be another log, whose start and topic have to be read anew."""
        starts = self._starts
        if len(places) and starts is not None:
            self.have_moved = True
            starts.known = starts.known.copy()
            starts.known[places], starts.not_before[places] = NOT_KNOWN, NEVER

    def _read_level(self, plan: OffsetPlan, causes: Causes) -> EndTable:
        size = len(plan.leaders)
        table = EndTable(
            np.full(size, NOT_KNOWN, dtype=np.int64),
            np.full(size, NEVER),
            np.zeros(size, dtype=np.int32),
            np.zeros(size, bool),
        )
        is_leaderless = plan.leaders == NO_LEADER
        if is_leaderless.any():
            self.have_moved |= bool((is_leaderless & plan.wanted).any())
            table.cause[is_leaderless] = causes.code(Cause(State.LEADERLESS, "the partition has no leader"))
        for number, answer in self._ask(plan):
            node, own = plan.questions[number].node, plan.places[number]
            if isinstance(answer, Failure):
                table.cause[own] = causes.code(Cause(State.UNKNOWN, answer.text))
                continue
            table.cause[own] = causes.code(Cause(State.ERROR, f"broker {node} left the partition out of its answer"))
            table.received[own] = answer.received
            table.is_doubtful[own] = self._liveness.is_doubtful(node)
            self._fill(table, plan, number, answer.content, causes)
        return table

    def _fill(self, table: EndTable, plan: OffsetPlan, number: int, columns: Columns, causes: Causes) -> None:
        wiring = plan.wiring(number, columns.shape)
        places, offset, error = wiring.target, columns.offset[wiring.wire], columns.error[wiring.wire]
        table.log_end[places] = offset
        table.cause[places] = 0
        absurd = places[(error == NO_ERROR) & ~is_offset(offset)]
        if len(absurd):
            table.cause[absurd] = causes.code(Cause(State.ERROR, "its leader gives a log end that is none"))
        failed = np.flatnonzero(error != NO_ERROR)
        if len(failed):
            self.have_moved |= bool(np.isin(error[failed], MOVED_ERRORS).any())
            topics = columns.shape.topics
            block = np.repeat(np.arange(len(topics)), columns.shape.sizes)[wiring.wire[failed]]
            _fill_failed(table, places[failed], error[failed], block, topics, causes)

    def starts(self, layout: Layout, topology: Topology, wanted: Flags) -> Offsets:
        """The newest known start of every place; a new partition's is read at once, all others when they are due."""
        leaders = self._plans.leaders(layout, topology)
        starts = self._starts = _moved(self._starts, layout, leaders)
        now = self._monotonic()
        is_due = now - self._starts_read >= START_SECONDS - self._slack
        asked = wanted if is_due else wanted & (starts.known == NOT_KNOWN) & (starts.not_before <= now)
        if asked.any():
            level = Isolation.READ_UNCOMMITTED
            if is_due:
                self._starts_read = now
            # Those that are asked for out of turn are others each time: no plan of theirs is kept.
            plans = self._plans if is_due else Plans()
            self._read_starts(starts, plans.plan(layout, leaders, asked, EARLIEST, level), now)
        return starts.known

    def _read_starts(self, starts: _Starts, plan: OffsetPlan, now: float) -> None:
        # What was handed out before is not changed.
        starts.known = starts.known.copy()
        for number, answer in self._ask(plan):
            if isinstance(answer, Answer):
                wiring, columns = plan.wiring(number, answer.content.shape), answer.content
                offset, error = columns.offset[wiring.wire], columns.error[wiring.wire]
                is_good = (error == NO_ERROR) & is_offset(offset)
                starts.known[wiring.target[is_good]] = offset[is_good]
                own = plan.places[number]
                failed = own[starts.known[own] == NOT_KNOWN]
                starts.not_before[failed] = now + starts.patience[failed] - self._slack
                starts.patience[failed] = np.minimum(2 * starts.patience[failed], START_SECONDS)

    def _ask(self, plan: OffsetPlan) -> Iterator[tuple[int, Answer[Columns] | Failure]]:
        """Number of the question, and what came of it."""
        present = set(self._liveness.present(question.node for question in plan.questions))
        asked = [number for number, question in enumerate(plan.questions) if question.node in present]
        answers = self._brokers.offsets([plan.questions[number] for number in asked])
        self._liveness.note({plan.questions[n].node: answer for n, answer in zip(asked, answers, strict=True)})
        yield from zip(asked, answers, strict=True)
        for number, question in enumerate(plan.questions):
            failure = self._liveness.failure(question.node)
            if question.node not in present and failure is not None:
                yield number, failure


def _moved(before: _Starts | None, layout: Layout, leaders: Codes) -> _Starts:
    """The same starts in another layout; new partitions and new generations of a topic begin with nothing known."""
    if before is not None and before.layout is layout and before.leaders is leaders:
        return before
    size = layout.table_size
    starts = _Starts(layout, leaders, np.full(size, NOT_KNOWN), np.full(size, NEVER), np.full(size, FIRST_PATIENCE))
    if before is None:
        return starts
    for topic, base in layout.bases.items():
        old = before.layout.bases.get(topic)
        if old is not None and before.layout.generations[topic] == layout.generations[topic]:
            count = min(old.stop - old.start, base.stop - base.start)
            here, there = slice(base.start, base.start + count), slice(old.start, old.start + count)
            starts.known[here] = before.known[there]
            # Another leader may know what the last one could not tell.
            is_same = leaders[here] == before.leaders[there]
            starts.not_before[here] = np.where(is_same, before.not_before[there], NEVER)
            starts.patience[here] = np.where(is_same, before.patience[there], FIRST_PATIENCE)
    return starts


def _fill_failed(
    table: EndTable, places: Indexes, error: NDArray[np.int16], block: Indexes, topics: Sequence[str], causes: Causes
) -> None:
    """One cause for each run of rows of one topic that have the same error."""
    begins = np.flatnonzero((np.diff(block, prepend=-1) != 0) | (np.diff(error, prepend=NO_ERROR) != 0))
    runs = zip(error[begins].tolist(), block[begins].tolist(), strict=True)
    codes = [causes.code(_cause_of(one, topics[number])) for one, number in runs]
    table.cause[places] = np.repeat(codes, np.diff(begins, append=len(places)))


def _cause_of(error: int, topic: str) -> Cause:
    if error == TOPIC_NOT_AUTHORIZED:
        return Cause(State.ERROR, may_not_describe_topic(topic))
    if error in MOVED_ERRORS:
        return Cause(State.UNKNOWN, "its leadership is moving")
    if error == NOT_CAUGHT_UP:
        return Cause(State.UNKNOWN, "its leader has not caught up yet after an election")
    return Cause(State.ERROR, f"its leader gives error {error}")


def may_not_describe_topic(topic: str) -> str:
    return f"the adapter may not describe topic {topic} (ACL Describe on the topic is missing)"
