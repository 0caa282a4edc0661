"""Pure: an HPA on lag, replayed over hours of production: how long messages would have waited, and how often the
replicas would have changed. One step is one look of the HPA controller.
"""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from spark.figures.model import Floats

HPA_PERIOD_SECONDS = 15
"""How often the HPA controller looks."""
TOLERANCE = 0.1
"""The HPA leaves replicas alone while lag / replicas is this close to its target."""
MOST_HOURS = 24


@dataclass(frozen=True, slots=True)
class Loop:
    """What an HPA and the pods that it scales are like."""

    target: int
    min_replicas: int
    max_replicas: int
    pods_up: int
    down_window_seconds: int
    capacity: float
    """Messages per second of one member."""
    start_seconds: float
    """From the HPA's decision until the new member reads."""
    interval_seconds: float
    """Between two samples of the lag."""


@dataclass(frozen=True, slots=True)
class Expected:
    """By the oldest message that waits, in every step of the replay."""

    wait_p50: float
    wait_p95: float
    wait_max: float
    kept_share: float
    """Of the time, in which no message waited longer than promised."""
    replicas_mean: float
    changes_a_day: float


def replayed(rates: Floats, loop: Loop, promised_seconds: float) -> Expected:
    """`rates`: messages per second, of one hour each; of a longer range, the hours around the busiest one."""
    rates = _around_the_busiest(rates[~np.isnan(rates)])
    steps = 3600 // HPA_PERIOD_SECONDS
    arriving = np.repeat(rates * HPA_PERIOD_SECONDS, steps)
    lag, replicas = _run(arriving, loop)
    seconds = np.arange(1, len(arriving) + 1) * float(HPA_PERIOD_SECONDS)
    arrived = arriving.cumsum()
    wait = np.where(lag > 0, seconds - np.interp(arrived - lag, arrived, seconds, left=0.0), 0.0)
    p50, p95 = np.percentile(wait, (50, 95))
    return Expected(
        wait_p50=float(p50),
        wait_p95=float(p95),
        wait_max=float(wait.max()),
        kept_share=float(np.mean(wait <= promised_seconds)),
        replicas_mean=float(replicas.mean()),
        changes_a_day=float(np.count_nonzero(np.diff(replicas)) * 24 / len(rates)),
    )


def _around_the_busiest(rates: Floats) -> Floats:
    begin = min(max(0, int(rates.argmax()) - MOST_HOURS // 2), max(0, len(rates) - MOST_HOURS))
    return rates[begin : begin + MOST_HOURS]


def _run(arriving: Floats, loop: Loop) -> tuple[Floats, Floats]:
    """Lag and wanted replicas after each step. It begins with the replicas that carry the first hour."""
    work = loop.capacity * HPA_PERIOD_SECONDS
    replicas = min(max(math.ceil(arriving[0] / work), loop.min_replicas), loop.max_replicas)
    started = deque([replicas] * (1 + math.ceil(loop.start_seconds / HPA_PERIOD_SECONDS)))
    window = deque([replicas], max(1, loop.down_window_seconds // HPA_PERIOD_SECONDS))
    age, lag, seen, shrank_at = max(1, round(loop.interval_seconds / HPA_PERIOD_SECONDS)), 0.0, 0.0, -4
    lags, wanted = np.empty(len(arriving)), np.empty(len(arriving))
    for step, messages in enumerate(arriving.tolist()):
        started.append(replicas)
        started.popleft()
        lag = max(0.0, lag + messages - min(started) * work)
        if step % age == 0:
            seen = lag
        window.append(_desired(seen, replicas, loop))
        if window[-1] > replicas:
            replicas = min(window[-1], max(replicas + loop.pods_up, 2 * replicas))
        elif max(window) < replicas and step - shrank_at >= 60 // HPA_PERIOD_SECONDS:
            replicas, shrank_at = max(*window, replicas // 2), step
        lags[step], wanted[step] = lag, replicas
    return lags, wanted


def _desired(lag: float, replicas: int, loop: Loop) -> int:
    if replicas and abs(lag / (loop.target * replicas) - 1) <= TOLERANCE:
        return replicas
    return min(max(math.ceil(lag / loop.target), loop.min_replicas), loop.max_replicas)
