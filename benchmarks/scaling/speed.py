"""Table: how long it takes to replay what a report tries: many groups with a dozen HPAs each over two weeks."""

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from adapter.verdicts.simulation.consumers import Consumers
from adapter.verdicts.simulation.load import Load
from adapter.verdicts.simulation.promised import Promised
from adapter.verdicts.simulation.replay import replay
from adapter.verdicts.simulation.scalers import Lane
from benchmarks.measuring.effort import Effort
from benchmarks.measuring.tables import Table, row
from benchmarks.scaling.hpas import average, down_after, hpa
from spark.advice.replica_metrics import WINDOW_SECONDS
from spark.trials.measures import Measure
from spark.trials.task import GROUPS_OF_A_TASK

GROUPS, DAYS, CANDIDATES = 1000, 14, 12
PROCESSES = 2
PARTITIONS = (6, 12, 24, 48)
CAPACITY, PROMISED_SECONDS = 100.0, 30.0
TARGET_SECONDS, WINDOWS = (150, 250, 400), (300, 900, 1800, 3600)
MOST_MINUTES = 3.0
HOW = (
    f"Two processes replay {GROUPS:,} groups of 6 to 48 partitions over {DAYS} days, {GROUPS_OF_A_TASK} at a time as a "
    "report's tasks do. The load follows the day, with noise, and needs up to half of all members. Each group has "
    f"{CANDIDATES} HPAs on the lag (three targets at which replicas settle, four windows), or one of them on "
    "`required_replicas` instead. The time is that of the whole, with starting the processes, loading the compiled "
    "code and making the loads."
)


@dataclass(frozen=True, slots=True)
class _Spent:
    wall_seconds: float
    """Of all processes."""
    replay_seconds: float
    """Of CPU, for replays alone."""


def measure(home: Path, effort: Effort) -> Table:  # noqa: ARG001 - nothing is written
    minutes = effort.replay_minutes
    _replayed(0, 1, has_promise=True)  # compiles what is not in the cache yet
    by_lag, promised = (_all_replayed(minutes, has_promise=has_promise) for has_promise in (False, True))
    syncs = GROUPS * CANDIDATES * minutes * 4
    scale = DAYS * 1440 / minutes / 60
    return Table(
        "Replays of a report",
        HOW,
        (
            row("CPU for an HPA's sync with its consumers", by_lag.replay_seconds / syncs * 1e9, None, " ns", ".0f"),
            row("12 HPAs on the lag: time on two cores", by_lag.wall_seconds * scale, MOST_MINUTES, " min", ".1f"),
            row("one of them on `required_replicas`", promised.wall_seconds * scale, MOST_MINUTES, " min", ".1f"),
        ),
    )


def _all_replayed(minutes: int, *, has_promise: bool) -> _Spent:
    began = time.perf_counter()
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as processes:
        task = partial(_replayed, minutes=minutes, has_promise=has_promise)
        seconds = sum(processes.map(task, range(0, GROUPS, GROUPS_OF_A_TASK)))
    return _Spent(time.perf_counter() - began, seconds)


def _replayed(first: int, minutes: int, *, has_promise: bool) -> float:
    """Replays the groups of one task; returns seconds of CPU."""
    groups = [_lanes(number, minutes) for number in range(first, first + GROUPS_OF_A_TASK)]
    lanes = [lane for of in groups for lane in (_with_promise(of) if has_promise else of)]
    measures = [Measure(np.ones(minutes, np.bool_), np.zeros(minutes), PROMISED_SECONDS) for _ in lanes]
    began = time.process_time()
    replay(lanes, [measure.take for measure in measures])
    for measure in measures:
        measure.figures()
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


def _with_promise(lanes: Sequence[Lane]) -> list[Lane]:
    """The last one goes by a promise instead, as the HPA of a report does."""
    last = lanes[-1]
    behavior = {"scaleUp": {"tolerance": 0}, **down_after(WINDOW_SECONDS)}
    follows = hpa(average(1), behavior, most=last.consumers.width)
    return [*lanes[:-1], replace(last, hpa=follows, rule=Promised(PROMISED_SECONDS))]
