"""The figures of a replay, taken part by part; only what they need is kept."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from adapter.verdicts.simulation.consumers import Consumers
from adapter.verdicts.simulation.replay import Replay
from spark.figures.model import Flags, Floats
from spark.trials.calibration import Figures, figures_from, flights_of
from spark.trials.minutes import Minutes

Single = NDArray[np.float32]

LAG_PERCENTILE = 95
_ROOM = 4
"""How many times as many values as are needed may be kept until the others are dropped."""


class Measure:
    """Of one replay."""

    def __init__(self, is_known: Flags, flights: Floats, promised: float) -> None:
        """`is_known`: the minutes that are compared; there is one at least. `flights`: what the wait is longer by in
        each of these."""
        self._is_known, self._flights, self._promised = is_known, flights, promised
        self._waits: Single = np.empty(len(flights), np.float32)
        self._filled = self._replica_minutes = self._changes = 0
        self._lags = _Highest(len(flights), LAG_PERCENTILE)

    @classmethod
    def of(cls, minutes: Minutes, consumers: Consumers, promised: float) -> Self:
        is_known = minutes.is_known
        return cls(is_known, flights_of(minutes, consumers)[is_known], promised)

    def beside(self) -> "Measure":
        """Returns that of another replay of the same minutes."""
        return Measure(self._is_known, self._flights, self._promised)

    def take(self, first: int, part: Replay) -> None:
        is_known = self._is_known[first : first + len(part.lag)]
        waits = part.wait_seconds[is_known]
        self._waits[self._filled : self._filled + len(waits)] = waits
        self._filled += len(waits)
        self._lags.take(part.lag[is_known])
        self._replica_minutes += int(part.replicas[is_known].sum())
        self._changes = part.changes

    def figures(self) -> Figures:
        """Of the whole replay."""
        waits = self._waits.astype(float) + self._flights
        changes_a_day = self._changes * 1440 / len(self._is_known)
        return figures_from(waits, self._lags.percentile(), float(self._replica_minutes), self._promised, changes_a_day)


class _Highest:
    """A high percentile of values that arrive in parts. Values too small to matter for it are dropped early."""

    def __init__(self, number: int, percentile: int) -> None:
        """`number`: of all values."""
        self._number, self._percentile = number, percentile
        self._needed = number - max((number - 1) * percentile // 100 - 1, 0)
        """One more than it is interpolated between, for the rounding of that place."""
        self._values: Single = np.empty(0, np.float32)

    def take(self, values: Single) -> None:
        self._values = np.concatenate([self._values, values])
        if len(self._values) > _ROOM * self._needed:
            self._values = np.partition(self._values, -self._needed)[-self._needed :]

    def percentile(self) -> float:
        """Those that were dropped are lower than all that it is interpolated between, however low."""
        dropped = np.full(self._number - len(self._values), self._values.min(), np.float32)
        return float(np.percentile(np.concatenate([dropped, self._values]).astype(float), self._percentile))
