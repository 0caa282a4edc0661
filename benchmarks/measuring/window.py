"""What a running adapter requested, used and held open during a whole number of cycles."""

import time
from collections import Counter
from dataclasses import dataclass

from benchmarks.brokers.request_log import OFFSET_KINDS, mark, requests_between
from benchmarks.measuring import samples
from benchmarks.rig.cluster import Rig, cycles, own_metric, wait_for_cycles
from local.adapter import Adapter
from local.processes import RigError

INTERVAL_SECONDS = 10.0  # the settings' default
PAUSE_SECONDS = 3.0  # after a cycle's end, so that a window begins and ends where nothing is under way


@dataclass(frozen=True, slots=True)
class Window:
    cycles: int
    seconds: float
    requests: Counter[str]
    """Requests at the brokers, by kind."""
    connections: int
    """Connections to the brokers: the most seen."""
    cpu_seconds: float
    reads: int
    """External reads that returned 200."""

    @property
    def offset_requests_per_cycle(self) -> float:
        return sum(self.requests[kind] for kind in OFFSET_KINDS) / self.cycles

    @property
    def others_per_minute(self) -> dict[str, float]:
        return {kind: self.per_minute(count) for kind, count in self.requests.items() if kind not in OFFSET_KINDS}

    @property
    def requests_per_minute(self) -> float:
        return self.per_minute(self.requests.total())

    def per_minute(self, count: float) -> float:
        return count * 60 / self.seconds


def watch(rig: Rig, running: Adapter, count: int) -> Window:
    """Watches from between two cycles to `count` intervals later. Raises RigError if a cycle was incomplete.

    The adapter's own metrics are read only before and after, because reading them costs CPU."""
    pid = running.process.pid
    wait_for_cycles(running, 1)
    time.sleep(PAUSE_SECONDS)
    first, reads = cycles(running), _reads(running)
    begin, began, cpu = mark(rig.kafka), time.monotonic(), samples.cpu_seconds(pid)
    most = 0
    for number in range(1, count + 1):
        time.sleep(max(0.0, began + number * INTERVAL_SECONDS - time.monotonic()))
        most = max(most, samples.connections(pid, rig.ports))
    end, seconds, used = mark(rig.kafka), time.monotonic() - began, samples.cpu_seconds(pid) - cpu
    if cycles(running) - first != count:
        raise RigError(f"{cycles(running) - first} complete cycles where {count} were due: see {running.process.log}")
    requests = requests_between(rig.kafka, begin, end)
    return Window(count, seconds, requests, most, used, _reads(running) - reads)


def _reads(running: Adapter) -> int:
    return int(own_metric(running, "kafka_lag_adapter_reads_total", code="200"))
