"""HPAs that are taken through many minutes at once, against the same HPAs taken from step to step."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from adapter.verdicts.controllers import ControllerFlags
from adapter.verdicts.owners import Assignor
from adapter.verdicts.simulation import replay
from adapter.verdicts.simulation.consumers import Consumers, Messages
from adapter.verdicts.simulation.load import Events, Load
from adapter.verdicts.simulation.promised import Promised
from adapter.verdicts.simulation.replay import Replay, replayed
from adapter.verdicts.simulation.scalers import Lane, Ruled
from adapter.verdicts.simulation.sights import Sight
from tests.support.hpas import external, hpa, rules

MINUTES = 90
GROUPS = (
    Consumers(10.0, (4,), commit_seconds=7.0, interval_seconds=15.0),
    Consumers(10.0, (3, 4), Assignor.RANGE, start_seconds=70.0, interval_seconds=15.0),
    Consumers(25.0, (5,), assignor=None, start_seconds=0.0, join_seconds=0.0, interval_seconds=15.0),
)
"""Samples are as frequent as syncs, so that an HPA reads the lag as it is."""
HPAS = (
    hpa(external(average="300"), least=0, most=4),
    hpa(external(value="800"), most=7, behavior={"scaleUp": rules("Pods 2 30"), "scaleDown": rules(window=120)}),
    hpa(external(average="300"), external(value="500"), most=6, behavior={"scaleDown": rules("Percent 50 60")}),
)


class TheLag:
    """Serves what `Following` computes itself, as a rule that is asked at each sync."""

    def scaler(self, lanes: Sequence[Lane], flags: ControllerFlags) -> Ruled:
        return Ruled(lanes, flags, self)

    def values(self, sight: Sight) -> Messages:
        lag: Messages = sight.plant.lag + sight.plant.uncommitted
        return lag


def lanes() -> Iterator[Lane]:
    """Each group with each HPA, and all that can happen to it."""
    random = np.random.default_rng(4)

    def now_and_then(amount: float) -> Messages:
        return np.where(random.random(MINUTES) < 0.1, amount, 0.0)

    for group in GROUPS:
        for follows in HPAS:
            events = Events(1 - now_and_then(0.5), now_and_then(40.0), now_and_then(1.0))
            if len(group.partitions) == 1:
                events = replace(events, partitions=(group.width - 2, 50))
            produced = 60 * 10 * group.width * random.uniform(0, 1, MINUTES)
            known = random.random(MINUTES) > 0.1
            yield Lane(Load(produced, lag=100.0), group, follows, lag_is_known=known, events=events)


def figures(it: Replay) -> list[object]:
    return [it.lag.tolist(), it.wait_seconds.tolist(), it.replicas.tolist(), it.changes]


def test_many_minutes_at_once_are_the_same_to_the_last_digit_as_one_step_after_another() -> None:
    at_once = replayed(list(lanes()))
    in_steps = replayed([replace(lane, rule=TheLag()) for lane in lanes()])

    assert all(it.changes > 1 for it in at_once)
    assert [figures(it) for it in at_once] == [figures(it) for it in in_steps]


@pytest.mark.parametrize("limit", ["STRETCH_MINUTES", "MOST_LANES"])
def test_the_same_follows_however_many_minutes_and_lanes_are_replayed_at_once(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Also where more has to be remembered than there was room for at first, and with a promise."""
    promised = hpa(external(average="1"), least=0, most=7)
    both = [*lanes(), *(replace(lane, hpa=promised, rule=Promised(30.0)) for lane in lanes())]
    many = replayed(both)
    monkeypatch.setattr(replay, limit, 1)

    assert [figures(it) for it in replayed(both)] == [figures(it) for it in many]
