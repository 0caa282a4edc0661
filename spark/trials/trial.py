"""Pure: HPAs on a group's minutes, after the replay of the members that really were there."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from adapter.verdicts.simulation.consumers import Consumers
from adapter.verdicts.simulation.replay import Replay, replay, replayed
from adapter.verdicts.simulation.scalers import Lane
from spark.errors import Unusable
from spark.trials.calibration import (
    Calibration,
    Figures,
    as_served,
    as_they_were,
    calibration_of,
    figures_of,
)
from spark.trials.measures import Measure
from spark.trials.minutes import Minutes, Shape
from spark.trials.references import Candidate, keda_of, lane_of_oracle, lanes_with

NEARLY = 1.02
"""Times the replica-hours of the cheapest: as much is a tie."""


@dataclass(frozen=True, slots=True)
class Question:
    consumers: Consumers
    """With the capacity to count with."""
    seen_capacity: float
    """Messages per second of one member, as it was seen: the median, unless it differs by the hour."""
    windows: int
    """In which it was seen."""
    shape: Shape
    candidates: tuple[Candidate, ...]
    promised_seconds: float

    @property
    def seen(self) -> Consumers:
        """With the capacity that was seen."""
        return replace(self.consumers, capacity=self.seen_capacity)


@dataclass(frozen=True, slots=True)
class Untried:
    """Nothing was replayed."""

    reason: str
    """A sentence without its full stop."""


@dataclass(frozen=True, slots=True)
class Trial:
    calibration: Calibration
    candidates: tuple[Figures, ...]
    """Of each candidate; none where what happened is not reproduced."""
    keda: Figures
    """With KEDA's defaults."""
    oracle: Figures
    """With as many members as each minute and the next need."""

    @property
    def today(self) -> Figures:
        return self.calibration.observed


def trials_of(asked: Iterable[tuple[Minutes, Question]]) -> list[Trial | Untried]:
    """Replays all groups beside one another. Nothing but the calibration is computed where what happened is not
    reproduced. From then on, no more is kept of the minutes than the replays need, which is a sixth."""
    begun, replays = _calibrated(list(asked))
    of_all = list(itertools.chain.from_iterable(replays.values()))
    replay([lane for lane, _ in of_all], [measure.take for _, measure in of_all])
    for at, trial in enumerate(begun):
        if isinstance(trial, Trial) and at in replays:
            *candidates, keda = [measure.figures() for _, measure in replays[at]]
            begun[at] = replace(trial, candidates=tuple(candidates), keda=keda)
    return begun


def _calibrated(
    asked: Sequence[tuple[Minutes, Question]],
) -> tuple[list[Trial | Untried], dict[int, list[tuple[Lane, Measure]]]]:
    """Returns trials without candidates; and by the places of those whose past is reproduced, what is to be replayed
    for them."""
    prepared = [_prepared(minutes, question) for minutes, question in asked]
    past = iter(replayed([lane for lanes in prepared if not isinstance(lanes, Untried) for lane in lanes]))
    begun: list[Trial | Untried] = [
        lanes if isinstance(lanes, Untried) else _begun(minutes, question, next(past), next(past))
        for (minutes, question), lanes in zip(asked, prepared, strict=True)
    ]
    fitting = [at for at, it in enumerate(begun) if isinstance(it, Trial) and not it.calibration.misfit]
    return begun, {at: _measured_lanes(*asked[at]) for at in fitting}


def _measured_lanes(minutes: Minutes, question: Question) -> list[tuple[Lane, Measure]]:
    """Of the candidates, and of the HPA of KEDA's defaults."""
    lanes = lanes_with(minutes, question.consumers, (*question.candidates, keda_of(question.consumers)), question.shape)
    first = Measure.of(minutes, question.consumers, question.promised_seconds)
    return [(lane, first.beside()) for lane in lanes]


def _prepared(minutes: Minutes, question: Question) -> tuple[Lane, Lane] | Untried:
    """The members that were there, and the oracle's."""
    if not minutes.is_known.any():
        return Untried("No minute of the range has a known lag and wait")
    try:
        past = as_they_were(minutes, question.seen)
    except Unusable as error:
        return Untried(str(error)[:1].upper() + str(error)[1:])
    return past, lane_of_oracle(minutes, question.consumers)


def _begun(minutes: Minutes, question: Question, past: Replay, oracle: Replay) -> Trial:
    calibration, _ = calibration_of(minutes, question.seen, question.promised_seconds, question.windows, past)
    return Trial(calibration, (), calibration.observed, _figures(minutes, question, oracle))


def _figures(minutes: Minutes, question: Question, result: Replay) -> Figures:
    course = as_served(minutes, question.consumers, result)
    return figures_of(course, minutes.is_known, question.promised_seconds, result.changes)


def cheapest(
    figures: Sequence[Figures], simplicity: Sequence[int], least_kept: float, most_changes: float
) -> int | None:
    """Returns the place of the one with the fewest replica-hours of those that keep the promise and change seldom
    enough; of several that cost nearly as little, the simplest, which has the smallest number in `simplicity`. If all
    that keep the promise change often, it is one of those that change least. None: none keeps the promise."""
    keeping = [at for at, it in enumerate(figures) if it.kept_share >= least_kept]
    calm = [at for at in keeping if figures[at].changes_a_day <= most_changes]
    if not calm:
        return min(keeping, key=lambda at: (figures[at].changes_a_day, simplicity[at]), default=None)
    enough = NEARLY * min(figures[at].replica_hours for at in calm)
    near = [at for at in calm if figures[at].replica_hours <= enough]
    return min(near, key=lambda at: (simplicity[at], figures[at].replica_hours))
