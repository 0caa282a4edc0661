from dataclasses import replace

import numpy as np
import pytest

from adapter.verdicts.simulation.consumers import Consumers
from adapter.verdicts.simulation.replay import Replay
from spark.trials.calibration import as_served, figures_of
from spark.trials.measures import Measure
from tests.support.history.minutes import read_by

RANDOM = np.random.default_rng(2)
MINUTES = 3000
CONSUMERS = Consumers(50.0, (12,), interval_seconds=10.0)
READ = read_by(RANDOM.uniform(0, 9000, MINUTES), np.full(MINUTES, 3.0), 50.0)


@pytest.mark.parametrize("unknown", [0, 1, 100, MINUTES - 1])
@pytest.mark.parametrize("size", [7, 360, MINUTES])
def test_figures_of_parts_are_those_of_the_whole(unknown: int, size: int) -> None:
    lag = READ.lag.copy()
    lag[RANDOM.choice(MINUTES, unknown, replace=False)] = np.nan
    minutes = replace(READ, lag=lag)
    lags, waits = RANDOM.lognormal(5, 3, (2, MINUTES)).astype(np.float32)
    whole = Replay(lags, waits, RANDOM.integers(0, 9, MINUTES).astype(np.int32), changes=17)

    measure = Measure.of(minutes, CONSUMERS, 60.0).beside()
    for first in range(0, MINUTES, size):
        part = slice(first, first + size)
        measure.take(first, Replay(lags[part], waits[part], whole.replicas[part], changes=min(first, 17)))
    assert measure.figures() == figures_of(
        as_served(minutes, CONSUMERS, whole), minutes.is_known, 60.0, changes=min(first, 17)
    )
