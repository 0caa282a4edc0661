"""Pure: the given HPA on a group's minutes, after the replay of what really happened and beside others; the kernel of a
Spark task."""

from dataclasses import dataclass, replace

from adapter.verdicts.hpa import Hpa
from adapter.verdicts.plant import Consumers
from adapter.verdicts.replay import replayed
from spark.replay.calibration import (
    Calibration,
    Courses,
    Figures,
    as_served,
    as_they_were,
    calibration_of,
    capacity_of,
    figures_of,
)
from spark.replay.minutes import Minutes
from spark.replay.references import lane_of_keda, lane_of_oracle, lane_with


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
    keda: Figures
    """With KEDA's defaults."""
    oracle: Figures
    """With as many members as each minute and the next one need."""


def outcome_of(question: Question) -> Outcome:
    """The kernel. Raises Unusable where the minutes do not show what members can do."""
    minutes, promised = question.minutes, question.promised_seconds
    capacity, windows = capacity_of(minutes, question.consumers.width)
    consumers = replace(question.consumers, capacity=capacity)
    lanes = [
        as_they_were(minutes, consumers),
        lane_of_oracle(minutes, consumers),
        lane_with(minutes, consumers, question.hpa),
        lane_of_keda(minutes, consumers),
    ]
    past, *others = replayed(lanes)
    calibration, observed = calibration_of(minutes, consumers, promised, windows, past)
    courses = [as_served(minutes, result) for result in others]
    oracle, with_hpa, keda = (
        figures_of(course, minutes.is_known, promised, result.changes)
        for course, result in zip(courses, others, strict=True)
    )
    return Outcome(calibration, observed, courses[1], with_hpa, keda, oracle)
