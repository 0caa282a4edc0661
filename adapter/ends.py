"""Log ends and starts, cycle by cycle: one ListOffsets per leader and isolation level, into a table of partitions.

The table has every partition once, however many groups read it; its places are those of the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.brokers import EARLIEST, LATEST, Answer, Brokers, Failure
from adapter.liveness import Liveness
from adapter.settings import Isolation
from adapter.snapshot import NEVER, NOT_KNOWN, Cause, Causes, Codes, Flags, Layout, Offsets, Seconds, State, is_offset
from adapter.topology import NO_LEADER, Topology
from adapter.wire import NO_ERROR, PartitionOffsets

START_SECONDS = 60.0
"""A log start is read at least this often: retention moves it in steps of minutes."""
MOVED_ERRORS = {3, 5, 6, 74, 75, 100}
"""Unknown partition, no leader, not the leader, wrong epoch, unknown id: Metadata has news."""
TOPIC_NOT_AUTHORIZED = 29

Plan = Mapping[int, Mapping[str, list[int]]]


@dataclass(frozen=True, slots=True, eq=False)
class EndTable:
    """Per place of the layout's partition table."""

    log_end: Offsets
    received: Seconds
    cause: Codes
    is_doubtful: Flags


@dataclass(frozen=True, slots=True, eq=False)
class _Starts:
    generation: str | None
    offset: Offsets


class Ends:
    """The ends and starts of one cluster's partitions. Used by one thread."""

    def __init__(self, brokers: Brokers, liveness: Liveness, monotonic: Callable[[], float], interval: float) -> None:
        self._brokers = brokers
        self._liveness = liveness
        self._monotonic = monotonic
        self._slack = interval / 2
        self._starts: dict[str, _Starts] = {}
        self._starts_read = NEVER
        self.have_moved = False
        """Whether the last answers say that Metadata has news."""

    def read(
        self, layout: Layout, topology: Topology, needed: Mapping[Isolation, Flags], causes: Causes
    ) -> dict[Isolation, EndTable]:
        """The newest ends; `needed`: per isolation level the places that some row wants."""
        self.have_moved = False
        leaders = _leaders(layout, topology)
        return {level: self._read_level(layout, leaders, wanted, level, causes) for level, wanted in needed.items()}

    def _read_level(self, layout: Layout, leaders: Codes, wanted: Flags, level: Isolation, causes: Causes) -> EndTable:
        size = len(leaders)
        table = EndTable(
            np.full(size, NOT_KNOWN, dtype=np.int64),
            np.full(size, NEVER),
            np.zeros(size, dtype=np.int32),
            np.zeros(size, bool),
        )
        self.have_moved |= bool(((leaders == NO_LEADER) & wanted).any())
        table.cause[leaders == NO_LEADER] = causes.code(Cause(State.LEADERLESS, "the partition has no leader"))
        for node, answer in self._ask(layout, leaders, wanted, LATEST, level).items():
            own = (leaders == node) & wanted
            if isinstance(answer, Failure):
                table.cause[own] = causes.code(Cause(State.UNKNOWN, answer.text))
                continue
            table.cause[own] = causes.code(Cause(State.ERROR, f"broker {node} left the partition out of its answer"))
            table.received[own] = answer.received
            table.is_doubtful[own] = self._liveness.is_doubtful(node)
            for topic, offsets in answer.content.items():
                self._fill(table, layout.bases.get(topic), offsets, topic, causes)
        return table

    def _fill(self, table: EndTable, base: slice | None, offsets: PartitionOffsets, topic: str, causes: Causes) -> None:
        if base is None:
            return
        inside = offsets.partition < base.stop - base.start
        places = base.start + offsets.partition[inside]
        table.log_end[places] = offsets.offset[inside]
        table.cause[places] = 0
        absurd = places[(offsets.error[inside] == NO_ERROR) & ~is_offset(offsets.offset[inside])]
        if len(absurd):
            table.cause[absurd] = causes.code(Cause(State.ERROR, "its leader gives a log end that is none"))
        for error in np.unique(offsets.error[inside]):
            if error != NO_ERROR:
                self.have_moved |= int(error) in MOVED_ERRORS
                table.cause[places[offsets.error[inside] == error]] = causes.code(_cause_of(int(error), topic))

    def starts(self, layout: Layout, topology: Topology, wanted: Flags) -> Offsets:
        """The newest known start of every place; a new partition's is read at once, all others when they are due."""
        leaders = _leaders(layout, topology)
        known = self._known_starts(layout)
        is_due = self._monotonic() - self._starts_read >= START_SECONDS - self._slack
        asked = wanted if is_due else wanted & (known == NOT_KNOWN)
        if asked.any():
            if is_due:
                self._starts_read = self._monotonic()
            for answer in self._ask(layout, leaders, asked, EARLIEST, Isolation.READ_UNCOMMITTED).values():
                if isinstance(answer, Answer):
                    _fill_starts(known, layout, answer.content)
            self._starts = {
                topic: _Starts(layout.generations[topic], known[base]) for topic, base in layout.bases.items()
            }
        return known

    def _known_starts(self, layout: Layout) -> Offsets:
        known = np.full(len_of_table(layout), NOT_KNOWN, dtype=np.int64)
        for topic, base in layout.bases.items():
            starts = self._starts.get(topic)
            if starts is not None and starts.generation == layout.generations[topic]:
                count = min(len(starts.offset), base.stop - base.start)
                known[base.start : base.start + count] = starts.offset[:count]
        return known

    def _ask(
        self, layout: Layout, leaders: Codes, wanted: Flags, timestamp: int, level: Isolation
    ) -> dict[int, Answer[dict[str, PartitionOffsets]] | Failure]:
        plan = _plan(layout, leaders, wanted)
        present = set(self._liveness.present(plan))
        asked = {node: topics for node, topics in plan.items() if node in present}
        answers = self._brokers.offsets(asked, timestamp, level)
        self._liveness.note(answers)
        silent = {node: self._liveness.failure(node) for node in plan.keys() - present}
        return {**answers, **{node: failure for node, failure in silent.items() if failure is not None}}


def len_of_table(layout: Layout) -> int:
    return max((base.stop for base in layout.bases.values()), default=0)


def _leaders(layout: Layout, topology: Topology) -> Codes:
    columns = [topology.topics[topic].leaders for topic in layout.bases]
    return np.concatenate([np.empty(0, dtype=np.int32), *columns])


def _plan(layout: Layout, leaders: NDArray[np.int32], wanted: Flags) -> Plan:
    """Node -> topic -> the wanted partitions that it leads."""
    plan: dict[int, dict[str, list[int]]] = {}
    for topic, base in layout.bases.items():
        own = np.where(wanted[base], leaders[base], NO_LEADER)
        for node in np.unique(own):
            if node != NO_LEADER:
                plan.setdefault(int(node), {})[topic] = np.flatnonzero(own == node).tolist()
    return plan


def _fill_starts(known: Offsets, layout: Layout, answers: Mapping[str, PartitionOffsets]) -> None:
    for topic, offsets in answers.items():
        base = layout.bases.get(topic)
        if base is not None:
            inside = offsets.partition < base.stop - base.start
            good = inside & (offsets.error == NO_ERROR) & is_offset(offsets.offset)
            known[base.start + offsets.partition[good]] = offsets.offset[good]


def _cause_of(error: int, topic: str) -> Cause:
    if error == TOPIC_NOT_AUTHORIZED:
        return Cause(State.ERROR, f"the adapter may not describe topic {topic} (ACL Describe on the topic is missing)")
    if error in MOVED_ERRORS:
        return Cause(State.UNKNOWN, "its leadership is moving")
    return Cause(State.ERROR, f"its leader gives error {error}")
