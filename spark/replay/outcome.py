"""The given HPA on a group's minutes, after the replay of what really happened and beside others; a Spark task."""

from dataclasses import dataclass

from adapter.verdicts.simulation.replay import replayed
from spark.errors import Unusable
from spark.figures.periods import Wanted
from spark.storage.protocol import HistoryFiles
from spark.tables.topic_parts import Names
from spark.trials.calibration import (
    Calibration,
    Courses,
    Figures,
    as_served,
    as_they_were,
    calibration_of,
    figures_of,
)
from spark.trials.minutes import Minutes, MinutesRead, minutes_of, rows_of_groups
from spark.trials.references import keda_of, lane_of_oracle, lanes_with
from spark.trials.trial import Question


@dataclass(frozen=True, slots=True)
class ReplayTask:
    files: HistoryFiles
    paths: tuple[str, ...]
    wanted: Wanted
    group: Names
    """Cluster and name."""
    question: Question
    """Its only candidate is the given HPA."""


@dataclass(frozen=True, slots=True)
class Outcome:
    minutes: Minutes
    advised: float
    """Messages per second of one member, with which HPAs are replayed."""
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


def outcome_in(task: ReplayTask) -> Outcome:
    """The kernel. Raises Unusable for a file that cannot be read, and where the minutes do not show what happened."""
    if not task.paths:
        raise Unusable(f"--group {task.group[1]}: the history holds no minutes of the range")
    rows = rows_of_groups(MinutesRead(task.files, task.paths, (task.group,)))
    minutes = minutes_of([rows], task.wanted, task.question.shape)
    if minutes is None or not minutes.is_known.any():
        raise Unusable(f"--group {task.group[1]}: no minute of the range has a known lag and wait")
    return outcome_of(minutes, task.question)


def outcome_of(minutes: Minutes, question: Question) -> Outcome:
    """Raises Unusable where members were not counted."""
    consumers, promised = question.consumers, question.promised_seconds
    lanes = [
        as_they_were(minutes, question.seen),
        lane_of_oracle(minutes, consumers),
        *lanes_with(minutes, consumers, (*question.candidates, keda_of(consumers)), question.shape),
    ]
    past, *others = replayed(lanes)
    calibration, observed = calibration_of(minutes, question.seen, promised, question.windows, past)
    courses = [as_served(minutes, consumers, result) for result in others]
    oracle, with_hpa, keda = (
        figures_of(course, minutes.is_known, promised, result.changes)
        for course, result in zip(courses, others, strict=True)
    )
    return Outcome(minutes, consumers.capacity, calibration, observed, courses[1], with_hpa, keda, oracle)
