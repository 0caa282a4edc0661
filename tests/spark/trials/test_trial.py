from dataclasses import replace

import numpy as np
import pytest

from adapter.verdicts.owners import Assignor
from adapter.verdicts.simulation.consumers import Consumers
from spark.trials.minutes import Minutes, Shape
from spark.trials.references import Candidate
from spark.trials.trial import Question, Trial, Untried, cheapest, trials_of
from tests.spark.advice.test_advised import GOOD
from tests.support.history.minutes import read_by
from tests.support.hpas import external, hpa

DAY = np.arange(720)
WAVE = read_by(60 * (100 + 80 * np.sin(DAY / 720 * 2 * np.pi)), np.full(720, 3.0), 50.0)
"""20/s to 180/s, read by three members that do 50/s each."""
CONSUMERS = Consumers(50.0, (12,), Assignor.UNIFORM, interval_seconds=10.0)
SLOW, QUICK = (hpa(external(average=target), most=12) for target in ("9000", "2000"))
EVEN = Shape(WAVE.start[::60], np.full(12, 1 / 12))
QUESTION = Question(CONSUMERS, 50.0, 100, EVEN, (Candidate(SLOW), Candidate(QUICK)), 60.0)


def tried(minutes: Minutes, question: Question = QUESTION) -> Trial | Untried:
    return trials_of([(minutes, question)])[0]


@pytest.fixture(scope="module")
def trial() -> Trial:
    made = tried(WAVE)
    assert isinstance(made, Trial)
    return made


def test_a_larger_target_costs_less_and_waits_longer(trial: Trial) -> None:
    slow, quick = trial.candidates

    assert slow.replica_hours < quick.replica_hours
    assert slow.wait_p95 > quick.wait_p95


def test_the_oracle_lets_nothing_wait_and_costs_no_more_than_kedas_defaults(trial: Trial) -> None:
    assert trial.oracle.wait_p99 < 30
    assert trial.oracle.replica_hours < trial.keda.replica_hours
    assert trial.today.replica_hours == 36


def test_groups_of_different_lengths_are_replayed_beside_one_another(trial: Trial) -> None:
    half = read_by(WAVE.produced[:360], np.full(360, 3.0), 50.0)
    both = trials_of([(WAVE, QUESTION), (half, QUESTION)])

    assert both[0] == trial
    assert both[1] == tried(half)


def test_where_the_past_is_not_reproduced_no_candidate_is_replayed() -> None:
    late = tried(replace(WAVE, wait_seconds=3 * WAVE.wait_seconds))

    assert isinstance(late, Trial)
    assert (late.candidates, "waited longer" in late.calibration.misfit) == ((), True)


def test_members_that_were_not_counted_are_a_reason() -> None:
    answer = tried(replace(WAVE, members_max=np.full(720, np.nan)))

    assert answer == Untried("The members of the group were not counted in the range")


def test_one_group_that_cannot_be_replayed_leaves_the_others() -> None:
    blind = replace(WAVE, lag=np.full(720, np.nan))
    first, second = trials_of([(blind, QUESTION), (WAVE, QUESTION)])

    assert (type(first), type(second)) == (Untried, Trial)


def test_the_cheapest_keeps_the_promise() -> None:
    dear, cheap, late = GOOD, replace(GOOD, replica_hours=5.0), replace(GOOD, replica_hours=1.0, minutes_above=900)

    assert cheapest([dear, late, cheap], [0, 0, 0], 0.95, 48) == 2
    assert cheapest([late], [0], 0.95, 48) is None


@pytest.mark.parametrize(("hours", "place"), [(98.1, 0), (97.9, 1)])
def test_of_two_that_cost_nearly_the_same_the_simpler_is_taken(hours: float, place: int) -> None:
    """Two per cent are a tie. Of those that are as simple, the cheaper one is taken."""
    figures = [GOOD, replace(GOOD, replica_hours=hours), replace(GOOD, replica_hours=100.5)]

    assert cheapest(figures, [0, 2, 0], 0.95, 48) == place


def test_where_all_change_often_the_calmest_is_taken_and_of_two_the_simpler() -> None:
    often = replace(GOOD, changes_a_day=60.0)

    assert cheapest([often, often, replace(often, changes_a_day=90.0, replica_hours=1.0)], [2, 1, 0], 0.95, 48) == 1
