"""Controllers over many syncs: one beside others, and compiled as a replay runs them."""

from collections.abc import Sequence

import numpy as np

from adapter.verdicts.controllers import DEFAULT_FLAGS, Controllers, hpas_of, with_room
from adapter.verdicts.hpa import Hpa
from adapter.verdicts.simulation.scalers import sync_compiled
from tests.support.hpas import external, hpa, rules

TWO = (external(average="3", name="a"), external(average="3", name="b"))


def test_the_longest_window_is_kept_whole() -> None:
    values = np.full((300, 1, 1), 1000.0)
    values[1] = 9000.0
    hour = {"scaleUp": rules("Pods 100 15"), "scaleDown": rules(window=3600)}
    replicas = _run([hpa(behavior=hour)], values)[:, 0].tolist()

    assert replicas == [1, *[9] * 240, *[1] * 59]


def test_lanes_have_no_effect_on_one_another() -> None:
    """HPAs with other numbers of metrics and policies and with other windows, alone and together."""
    hpas = [
        hpa(),
        hpa(*TWO, behavior={"scaleUp": rules("Pods 1 60"), "scaleDown": rules(window=45)}),
        hpa(external(value="2"), least=0, behavior={"scaleUp": rules(window=30), "scaleDown": rules("Percent 50 30")}),
    ]
    random = np.random.default_rng(5)
    values = 1000.0 * random.integers(0, 40, (60, 2, 3))
    values[random.random(values.shape) < 0.1] = np.nan

    together = _run(hpas, values)
    alone = [_run([it], values[:, :, lane : lane + 1])[:, 0] for lane, it in enumerate(hpas)]

    assert together.tolist() == np.stack(alone, axis=1).tolist()
    assert all(len(set(column)) > 5 for column in together.T.tolist())


def test_compiled_controllers_decide_as_plain_ones_do() -> None:
    """HPAs with all that they can have, whose metrics fail now and then."""
    both = rules("Pods 3 60", "Percent 40 120", window=90, select="Min")
    hpas = [
        hpa(*TWO, least=0, behavior={"scaleUp": both, "scaleDown": both}),
        hpa(external(value="3"), external(average="2"), most=9),
        hpa(*TWO, behavior={"scaleUp": {"tolerance": 0}, "scaleDown": rules(select="Disabled")}),
    ]
    random = np.random.default_rng(8)
    values = 1000.0 * random.integers(0, 60, (300, 2, 3))
    values[random.random(values.shape) < 0.1] = np.nan

    plain, compiled = _run(hpas, values), _run_compiled(hpas, values)

    assert plain.tolist() == compiled.tolist()
    assert all(len(set(column)) > 1 for column in plain.T.tolist())


def _run(hpas: Sequence[Hpa], values: np.ndarray) -> np.ndarray:
    controllers, replicas = Controllers(hpas), np.ones(len(hpas), np.int64)
    wanted = []
    for step, row in enumerate(values):
        replicas = controllers.sync(
            15.0 * step, row[: max(len(it.metrics) for it in hpas)], replicas, replicas, replicas
        )
        wanted.append(replicas)
    return np.array(wanted)


def _run_compiled(hpas: Sequence[Hpa], values: np.ndarray) -> np.ndarray:
    of, wanted = with_room(hpas_of(hpas, DEFAULT_FLAGS), len(values)), np.ones((len(values) + 1, len(hpas)), np.int64)
    for step, row in enumerate(values):
        before = wanted[step]
        sync_compiled(15.0 * step, of, row, before, before, before, wanted[step + 1])
    return wanted[1:]
