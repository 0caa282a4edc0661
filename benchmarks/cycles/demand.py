"""Table: what demand costs beside a cycle: a required number of replicas, and learning what members can do."""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from adapter.cluster.groups import MemberCount
from adapter.lag.owners import Owners
from adapter.lag.ring import Ring, Tick, Track, empty_ring, followed_by
from adapter.lag.totals import totals_of
from adapter.lag.values import values_of
from adapter.metrics.capacities import Capacities
from adapter.metrics.query import Metrics
from adapter.metrics.required import Demands
from adapter.metrics.store import ClusterView
from adapter.settings.models import Settings
from adapter.verdicts.assignment import Sharing
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Row, Table, row
from tests.support import samples
from tests.support.samples import NOW, SteppedClock

INTERVAL = 10.0
PAST_CYCLES = 200
"""After which the ring has all its ticks."""
MEMBERS = 4
MOST_MILLISECONDS = 20
OBJECTIVE: dict[str, object] = {"groups": ".*", "objective": {"maxWait": "30s", "capacityHint": 100}}
HOW = (
    "Views as cycles make them, of groups whose log ends move by random numbers of messages and whose members keep up, "
    f"after {PAST_CYCLES} cycles of 10 s. CPU is that of the process, and figures are medians. A required number is "
    "read once after each cycle and kept for all readers. Learning looks at each new view once, beside the cycle."
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
    return Table("Demand", HOW, tuple(rows))


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


def _view(settings: Settings, clock: SteppedClock, groups: int, partitions: int) -> ClusterView:
    keys = {(f"group-{group}", "orders", at): samples.row(0, 0) for group in range(groups) for at in range(partitions)}
    made, chance = samples.view(keys, settings=settings), np.random.default_rng(1)
    layout, rows = made.layout, len(made.layout)
    end, ring, nothing = np.full(rows, 1000, np.int64), empty_ring(layout), samples.observed({}, layout)
    for cycle in range(PAST_CYCLES):
        clock.seconds = NOW + INTERVAL * cycle
        end = end + chance.poisson(200, rows)
        committed, now = end - chance.integers(0, 100, rows), np.full(rows, clock.seconds)
        seen = replace(nothing, committed=committed, log_end=end, commit_received=now, end_received=now)
        snapshot = replace(
            made.snapshot,
            committed=committed,
            log_end=end,
            received=now,
            moved_at=now,
            watched_since=np.zeros(rows),
        )
        ring = followed_by(ring, seen, snapshot, now, clock.seconds)
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
