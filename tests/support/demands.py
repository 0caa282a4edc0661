"""The demand of one group by hand, and a promise that it is to keep."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from adapter.verdicts.demands import Demand, Promise

PROMISE = Promise(max_wait=30.0)


def demand(
    arriving: Sequence[float], beyond: Sequence[float] | None = None, *, capacity: float = 100.0, **other: object
) -> Demand:
    waiting = np.array([0.0] * len(arriving) if beyond is None else beyond, float)
    known = Demand(np.array(arriving, float), waiting, waiting, capacity, (len(arriving),))
    return replace(known, **other)  # type: ignore[arg-type]  # the fields of Demand
