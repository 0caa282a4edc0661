"""Pure: recommended HPAs, replayed over hours of production: how long messages would have waited, and how often the
replicas would have changed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapter.verdicts.hpa import Hpa
from adapter.verdicts.load import Load
from adapter.verdicts.plant import Consumers
from adapter.verdicts.replay import Replay, replayed
from adapter.verdicts.scalers import Lane
from spark.figures.model import Floats

MOST_HOURS = 24


@dataclass(frozen=True, slots=True)
class Trial:
    """One HPA for one group."""

    rates: Floats
    """Messages per second in each hour."""
    consumers: Consumers
    hpa: Hpa


@dataclass(frozen=True, slots=True)
class Expected:
    """By the oldest message that waits at the end of each minute of the replay."""

    wait_p50: float
    wait_p95: float
    wait_max: float
    kept_share: float
    """Of the time, in which no message waited longer than promised."""
    replicas_mean: float
    changes_a_day: float


def expected_of(trials: Sequence[Trial], promised: Sequence[float]) -> list[Expected]:
    """Replays the hours around the busiest one. `promised`: the longest wait of each, in seconds.

    Each begins with the replicas that carry its first hour. Replays beside one another cost hardly more than one."""
    lanes = [_lane(trial) for trial in trials]
    lengths = sorted({len(lane.load.produced) for lane in lanes})
    results: list[Expected | None] = [None] * len(lanes)
    for length in lengths:
        places = [place for place, lane in enumerate(lanes) if len(lane.load.produced) == length]
        for place, result in zip(places, replayed([lanes[place] for place in places]), strict=True):
            results[place] = _figures(result, promised[place])
    return [result for result in results if result is not None]


def _lane(trial: Trial) -> Lane:
    rates = _around_the_busiest(trial.rates[~np.isnan(trial.rates)])
    carried = -(-rates[0] // trial.consumers.capacity)
    replicas = min(max(int(carried), trial.hpa.min_replicas, 1), trial.hpa.max_replicas)
    return Lane(Load(np.repeat(rates * 60, 60)), trial.consumers, trial.hpa, replicas)


def _around_the_busiest(rates: Floats) -> Floats:
    begin = min(max(0, int(rates.argmax()) - MOST_HOURS // 2), max(0, len(rates) - MOST_HOURS))
    return rates[begin : begin + MOST_HOURS]


def _figures(result: Replay, promised_seconds: float) -> Expected:
    wait = result.wait_seconds
    p50, p95 = np.percentile(wait, (50, 95))
    return Expected(
        wait_p50=float(p50),
        wait_p95=float(p95),
        wait_max=float(wait.max()),
        kept_share=float(np.mean(wait <= promised_seconds)),
        replicas_mean=float(result.replicas.mean()),
        changes_a_day=result.changes * 1440 / len(wait),
    )
