"""What is computed as the decision of Kubernetes' HPA controller, beside that of a real one on the same values."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from adapter.verdicts.controllers import ControllerFlags, Controllers
from adapter.verdicts.hpa import Hpa
from local.kubernetes.control_plane import ControlPlane
from tests.support.hpas import Json, external, hpa, rules
from tests.support.real.fed_hpas import FedHpa, feed, ready_pods, uncertain_syncs

SYNC_SECONDS = 2.0
FLAGS = ControllerFlags(sync_seconds=SYNC_SECONDS, downscale_stabilization_seconds=5.0)
"""Those of the local control plane."""
SYNCS = 17
READY = 2
TRIALS = 5
LONGEST_SECONDS = 600.0

TARGET = 10_000
"""Of every metric, in thousandths."""


def average(name: str, number: int = 1) -> list[Json]:
    return [external(average="10", name=f"{name}-{at}") for at in range(number)]


def series(
    name: str, metrics: int = 1, *, most: int = 12, fails: float = 0.0, rests: float = 0.0
) -> list[list[int | None]]:
    """Values for up to `most` replicas; a share of them fails, another one is 0."""
    random = np.random.default_rng([ord(letter) for letter in name])
    values = random.integers(1, most * TARGET, (SYNCS, metrics))
    chance = random.random(values.shape)
    return [
        [
            None if luck < fails else 0 if luck > 1 - rests else int(value)
            for value, luck in zip(row, lucks, strict=True)
        ]
        for row, lucks in zip(values, chance, strict=True)
    ]


def near_targets(tolerances: Sequence[float]) -> list[list[int | None]]:
    """Values that are off by so much, for one replica after another."""
    return [[int(TARGET * (2 + at // 4) * (1 + off))] for at, off in enumerate(tolerances)]


def fed(name: str, values: Sequence[Sequence[int | None]], *metrics: Json, replicas: int = 2, **of: object) -> FedHpa:
    spec = {
        "minReplicas": of.get("least", 1),
        "maxReplicas": of.get("most", 9),
        "metrics": [*(metrics or average(name, len(values[0])))],
    }
    behavior = of.get("behavior")
    if behavior:
        spec["behavior"] = without_nulls(behavior)
    return FedHpa(name, spec, replicas, values, sorted(windows_of(as_hpa(spec))))


def as_hpa(spec: Json) -> Hpa:
    return hpa(*spec["metrics"], least=spec["minReplicas"], most=spec["maxReplicas"], behavior=spec.get("behavior"))


def windows_of(it: Hpa) -> set[float]:
    """The seconds after which a decision counts no longer. In a window of 0 s, none counts."""
    if it.behavior is None:
        return {FLAGS.downscale_stabilization_seconds}
    up, down = it.behavior.scale_up, it.behavior.scale_down
    periods = {float(policy.period_seconds) for rules in (up, down) for policy in rules.policies}
    stabilizing = down.stabilization_window_seconds
    usual = FLAGS.downscale_stabilization_seconds if stabilizing is None else stabilizing
    return (periods | {float(up.stabilization_window_seconds or 0), float(usual)}) - {0.0}


def without_nulls(of: object) -> object:
    if isinstance(of, Mapping):
        return {key: without_nulls(value) for key, value in of.items() if value is not None}
    return of


def all_hpas() -> list[FedHpa]:
    both = {"scaleUp": rules("Pods 1 5", "Percent 50 3", window=3), "scaleDown": rules("Pods 1 3", window=7)}
    least = {
        "scaleUp": rules("Pods 3 5", "Percent 50 9", select="Min"),
        "scaleDown": rules("Pods 2 5", "Percent 50 9", select="Min"),
    }
    tolerant = {"scaleUp": rules(tolerance="0"), "scaleDown": rules(tolerance="500m")}
    only_up = {"scaleUp": rules("Percent 100 3", window=5), "scaleDown": rules(select="Disabled")}
    quick = {"scaleUp": rules("Pods 4 3"), "scaleDown": rules("Percent 100 3")}
    alternating = {"scaleUp": rules("Pods 1 11"), "scaleDown": rules("Pods 9 3")}
    off = np.linspace(-0.6, 0.2, SYNCS).tolist()
    return [
        fed("plain", series("plain")),
        fed("windows-and-policies", series("windows-and-policies"), behavior=both),
        fed("least-change", series("least-change"), behavior=least, most=12),
        fed("tolerance", near_targets(off), behavior=tolerant, replicas=5),
        fed("same-tolerance", near_targets(off[::-1]), replicas=4),
        fed("some-fail", series("some-fail", 2, fails=0.35), behavior=quick),
        fed("only-up", series("only-up", most=9), behavior=only_up),
        fed("zero", series("zero", rests=0.5), least=0, behavior=quick),
        fed("zero-without-behavior", series("zero-without-behavior", rests=0.6), least=0),
        fed("value", series("value", most=3), external(value="10", name="value-0")),
        fed(
            "value-and-average",
            series("value-and-average", 2, most=4, fails=0.2),
            external(value="10", name="value-and-average-0"),
            external(average="10", name="value-and-average-1"),
        ),
        fed("outdated-changes", series("outdated-changes"), behavior=alternating, most=12),
    ]


@pytest.fixture(scope="module")
def decided(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, FedHpa]:
    """What the real controller did; all HPAs at once, since most of the time is spent waiting. Those of which a busy
    machine leaves a sync uncertain run again."""
    found: dict[str, FedHpa] = {}
    for trial in range(TRIALS):
        hpas = [each for each in all_hpas() if each.name not in found or any(uncertain_syncs(found[each.name]))]
        if not hpas:
            break
        name = f"fed-hpas-{trial}"
        namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        plane.apply([namespace])
        for with_value in ("value", "value-and-average"):
            ready_pods(with_value, READY, plane, name)
        feed(plane, tmp_path_factory.mktemp("feeding"), name, hpas, SYNC_SECONDS, LONGEST_SECONDS)
        plane.delete([namespace])
        found |= {each.name: each for each in hpas}
    return found


@pytest.mark.parametrize("name", [each.name for each in all_hpas()])
def test_a_real_controller_decides_in_every_sync_as_it_is_computed(name: str, decided: Mapping[str, FedHpa]) -> None:
    it = decided[name]
    real = [sync.spec for sync in it.syncs[1 : SYNCS + 1]]

    assert list(uncertain_syncs(it)) == [], "the machine was too slow to know which decisions were within a window"
    assert computed(it) == real
    assert len(set(real)) > 1


def computed(it: FedHpa) -> list[int]:
    """What follows from what the controller saw in each sync, when it saw it."""
    controllers = Controllers([as_hpa(it.spec)], FLAGS)
    return [_computed_in(sync, it, controllers) for sync in range(SYNCS)]


def _computed_in(sync: int, it: FedHpa, controllers: Controllers) -> int:
    seen, decided = it.syncs[sync], it.decided_in(sync)
    values = np.array([[np.nan if value is None else value] for value in it.values[sync]], float)
    replicas = (np.array([number]) for number in (seen.spec, seen.status, READY))
    return int(controllers.sync(seen.arrived if decided is None else decided.begin, values, *replicas)[0])
