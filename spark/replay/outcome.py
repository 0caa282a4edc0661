"""Pure: the given HPA on a group's minutes, after the replay of what really happened; the kernel of a Spark task."""

from dataclasses import dataclass, replace

import numpy as np

from adapter.verdicts.hpa import Hpa
from adapter.verdicts.plant import Consumers
from adapter.verdicts.replay import Lane, replayed
from spark.replay.calibration import Calibration, Courses, Figures, as_served, calibrated, figures_of, load_of
from spark.replay.minutes import Minutes


@dataclass(frozen=True, slots=True)
class Question:
    """A task."""

    minutes: Minutes
    consumers: Consumers
    """Without a capacity, which the minutes show."""
    hpa: Hpa
    promised_seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    calibration: Calibration
    observed: Courses
    """As it was."""
    courses: Courses
    """As it would have been with the HPA."""
    figures: Figures

    @property
    def keeps(self) -> float:
        """Share of the known minutes in which no message waits longer than promised."""
        known = int(np.count_nonzero(~np.isnan(self.observed.wait_seconds + self.observed.lag)))
        return 1 - self.figures.minutes_above / known


def outcome_of(question: Question) -> Outcome:
    """The kernel. Raises Unusable where the minutes do not show what members can do."""
    minutes, promised = question.minutes, question.promised_seconds
    calibration, observed, _ = calibrated(minutes, question.consumers, promised)
    members = observed.replicas[~np.isnan(observed.replicas)]
    lane = Lane(
        load_of(minutes),
        replace(question.consumers, capacity=calibration.capacity),
        question.hpa,
        replicas=int(np.clip(members[0], max(1, question.hpa.min_replicas), question.hpa.max_replicas)),
        lag_is_known=~np.isnan(minutes.lag),
    )
    (result,) = replayed([lane])
    courses = as_served(minutes, result)
    return Outcome(calibration, observed, courses, figures_of(courses, minutes.is_known, promised, result.changes))
