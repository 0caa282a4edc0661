"""Table: how long it takes to replay what a report tries: many groups with a dozen HPAs each over two weeks."""

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
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
DAY_IN_SUITES = 4
"""A day is four times as long as the suite, so that each hour of the load counts as often as any other."""
HOW = (
    f"Two processes replay {GROUPS_OF_A_TASK} groups each, as a report's task does, of 6 to 48 partitions, whose load "
    f"follows the day, with noise, and needs up to half of all members. Each has {CANDIDATES} HPAs on the lag (three "
    "targets at which replicas settle, four windows), or one of them on `required_replicas` instead. Extrapolated to "
    f"{GROUPS:,} groups and {DAYS} days."
)


def measure(home: Path, effort: Effort) -> Table:  # noqa: ARG001 - nothing is written
    minutes = effort.scaling_hours * DAY_IN_SUITES * 60
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as processes:
        by_lag, promised = (
            list(processes.map(partial(_replayed, has_promise=has_promise), [minutes] * PROCESSES))
            for has_promise in (False, True)
        )
    syncs = PROCESSES * GROUPS_OF_A_TASK * CANDIDATES * minutes * 4
    scale = GROUPS / (PROCESSES * GROUPS_OF_A_TASK) * DAYS * 1440 / minutes / 60
    each = "CPU of all of them on each of two cores, extrapolated"
    return Table(
        "Replays of a report",
        HOW,
        (
            row("CPU for an HPA's sync with its consumers", sum(by_lag) / syncs * 1e9, None, " ns", ".0f"),
            row(each, max(by_lag) * scale, MOST_MINUTES, " min", ".1f"),
            row("the same, one of twelve on `required_replicas`", max(promised) * scale, MOST_MINUTES, " min", ".1f"),
        ),
    )


def _replayed(minutes: int, *, has_promise: bool) -> float:
    """Returns seconds of CPU."""
    _load_kernels()
    groups = [_lanes(number, minutes) for number in range(GROUPS_OF_A_TASK)]
    lanes = [lane for of in groups for lane in (_with_promise(of) if has_promise else of)]
    measures = [Measure(np.ones(minutes, np.bool_), np.zeros(minutes), PROMISED_SECONDS) for _ in lanes]
    began = time.process_time()
    replay(lanes, [measure.take for measure in measures])
    for measure in measures:
        measure.figures()
    return time.process_time() - began


def _load_kernels() -> None:
    """Compiled code is loaded once per process, however long it replays, so it must not be extrapolated."""
    lanes = _with_promise(_lanes(0, 1))
    replay(lanes, [lambda _first, _part: None] * len(lanes))


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
