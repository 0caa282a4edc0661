"""Table: how long it takes to replay what a report tries: many groups with a dozen HPAs each over two weeks."""

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from adapter.verdicts.load import Load
from adapter.verdicts.plant import Consumers
from adapter.verdicts.replay import replayed
from adapter.verdicts.scalers import Lane
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Table, row
from benchmarks.scaling.hpas import average, down_after, hpa

GROUPS, DAYS, CANDIDATES = 1000, 14, 12
AT_ONCE = 100
"""Groups of a process, as in a report's task."""
PROCESSES = 2
PARTITIONS = (6, 12, 24, 48)
CAPACITY = 100.0
TARGET_SECONDS, WINDOWS = (150, 250, 400), (300, 900, 1800, 3600)
MOST_MINUTES = 3.0
HOW = (
    f"Two processes replay {AT_ONCE} groups each, of 6 to 48 partitions, whose load follows the day, with noise, and "
    f"needs up to half of all members, with {CANDIDATES} HPAs on the lag: three targets at which replicas settle, four "
    f"windows. Extrapolated to {GROUPS:,} groups and {DAYS} days."
)


def measure(home: Path, effort: Effort) -> Table:  # noqa: ARG001 - nothing is written
    minutes = effort.scaling_hours * 60
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as processes:
        cpu = list(processes.map(_replayed, [minutes] * PROCESSES))
    syncs = PROCESSES * AT_ONCE * CANDIDATES * minutes * 4
    scale = GROUPS / (PROCESSES * AT_ONCE) * DAYS * 1440 / minutes / 60
    return Table(
        "Replays of a report",
        HOW,
        (
            row("CPU for an HPA's sync with its consumers", sum(cpu) / syncs * 1e9, None, " ns", ".0f"),
            row("CPU of all of them on each of two cores, extrapolated", max(cpu) * scale, MOST_MINUTES, " min", ".1f"),
        ),
    )


def _replayed(minutes: int) -> float:
    """Returns seconds of CPU."""
    lanes = [lane for number in range(AT_ONCE) for lane in _lanes(number, minutes)]
    began = time.process_time()
    replayed(lanes)
    return time.process_time() - began


def _lanes(number: int, minutes: int) -> list[Lane]:
    random = np.random.default_rng(number)
    partitions = PARTITIONS[number % len(PARTITIONS)]
    swing = 1 + 0.6 * np.sin(2 * np.pi * (np.arange(minutes) / 1440 + random.random()))
    produced = CAPACITY * 60 * partitions * 0.35 * swing * random.lognormal(0, 0.15, minutes)
    load = Load(produced, np.clip(random.lognormal(0.3, 0.2, minutes) / partitions, 1 / partitions, 1))
    consumers = Consumers(CAPACITY, (partitions,))
    return [
        Lane(load, consumers, hpa(average(seconds * CAPACITY), down_after(window), most=partitions))
        for seconds in TARGET_SECONDS
        for window in WINDOWS
    ]
