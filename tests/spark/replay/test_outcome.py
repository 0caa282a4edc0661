from dataclasses import replace

import numpy as np

from adapter.verdicts.plant import Consumers
from spark.replay.outcome import Question, outcome_of
from tests.support.history.minutes import read_by
from tests.support.hpas import external, hpa, rules

DAY = np.arange(1440)
WAVE = read_by(60 * (100 + 80 * np.sin(DAY / 1440 * 2 * np.pi)), np.full(1440, 3.0), 50.0)
QUICK = hpa(external(average="500"), most=12, behavior={"scaleUp": rules("Pods 9 15"), "scaleDown": rules()})
QUESTION = Question(WAVE, Consumers(np.nan, (12,), interval_seconds=10.0), QUICK, 60.0)


def test_the_hpa_begins_with_the_members_that_were_there() -> None:
    held = replace(
        QUESTION, hpa=hpa(external(average="500"), least=1, most=12, behavior={"scaleDown": rules(window=3600)})
    )

    assert outcome_of(held).courses.replicas[0] == 3


def test_the_hpa_has_no_value_in_minutes_of_which_the_lag_is_not_known() -> None:
    """As it was with the real HPA: the adapter answered with an error."""
    silent = (DAY >= 200) & (DAY < 400)
    blind = replace(QUESTION, minutes=replace(WAVE, lag=np.where(silent, np.nan, WAVE.lag)))
    seeing, held = (outcome_of(each).courses.replicas[silent] for each in (QUESTION, blind))

    assert len(set(held.tolist())) == 1
    assert len(set(seeing.tolist())) > 1
