"""What arrives in lanes of a simulated plant and happens to them, in a single minute."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adapter.verdicts.simulation.groups import Arrivals


def arriving(
    busiest: ArrayLike,
    others: ArrayLike,
    *,
    capacity: ArrayLike = 1.0,
    stopped_seconds: ArrayLike = 0.0,
    replaced: ArrayLike = 0.0,
) -> Arrivals:
    """A number holds for all lanes."""
    lanes = np.size(busiest)

    def row(values: ArrayLike) -> NDArray[Any]:
        return np.full((1, lanes), values, float)

    return Arrivals(*map(row, (busiest, others, capacity, stopped_seconds, replaced)))
