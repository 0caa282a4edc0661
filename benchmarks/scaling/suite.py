"""Runs every policy on every setting, in two processes, and measures what came of it."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from adapter.verdicts.simulation.replay import Replay, replayed
from benchmarks.scaling.policies import BOUND, ORACLE, POLICIES
from benchmarks.scaling.workloads import HOURS, Setting, settings

LATE_SECONDS = 30.0
SETTLED_MINUTES = 10
"""After which a constant load must not change anything."""
KEPT_SHARE = 0.99
"""Of the minutes: the promise that a target is tuned for."""
PROCESSES = 2
AT_ONCE = 3
"""Settings in a task."""


@dataclass(frozen=True, slots=True)
class Figures:
    minutes: int
    replica_hours: float
    wait_p50: float
    wait_p99: float
    wait_max: float
    late_share: float
    """Of the minutes, in which a message waited longer than LATE_SECONDS."""
    changes: int
    reversals: int
    """Changes in the other direction than the one before, as seen from minute to minute."""
    settled_changes: int
    """After SETTLED_MINUTES, as seen from minute to minute."""
    most: int
    """Replicas."""


@dataclass(frozen=True, slots=True)
class Result:
    workload: str
    assignor: str
    start_seconds: float
    policy: str
    figures: Figures
    of_oracle: float
    """Replica-hours as a share of the oracle's."""


def figures_of(replay: Replay) -> Figures:
    waits = replay.wait_seconds
    p50, p99 = np.percentile(waits, (50, 99))
    steps = np.diff(replay.replicas)
    directions = np.sign(steps[steps != 0])
    return Figures(
        minutes=len(waits),
        replica_hours=float(replay.replicas.sum()) / 60,
        wait_p50=float(p50),
        wait_p99=float(p99),
        wait_max=float(waits.max()),
        late_share=float(np.mean(waits > LATE_SECONDS)),
        changes=replay.changes,
        reversals=int(np.count_nonzero(np.diff(directions))),
        settled_changes=int(np.count_nonzero(steps[SETTLED_MINUTES:])),
        most=int(replay.replicas.max()),
    )


def best_of(found: Sequence[Figures]) -> Figures:
    """The cheapest that keeps the promise; where none does, the one that is late least."""
    kept = [it for it in found if it.late_share <= 1 - KEPT_SHARE]
    if kept:
        return min(kept, key=lambda it: (it.replica_hours, it.wait_p99))
    return min(found, key=lambda it: (it.late_share, it.wait_p99, it.replica_hours))


def results_of(chosen: Sequence[Setting], policies: Sequence[str] | None = None) -> list[Result]:
    """Replays the settings beside one another."""
    of = [policy for policy in (*POLICIES, BOUND) if policies is None or policy.key in {*policies, ORACLE}]
    asked = [(setting, policy.key, list(policy.lanes(setting))) for setting in chosen for policy in of]
    replays = iter(replayed([lane for *_, lanes in asked for lane in lanes]))
    best = {
        (place, key): best_of([figures_of(next(replays)) for _ in lanes])
        for place, (setting, key, lanes) in enumerate(asked)
    }
    oracles = {id(asked[place][0]): found for (place, key), found in best.items() if key == ORACLE}
    return [_result(asked[place][0], key, found, oracles[id(asked[place][0])]) for (place, key), found in best.items()]


def _result(setting: Setting, policy: str, found: Figures, oracle: Figures) -> Result:
    share = found.replica_hours / oracle.replica_hours if oracle.replica_hours else math.inf
    return Result(setting.workload.name, setting.assignor.value, setting.start_seconds, policy, found, share)


def run(say: Callable[[str], None], hours: int = HOURS) -> list[Result]:
    """In the order of the settings and policies, whatever ends first."""
    parts = _parts(list(settings(hours)))
    results: dict[int, list[Result]] = {}
    processes = ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn"))
    try:
        futures = {processes.submit(_part, hours, first, end): first for first, end in parts}
        for number, future in enumerate(as_completed(futures), start=1):
            results[futures[future]] = future.result()
            say(f"  {number} of {len(parts)} parts")
    finally:
        processes.shutdown(cancel_futures=True)
    return [result for first in sorted(results) for result in results[first]]


def _parts(of: Sequence[Setting]) -> list[tuple[int, int]]:
    """Returns the first and the end of each part, the longest ones first, so that both processes end together."""
    parts = [(first, min(first + AT_ONCE, len(of))) for first in range(0, len(of), AT_ONCE)]
    return sorted(parts, key=lambda part: -sum(len(it.workload.load.produced) for it in of[slice(*part)]))


def _part(hours: int, first: int, end: int) -> list[Result]:
    return results_of(list(settings(hours))[first:end])
