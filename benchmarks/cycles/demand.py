"""Table: what demand costs beside a cycle: a required number of replicas, and learning what members can do."""

import os
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapter.cluster.groups import MemberCount
from adapter.lag.owners import Owners
from adapter.lag.ring import Ring, Tick, Track, bytes_of, empty_ring, followed_by
from adapter.lag.snapshot import Observed, Snapshot
from adapter.lag.totals import totals_of
from adapter.lag.values import values_of
from adapter.metrics.capacities import Capacities
from adapter.metrics.query import Metrics
from adapter.metrics.required import Demands
from adapter.metrics.store import ClusterView
from adapter.settings.models import Settings
from adapter.verdicts.assignment import Sharing
from benchmarks.measuring.effort import FULL, Effort
from benchmarks.measuring.samples import memory
from benchmarks.measuring.tables import Row, Table, row
from tests.support import samples
from tests.support.samples import NOW, SteppedClock

INTERVAL = 10.0
PAST_CYCLES = 200
"""Before a read."""
DEEPEST_CYCLES, TIMED_CYCLES = 5_000, 500
"""After the former, the ring has all its ticks: it remembers 4,000 cycles. Of the latter, the last ones, the CPU is
measured."""
STARTS_EVERY = 6
"""Cycles: log starts are read once a minute."""
MEMBERS = 4
MOST_MILLISECONDS, MOST_MEGABYTES = 20, 60
OBJECTIVE: dict[str, object] = {"groups": ".*", "objective": {"maxWait": "30s", "capacityHint": 100}}
HOW = (
    "Views as cycles make them, of groups whose log ends move by random numbers of messages and whose members keep up, "
    f"after {PAST_CYCLES} cycles of 10 s. CPU is that of the process, and figures are medians. A required number is "
    "read once after each cycle and kept for all readers. Learning looks at each new view once, beside the cycle. What "
    "is remembered is measured in a process of its own, once it is as deep as it gets."
)


def measure(_home: Path, effort: Effort) -> Table:
    largest = effort.partitions[-1]
    rows: list[Row] = []
    for partitions in (12, 1_000):
        world = _World(groups=1, partitions=partitions)
        took = _median(lambda world=world: world.read("required_replicas"), effort)  # type: ignore[misc]
        rows.append(row(f"a read of the required number, {partitions:,} partitions", 1000 * took, unit=" ms"))
    for parts, what in (([OBJECTIVE], "all with an objective"), ([], "without any")):
        world = _World(groups=largest // 100, partitions=100, rules=parts)
        took = _median(world.look, effort)
        goal = MOST_MILLISECONDS if parts else None
        rows.append(row(f"learning after a cycle, {largest:,} partitions, {what}", 1000 * took, goal, " ms"))
    return Table("Demand", HOW, (*rows, *_remembering(largest, effort)))


def _remembering(partitions: int, effort: Effort) -> tuple[Row, ...]:
    """In a process of its own, whose memory is nothing else."""
    cycles = DEEPEST_CYCLES if effort.memory_cycles == FULL.memory_cycles else effort.memory_cycles
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        it = processes.submit(_remembered, partitions, cycles).result()
    what = f"{partitions:,} partitions, after {cycles:,} cycles"
    return (
        row(f"remembering a cycle, {what}", 1000 * it.cpu_seconds, MOST_MILLISECONDS, " ms"),
        row(f"columns of what is remembered, {what}", it.column_bytes / 1e6, MOST_MEGABYTES, " MB", ".1f"),
        row(f"resident memory for them, {what}", it.resident_bytes / 1e6, MOST_MEGABYTES, " MB", ".1f"),
    )


class _Remembered(NamedTuple):
    cpu_seconds: float
    """Of one cycle, the median of the last ones."""
    column_bytes: int
    resident_bytes: int
    """More than before the first cycle."""


def _remembered(partitions: int, cycles: int) -> _Remembered:
    made = samples.view({("group", "orders", at): samples.row(0, 0) for at in range(partitions)})
    clock, ring, took = SteppedClock(), empty_ring(made.layout), deque[float](maxlen=TIMED_CYCLES)
    before = 0
    for seen, snapshot, start_received in _cycles(made.snapshot, clock, cycles):
        # What a cycle observes is there in any case.
        before = before or memory(os.getpid())[0]
        begin = time.process_time()
        ring = followed_by(ring, seen, snapshot, start_received, clock.seconds)
        took.append(time.process_time() - begin)
    return _Remembered(statistics.median(took), bytes_of(ring), memory(os.getpid())[0] - before)


def _median(work: Callable[[], object], effort: Effort) -> float:
    took = []
    for _ in range(effort.timed_cycles):
        begin = time.process_time()
        work()
        took.append(time.process_time() - begin)
    return statistics.median(took)


class _World:
    def __init__(self, groups: int, partitions: int, rules: list[dict[str, object]] | None = None) -> None:
        settings = samples.settings(rules=[OBJECTIVE] if rules is None else rules)
        self.clock = SteppedClock()
        self.view = _view(settings, self.clock, groups, partitions)
        capacities = Capacities(self.clock)
        self._store = samples.store_of(self.view)
        demands = Demands(capacities, self.clock.monotonic, expected=lambda *_: MEMBERS)
        self._metrics = Metrics(settings, self._store, self.clock, demands=demands)

    def read(self, value: str) -> object:
        return self._metrics.read(f"kafka_consumergroup_{value}", samples.wants(group="group-0"))

    def look(self) -> None:
        """Looks at a view of a cycle later."""
        self.clock.seconds += INTERVAL
        ring = self.view.ring
        later = Ring(ring.layout, self._later(ring.ends), self._later(ring.commits), ring.starts)
        self._store.feeds["main"].replace(replace(self.view, ring=later))
        self._metrics.look()

    def _later(self, track: Track) -> Track:
        newest = track.ticks[-1]
        return replace(track, ticks=(*track.ticks[:-1], Tick(self.clock.seconds, newest.offset, newest.age)))


def _cycles(
    snapshot: Snapshot, clock: SteppedClock, number: int
) -> Iterator[tuple[Observed, Snapshot, NDArray[np.float64]]]:
    """Yields what each cycle observes, what it decides, and when log starts were received."""
    rows, chance, nothing = len(snapshot.layout), np.random.default_rng(1), samples.observed({}, snapshot.layout)
    end, start = np.full(rows, 1000, np.int64), np.zeros(rows, np.int64)
    start_received = np.full(rows, NOW)
    for cycle in range(number):
        clock.seconds = NOW + INTERVAL * cycle
        end = end + chance.poisson(200, rows)
        committed, now = end - chance.integers(0, 100, rows), np.full(rows, clock.seconds)
        if cycle % STARTS_EVERY == 0:
            start, start_received = start + 100, now
        seen = replace(
            nothing, committed=committed, log_end=end, log_start=start, commit_received=now, end_received=now
        )
        yield (
            seen,
            replace(
                snapshot,
                committed=committed,
                log_end=end,
                received=now,
                moved_at=now,
                watched_since=np.zeros(rows),
            ),
            start_received,
        )


def _view(settings: Settings, clock: SteppedClock, groups: int, partitions: int) -> ClusterView:
    keys = {(f"group-{group}", "orders", at): samples.row(0, 0) for group in range(groups) for at in range(partitions)}
    made = samples.view(keys, settings=settings)
    layout, rows, ring = made.layout, len(made.layout), empty_ring(made.layout)
    for seen, snapshot, start_received in _cycles(made.snapshot, clock, PAST_CYCLES):
        ring = followed_by(ring, seen, snapshot, start_received, clock.seconds)
    values = values_of(snapshot, made.treatment)
    names = tuple(f"member-{number}" for number in range(MEMBERS * groups))
    owners = Owners(names, (layout.group * MEMBERS + layout.partition % MEMBERS).astype(np.int32))
    return replace(
        made,
        snapshot=snapshot,
        values=values,
        totals=totals_of(snapshot, made.treatment, values, np.arange(rows)),
        ring=ring,
        owners=owners,
        members_of=lambda _: MemberCount(MEMBERS, clock.seconds),
        sharing_of=lambda _: Sharing.TOGETHER,
    )
