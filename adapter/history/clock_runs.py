"""Detects when the wall clock was set between two samples: its steps contradict the monotonic clock.

Samples between two steps are a run of the clock: within one, differences between times are time that passed. Which of
two runs has the right time cannot be known here, so each is written under a separate writer's name."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

from adapter.history.sample import Sample

logger = logging.getLogger(__name__)

TOLERANCE_SECONDS = 5.0
"""The two clocks are read one after the other, and a busy machine may pause in between."""
DRIFT = 0.001
"""Seconds per second by which the clocks may differ without a step; NTP slews by half of that at most."""

RUNS_KEPT = 20
"""Bounds the memory if the clock is set again and again."""


@dataclass(frozen=True, slots=True)
class _Reading:
    monotonic: float
    to_epoch: float

    def agrees(self, other: "_Reading") -> bool:
        allowed = TOLERANCE_SECONDS + DRIFT * abs(other.monotonic - self.monotonic)
        return abs(other.to_epoch - self.to_epoch) <= allowed


@dataclass(frozen=True, slots=True)
class ClockRun:
    number: int
    first: _Reading
    last: _Reading
    """A new reading must agree with both, so that neither a step nor many small steps pass for drift."""

    def has(self, reading: _Reading) -> bool:
        return self.first.agrees(reading) and self.last.agrees(reading)


class ClockRuns:
    def __init__(self) -> None:
        self._runs: list[ClockRun] = []
        """Oldest first: a clock that is set right again continues an earlier run."""

    def separated(self, samples: Iterable[Sample]) -> dict[int, list[Sample]]:
        """Returns the samples of each run by its number. They arrive roughly in the order in which they were taken."""
        runs: dict[int, list[Sample]] = {}
        for sample in samples:
            runs.setdefault(self._number_of(sample), []).append(sample)
        return runs

    def _number_of(self, sample: Sample) -> int:
        reading = _Reading(sample.sampled_at - sample.to_epoch, sample.to_epoch)
        for place in reversed(range(len(self._runs))):
            if self._runs[place].has(reading):
                self._runs[place] = replace(self._runs[place], last=reading)
                return self._runs[place].number
        number = 1
        if self._runs:
            number = self._runs[-1].number + 1
            step = reading.to_epoch - self._runs[-1].last.to_epoch
            logger.warning("the clock was set by %+.0f s: samples before and after are written separately", step)
        self._runs = [*self._runs[-RUNS_KEPT:], ClockRun(number, reading, reading)]
        return number
