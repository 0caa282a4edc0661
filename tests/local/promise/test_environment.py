"""What is measured of the machine, and what the simulator makes of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from local.processes import RigError
from local.promise import scenario
from local.promise.environment import Environment, measured
from local.promise.figures import Run
from local.promise.predicted import predicted

USUAL = Environment()


def test_starts_and_pauses_are_those_of_the_members(tmp_path: Path) -> None:
    """The first pod gets partitions 21 s after it was made, loses them for 1.5 s when the second one joins after 25 s,
    and for 0.5 s when a third one does, which is killed."""
    (tmp_path / "a.1.rebalances").write_text(
        "revoked 0 120.5\nassigned 4 121\nrevoked 4 145\nassigned 2 146.5\nrevoked 2 150\nassigned 1 150.5\n"
    )
    (tmp_path / "b.2.rebalances").write_text("assigned 2 146.0\nrevo")
    (tmp_path / "c.3.rebalances").write_text("assi")

    found = measured([tmp_path], {"a": 100.0, "b": 121.0, "c": 130.0}, 15.0)

    assert found == Environment(15.0, (21.0, 25.0), 1.0)


def test_a_run_in_which_nobody_got_partitions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.1.rebalances").write_text("revoked 0 120.5\n")

    with pytest.raises(RigError, match="no consumer got partitions before the load ended"):
        measured([tmp_path], {"a": 100.0}, 15.0)


def one(group: str, environment: Environment) -> Run:
    return predicted(group, environment, number=1)[0]


def test_replicas_that_take_longer_to_start_make_messages_wait_longer() -> None:
    quick, slow = (one(scenario.BY_LAG, replace(USUAL, starts=(seconds,))) for seconds in (20.0, 40.0))

    assert quick.wait(99) < slow.wait(99)


def test_the_controller_looks_when_it_was_seen_to() -> None:
    late = one(scenario.BY_PROMISE, replace(USUAL, first_sync=7.4))
    (changed,) = np.nonzero(np.diff(late.replicas))

    assert {int(second + 1) % scenario.SYNC_SECONDS for second in changed} == {7}


def test_a_longer_pause_makes_messages_wait_longer() -> None:
    waits = [one(scenario.BY_PROMISE, replace(USUAL, pause=pause)).wait(99) for pause in (0.0, 10.0)]

    assert waits[1] > waits[0] + 5


def test_replicas_that_never_join_read_nothing() -> None:
    """Only those that are there at the start do."""
    never = one(scenario.BY_LAG, replace(USUAL, starts=(10_000.0,)))

    assert never.weights.sum() < 0.5 * scenario.rates().sum()
    assert never.replicas[-1] == scenario.hpa(scenario.BY_LAG)["spec"]["maxReplicas"]


def test_every_prediction_of_the_same_environment_is_the_same() -> None:
    first, second = (predicted(scenario.BY_LAG, USUAL, number=2) for _ in range(2))

    assert [run.wait(99) for run in first] == [run.wait(99) for run in second]
    assert first[0].wait(99) != first[1].wait(99)
