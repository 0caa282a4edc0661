from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adapter.verdicts.simulation.consumers import Consumers
from spark.errors import Unusable
from spark.figures.periods import Wanted
from spark.replay.outcome import ReplayTask, outcome_in, outcome_of
from spark.replay.page import capacity_in_words, verdict
from spark.storage.local import LocalFiles
from spark.trials.minutes import Shape
from spark.trials.references import Candidate
from spark.trials.trial import Question
from tests.support.history.minutes import read_by
from tests.support.hpas import external, hpa, rules

DAY = np.arange(1440)
WAVE = read_by(60 * (100 + 80 * np.sin(DAY / 1440 * 2 * np.pi)), np.full(1440, 3.0), 50.0)
QUICK = hpa(external(average="500"), most=12, behavior={"scaleUp": rules("Pods 9 15"), "scaleDown": rules()})
EVEN = Shape(WAVE.start[::60], np.full(24, 1 / 12))
CONSUMERS = Consumers(50.0, (12,), interval_seconds=10.0)
QUESTION = Question(CONSUMERS, 50.0, 100, EVEN, (Candidate(QUICK),), 60.0)


def test_the_hpa_begins_with_the_members_that_were_there() -> None:
    slow = hpa(external(average="500"), least=1, most=12, behavior={"scaleDown": rules(window=3600)})

    assert outcome_of(WAVE, replace(QUESTION, candidates=(Candidate(slow),))).courses.replicas[0] == 3


def test_the_hpa_has_no_value_in_minutes_of_which_the_lag_is_not_known() -> None:
    """As it was with the real HPA: the adapter answered with an error."""
    silent = (DAY >= 200) & (DAY < 400)
    blind = replace(WAVE, lag=np.where(silent, np.nan, WAVE.lag))
    seeing, held = (outcome_of(each, QUESTION).courses.replicas[silent] for each in (WAVE, blind))

    assert len(set(held.tolist())) == 1
    assert len(set(seeing.tolist())) > 1


def test_the_past_is_replayed_with_the_median_and_the_hpa_with_the_capacity_to_count_with() -> None:
    outcome = outcome_of(WAVE, replace(QUESTION, consumers=replace(CONSUMERS, capacity=40.0)))

    assert (outcome.calibration.capacity, outcome.advised) == (50, 40)
    assert outcome.calibration.misfit == ""
    assert outcome.oracle.replica_hours > outcome_of(WAVE, QUESTION).oracle.replica_hours


def test_a_range_without_tables_of_minutes_is_refused_with_a_sentence(tmp_path: Path) -> None:
    task = ReplayTask(LocalFiles(tmp_path), (), Wanted(), ("main", "billing"), QUESTION)

    with pytest.raises(Unusable, match="--group billing: the history holds no minutes of the range"):
        outcome_in(task)


def test_the_capacity_is_said_to_be_the_median_or_that_of_the_hour_of_the_day() -> None:
    by_hour = replace(WAVE, pace=np.repeat(np.linspace(1.0, 2.0, 24), 60))
    steady, varying = (capacity_in_words(outcome_of(of, QUESTION)) for of in (WAVE, by_hour))

    assert steady == (
        "A member reads 50\u202f/s: the median of 100 windows in which members were saturated. HPAs are replayed with "
        "50\u202f/s, the lower quartile."
    )
    assert varying == (
        "A member reads 50\u202f/s to 100\u202f/s, by the hour of the day: the lower quartile of each hour's share of "
        "100 windows in which members were saturated. HPAs are replayed with the same."
    )


def test_replica_hours_that_stay_the_same_are_said_to() -> None:
    three = hpa(external(average="500"), least=3, most=3)

    said = verdict(outcome_of(WAVE, replace(QUESTION, candidates=(Candidate(three),))), "60 s")

    assert said.endswith("replica-hours would have been the same.")
