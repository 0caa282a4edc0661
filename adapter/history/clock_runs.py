"""Detects when the wall clock was set between two samples: its steps contradict the monotonic clock.

Samples between two steps are a run of the clock: within one, differences between times are time that passed. Which of
two runs has the right time cannot be known here, so each is written under a separate writer's name."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from adapter.history.clock_mark import TOLERANCE_SECONDS
from adapter.history.sample import Sample

logger = logging.getLogger(__name__)

DRIFT = 0.001
"""Seconds per second by which the clocks may differ without a step; NTP slews by half of that at most."""


@dataclass(frozen=True, slots=True)
class _Reading:
    monotonic: float
    to_epoch: float

    def agrees(self, other: "_Reading") -> bool:
        allowed = TOLERANCE_SECONDS + DRIFT * abs(other.monotonic - self.monotonic)
        return abs(other.to_epoch - self.to_epoch) <= allowed


class ClockRuns:
    def __init__(self) -> None:
        self._runs: list[tuple[_Reading, _Reading]] = []
        """The first and the last reading of each, the oldest run first: a clock that is set right again continues an
        earlier one. A reading must agree with both, so that neither a step nor many small steps pass for drift."""

    def separated(self, samples: Iterable[Sample]) -> dict[int, list[Sample]]:
        """Returns the samples of each run by its number. They arrive roughly in the order in which they were taken."""
        runs: dict[int, list[Sample]] = {}
        for sample in samples:
            runs.setdefault(self._number_of(sample), []).append(sample)
        return runs

    def _number_of(self, sample: Sample) -> int:
        reading = _Reading(sample.sampled_at - sample.to_epoch, sample.to_epoch)
        for place, (first, last) in reversed(list(enumerate(self._runs))):
            if first.agrees(reading) and last.agrees(reading):
                self._runs[place] = first, reading
                return place + 1
        if self._runs:
            step = reading.to_epoch - self._runs[-1][1].to_epoch
            logger.warning("the clock was set by %+.0f s: samples before and after are written separately", step)
        self._runs.append((reading, reading))
        return len(self._runs)
