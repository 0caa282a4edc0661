"""Runs cycles one after another in a separate process and measures each, and kafka-python's admin calls after them.

`python -m benchmarks.cycles.timed PLAN RESULT`, both JSON files. The collector is the adapter's own, with a store,
and nothing is served. Between two cycles the process's clock is set forward to the next tick, so that periodic
requests (Metadata, ListGroups, log starts, descriptions) occur in the same share of cycles as in a normal day."""

import dataclasses
import gc
import json
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka import TopicPartition
from kafka.admin import OffsetSpec

from adapter import clock as adapter_clock
from adapter.collector.threads import Collector
from adapter.history.files import files_at
from adapter.history.writer import HistoryWriter
from adapter.metrics.store import Store
from adapter.settings.models import History, Settings
from adapter.telemetry import HistoryTelemetry, Telemetry
from local.kafka.admin import admin
from local.processes import RigError, start

CYCLE_TIMEOUT_SECONDS = 60.0
_real_monotonic = time.monotonic


@dataclass(frozen=True, slots=True)
class CyclePlan:
    bootstrap_servers: str
    warm_up: int
    cycles: int
    rows: int
    """Rows of group and partition. A cycle with a different number is an error."""
    admin_rounds: int = 0
    history: str = ""
    """The history's location; empty for none."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one cycle or one round of calls: CPU time of the whole process, and wall time, in seconds."""

    cpu: float
    wall: float
    is_looking: bool = False
    """Whether the cycle also read Metadata."""


@dataclass(frozen=True, slots=True)
class Costs:
    cycles: list[Cost]
    outcomes: list[str]
    admin: list[Cost]
    lag: int
    """The sum over all groups in the last view."""


def run(plan: CyclePlan, folder: Path) -> Costs:
    """Runs the plan in a separate process, with its files in `folder`; raises RigError if a cycle fails."""
    folder.mkdir(parents=True, exist_ok=True)
    plan_file, result_file, log = (folder / name for name in ("plan.json", "result.json", "cycles.log"))
    plan_file.write_text(json.dumps(dataclasses.asdict(plan)))
    result_file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "benchmarks.cycles.timed", str(plan_file), str(result_file)]
    allowed = CYCLE_TIMEOUT_SECONDS * (plan.warm_up + plan.cycles + plan.admin_rounds)
    with start("cycles", command, log=log) as process:
        status = process.wait(allowed)
    if status != 0:
        raise RigError(f"the cycles ended with status {status}:\n{process.log_tail()}")
    found = json.loads(result_file.read_text())
    as_costs = {key: [Cost(**each) for each in found[key]] for key in ("cycles", "admin")}
    return Costs(outcomes=found["outcomes"], lag=found["lag"], **as_costs)


class _Clock:
    """The machine's clock, plus the pauses that were skipped."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return _real_monotonic() + self.ahead


class _Stopwatch(Telemetry):
    """Records each cycle's cost when the collector counts it, and sets the clock forward to the next cycle."""

    def __init__(self, plan: CyclePlan, clock: _Clock, interval: float) -> None:
        super().__init__()
        self.taken: list[Cost] = []
        self.outcomes: list[str] = []
        self.is_done = threading.Event()
        self._plan = plan
        self._clock = clock
        self._interval = interval
        self._metadata_requests = 0
        self._began = _spent()

    def count_request(self, cluster: str, request: str) -> None:
        super().count_request(cluster, request)
        self._metadata_requests += request == "Metadata"

    def count_cycle(self, cluster: str, outcome: str, seconds: float) -> None:
        super().count_cycle(cluster, outcome, seconds)
        now = _spent()
        # Every cycle asks one broker which brokers are alive; a second request is for the topics.
        self.taken.append(Cost(now.cpu - self._began.cpu, now.wall - self._began.wall, self._metadata_requests > 1))
        self._metadata_requests = 0
        self.outcomes.append(outcome)
        if len(self.taken) >= self._plan.warm_up + self._plan.cycles:
            self.is_done.set()
            return
        self._clock.ahead += max(0.0, self._interval - seconds)
        self._began = _spent()


def _spent() -> Cost:
    return Cost(time.process_time(), time.perf_counter())


def _cycles(plan: CyclePlan, clock: _Clock) -> tuple[_Stopwatch, Store]:
    settings = Settings.model_validate(
        {"clusters": [{"name": "main", "bootstrapServers": plan.bootstrap_servers.split(",")}]}
    )
    stopwatch, store = _Stopwatch(plan, clock, settings.collection.interval), Store(["main"])
    history = _history(plan, stopwatch)
    keep = history.append if history else None
    collector = Collector(settings, settings.clusters[0], store, stopwatch, adapter_clock, keep)
    # As the server does before it serves.
    gc.collect()
    gc.freeze()
    if history:
        history.start()
    collector.serve()
    collector.start()
    is_done = stopwatch.is_done.wait(CYCLE_TIMEOUT_SECONDS * (plan.warm_up + plan.cycles))
    collector.stop(CYCLE_TIMEOUT_SECONDS)
    if history:
        history.stop(CYCLE_TIMEOUT_SECONDS)
        if history.buffered_rows:
            raise RigError("the history could not be written")
    if not is_done:
        raise RigError(f"only {len(stopwatch.taken)} cycles: {stopwatch.outcomes}")
    return stopwatch, store


def _history(plan: CyclePlan, telemetry: Telemetry) -> HistoryWriter | None:
    """The history writes after the cycles, because its thread waits on the machine's own clock."""
    if not plan.history:
        return None
    settings = History.model_validate({"location": plan.history})
    return HistoryWriter(settings, files_at(plan.history), HistoryTelemetry(telemetry), adapter_clock, "benchmark")


def _admin_rounds(plan: CyclePlan, groups: Sequence[str], partitions: Sequence[TopicPartition]) -> list[Cost]:
    """Runs the public calls that read the same: all groups' commits, then the ends of all partitions."""
    taken = []
    with admin(plan.bootstrap_servers, request_timeout_ms=60_000) as client:
        for _ in range(plan.admin_rounds + 1):
            gc.collect()
            began = _spent()
            client.list_group_offsets(dict.fromkeys(groups))
            client.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
            now = _spent()
            taken.append(Cost(now.cpu - began.cpu, now.wall - began.wall))
    return taken[1:]  # the first one finds the coordinators, too


def main(plan_file: str, result_file: str) -> None:
    plan = CyclePlan(**json.loads(Path(plan_file).read_text()))
    clock = _Clock()
    # Everything that the adapter and the library do by time is due by this clock; nothing waits by it meanwhile.
    time.monotonic = adapter_clock.monotonic = clock.monotonic
    stopwatch, store = _cycles(plan, clock)
    view = store.views[0]
    if len(view.layout) != plan.rows:
        raise RigError(f"{len(view.layout)} rows of groups and partitions instead of {plan.rows}")
    topics = [(topic, base.stop - base.start) for topic, base in view.layout.bases.items()]
    partitions = [TopicPartition(topic, index) for topic, size in topics for index in range(size)]
    rounds = _admin_rounds(plan, view.layout.groups, partitions) if plan.admin_rounds else []
    costs = Costs(
        stopwatch.taken[plan.warm_up :], stopwatch.outcomes[plan.warm_up :], rounds, sum(view.totals.lag) // 1000
    )
    Path(result_file).write_text(json.dumps(dataclasses.asdict(costs)))


if __name__ == "__main__":
    main(*sys.argv[1:])
