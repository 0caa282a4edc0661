"""The numbers of Kubernetes' own tests: pkg/controller/podautoscaler/horizontal_test.go, replica_calculator_test.go."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from adapter.verdicts.controllers import ControllerFlags, Controllers, Direction, with_room
from adapter.verdicts.hpa import Hpa
from adapter.verdicts.recent import note, remember
from tests.support.hpas import external, hpa, rules, target

EXACT = {"tolerance": 0}


@dataclass(frozen=True)
class Case:
    name: str
    hpa: Hpa
    replicas: int
    values: tuple[float, ...]
    """In thousandths; NaN: the metric fails."""
    desired: int
    ready: int | None = None
    """None: all."""
    status: int | None = None
    recommended: Sequence[tuple[float, int]] = ()
    """Seconds ago, replicas."""
    added: Sequence[tuple[float, int]] = ()
    removed: Sequence[tuple[float, int]] = ()
    scaled_to_zero: bool = False
    flags: ControllerFlags = field(default_factory=ControllerFlags)


def desired(case: Case) -> int:
    controllers = Controllers([case.hpa], case.flags)
    controllers.scaled_to_zero[:] = case.scaled_to_zero
    controllers.hpas.specs["has_started"] = True
    for seconds, replicas in sorted(case.recommended, reverse=True):
        controllers.hpas = with_room(controllers.hpas, 1)
        for it in (controllers.hpas.up, controllers.hpas.down):
            remember(it.windows, it.recommended, 0, -seconds, replicas)
    for name, past in (("up", case.added), ("down", case.removed)):
        for seconds, replicas in past:
            controllers.hpas = with_room(controllers.hpas, 1)
            of: Direction = getattr(controllers.hpas, name)
            note(of.lists, of.changes, 0, -seconds, replicas)
    status = case.replicas if case.status is None else case.status
    ready = status if case.ready is None else case.ready
    values = np.array(case.values, float)[:, np.newaxis]
    return int(controllers.sync(0.0, values, *(np.array([number]) for number in (case.replicas, status, ready)))[0])


def by_value(
    name: str,
    replicas: int,
    value: float,
    to: int,
    *,
    of: object = None,
    per_pod: object = None,
    ready: int | None = None,
    least: int = 1,
    most: int = 1000,
    tolerance: float | None = None,
    is_object: bool = False,
    scaled_to_zero: bool = False,
) -> Case:
    metric = external(value=of, average=per_pod)
    if is_object:
        source = {"metric": {"name": "qps"}, "target": target(value=of, average=per_pod), "describedObject": {}}
        metric = {"type": "Object", "object": source}
    behavior = None if tolerance is None else {"scaleUp": {"tolerance": tolerance}}
    it = hpa(metric, least=least, most=most, behavior=behavior)
    return Case(name, it, replicas, (value,), to, ready=ready, scaled_to_zero=scaled_to_zero)


VALUES = [
    by_value("ScaleUpCMExternal", 3, 8600, 4, of="6666m", least=2, most=6),
    by_value("ScaleUpPerPodCMExternal", 3, 8600, 4, per_pod="2222m", least=2, most=6),
    by_value("ScaleUpCMObject", 3, 20_000, 4, of="15.0", least=2, most=6, is_object=True),
    by_value("ScaleUpPerPodCMObject", 3, 40_000, 4, per_pod="10.0", least=2, most=6, is_object=True),
    by_value("ScaleDownCMObject", 5, 12_000, 3, of="20.0", least=2, most=6, is_object=True),
    by_value("ScaleDownPerPodCMObject", 5, 60_000, 3, per_pod="20.0", least=2, most=6, is_object=True),
    by_value("ScaleDownCMExternal", 5, 8600, 3, of="14400m", least=2, most=6),
    by_value("ScaleDownPerPodCMExternal", 5, 8600, 3, per_pod="3000m", least=2, most=6),
    by_value("ScaleDownToZeroCMExternal", 5, 0, 0, of="14400m", least=0, most=6),
    by_value("ScaleDownToZeroCMObject", 5, 0, 0, of="20.0", least=0, most=6, is_object=True),
    by_value("ToleranceCMObject", 3, 20_050, 3, of="20.0", most=5, is_object=True),
    by_value("ToleranceCMExternal", 4, 8600, 4, of="8666m", least=2, most=6),
    by_value("TolerancePerPodCMObject", 4, 8600, 4, per_pod="2200m", least=2, most=6, is_object=True),
    by_value("TolerancePerPodCMExternal", 4, 8600, 4, per_pod="2200m", least=2, most=6),
    by_value("ReplicaCalcScaleUpCMExternal", 1, 8600, 2, of="4400m"),
    by_value("ReplicaCalcScaleUpCMExternalIgnoresUnreadyPods", 3, 8600, 2, of="4400m", ready=1),
    by_value("ReplicaCalcScaleUpCMObjectIgnoresUnreadyPods", 3, 50_000, 5, of="10", ready=1, is_object=True),
    by_value("ReplicaCalcScaleUpCMObject", 3, 20_000, 4, of="15", is_object=True),
    by_value("ReplicaCalcScaleUpCMPerPodObject", 3, 20_000, 4, per_pod="5", is_object=True),
    by_value("ReplicaCalcScaleUpPerPodCMExternal", 3, 8600, 4, per_pod="2150m"),
    by_value("ReplicaCalcScaleDownCMExternal", 5, 8600, 3, of="14334m"),
    by_value("ReplicaCalcScaleDownPerPodCMExternal", 5, 8600, 3, per_pod="2867m"),
    by_value("ReplicaCalcScaleDownPerPodCMObject", 5, 6000, 3, per_pod="2", is_object=True),
    by_value("ReplicaCalcToleranceCMObject", 3, 20_666, 3, of="20", is_object=True),
    by_value("ReplicaCalcTolerancePerPodCMObject", 4, 20_166, 4, per_pod="5", is_object=True),
    by_value("ReplicaCalcToleranceCMExternal", 3, 8600, 3, of="8888m"),
    by_value("ReplicaCalcTolerancePerPodCMExternal", 3, 8600, 3, per_pod="2900m"),
    by_value("ReplicaCalcConfigurableToleranceCMObject", 3, 20_666, 4, of="20", tolerance=0.01, is_object=True),
    by_value("ReplicaCalcConfigurableTolerancePerPodCMObject", 4, 20_208, 5, per_pod=5, tolerance=0.01, is_object=True),
    by_value("ReplicaCalcConfigurableToleranceCMExternal", 3, 8900, 4, of="8800m", tolerance=0.01),
    by_value("ReplicaCalcConfigurableTolerancePerPodCMExternal", 3, 8600, 4, per_pod="2800m", tolerance=0.01),
    by_value("ScaleUpFromZeroCMObject", 0, 20_000, 2, of="15.0", least=0, most=6, is_object=True, scaled_to_zero=True),
    by_value("ScaleUpFromZeroIgnoresToleranceCMObject", 0, 1000, 1, of="1.0", least=0, scaled_to_zero=True),
    by_value("ScaleUpFromZeroWithoutCondition", 0, 20_000, 0, of="15.0", least=0, most=6, is_object=True),
    by_value("ScaleUpFromZeroWhenMinReplicasIncreased", 0, 10_000, 2, of="15", least=2, most=6, scaled_to_zero=True),
    by_value("the same with a behavior", 0, 10_000, 2, of="15", least=2, tolerance=0.1, scaled_to_zero=True),
    by_value("ManualScaleToZeroDisablesHPA", 0, 20_000, 0, of="15.0", least=1, most=6),
    by_value("TooFewReplicas", 1, math.nan, 2, of="15.0", least=2, most=6),
    by_value("TooManyReplicas", 10, math.nan, 6, of="15.0", least=2, most=6),
    by_value("UpscaleCap", 3, 10**9, 6, of="15.0", least=1, most=100),
    by_value("ConvertDesiredReplicasWithRules, the limit of 4", 1, 10**9, 4, of="15.0", least=1, most=100),
]


@pytest.mark.parametrize("case", VALUES, ids=lambda case: case.name)
def test_a_metric_asks_for_the_replicas_that_kubernetes_computes(case: Case) -> None:
    assert desired(case) == case.desired


def test_more_replicas_than_a_32_bit_integer_holds_are_its_largest() -> None:
    """ExternalPerPodMetricReplicaOverflow; a policy of this size lets it through."""
    all_at_once = {"scaleUp": rules(f"Pods {2**31 - 1} 15"), "scaleDown": rules()}
    it = hpa(external(average="1m"), most=2**31 - 1, behavior=all_at_once)

    assert desired(Case("", it, 1, (float(2**63 - 1),), 0)) == 2**31 - 1


AN_UP, A_DOWN = (12_000.0, 3_000.0)
"""4 and 1 replicas with a target of 3 each."""
TWO = (external(average="3", name="a"), external(average="3", name="b"))


@pytest.mark.parametrize(
    ("name", "values", "to"),
    [
        ("the largest of several counts", (AN_UP, A_DOWN), 4),
        ("the order is of no matter", (A_DOWN, AN_UP), 4),
        ("ScaleUpOneMetricInvalid: one fails and the other asks for more", (math.nan, AN_UP), 4),
        ("NoScaleDownOneMetricInvalid: one fails and the other asks for less", (A_DOWN, math.nan), 2),
        ("both fail", (math.nan, math.nan), 2),
        ("a first proposal of 0", (0.0, A_DOWN), 1),
    ],
)
def test_of_several_metrics_the_largest_counts_and_a_failed_one_prevents_scaling_down(
    name: str, values: tuple[float, ...], to: int
) -> None:
    assert desired(Case(name, hpa(*TWO), 2, values, to)) == to


def test_a_metric_that_fails_at_zero_changes_nothing() -> None:
    case = Case("", hpa(least=0), 0, (math.nan,), 0, scaled_to_zero=True)

    assert desired(case) == 0


def test_zero_is_left_only_where_the_gate_is_on() -> None:
    """In Kubernetes before 1.37, unless it was turned on."""
    old = ControllerFlags(scales_to_zero=False)

    assert desired(Case("", hpa(least=0), 0, (9000.0,), 0, scaled_to_zero=True, flags=old)) == 0


def test_a_percentage_alone_never_leaves_zero() -> None:
    doubling = {"scaleUp": rules("Percent 100 15"), "scaleDown": rules()}

    assert desired(Case("", hpa(least=0, behavior=doubling), 0, (9000.0,), 0, scaled_to_zero=True)) == 0


def test_a_value_fails_while_the_target_has_no_pods_but_an_average_does_not() -> None:
    """Right after leaving zero: `no pods returned by selector`."""
    cases = [
        Case("", hpa(metric, most=9), 2, (9000.0,), 0, status=0) for metric in (external(value=1), external(average=1))
    ]

    assert [desired(case) for case in cases] == [2, 4]


def limited(
    name: str,
    replicas: int,
    to: int,
    result: int,
    *,
    least: int = 1,
    most: int = 1000,
    up: Sequence[str] = (),
    down: Sequence[str] = (),
    added: Sequence[tuple[float, int]] = (),
    removed: Sequence[tuple[float, int]] = (),
    select: str | None = None,
) -> Case:
    behavior = {
        "scaleUp": {**rules(*up, select=select), **EXACT},
        "scaleDown": {**rules(*down, select=select), **EXACT},
    }
    it = hpa(least=least, most=most, behavior=behavior)
    return Case(name, it, replicas, (1000.0 * to,), result, added=added, removed=removed)


THREE = [(100.0, 1), (60.0, 5), (20.0, 9)]
FOUR = [(105.0, 8), (75.0, 12), (45.0, 9), (15.0, 11)]
LIMITS = [
    limited("within the range", 5, 7, 7, least=3, most=8),
    limited("less than minReplicas", 3, 1, 2, least=2, most=8),
    limited("zero", 1, 0, 0, least=0, most=10),
    limited("maxReplicas below the limit", 20, 1000, 10, most=10),
    limited("more than maxReplicas", 100, 1000, 150, least=100, most=150),
    limited("a small percentage adds one", 3, 1000, 4, most=2000, up=["Percent 1 60"]),
    limited("pods down", 1000, 3, 980, least=3, most=2000, down=["Pods 20 60"]),
    limited("up with the defaults", 10, 50, 20),
    limited("more pods than percent", 10, 500, 110, up=["Pods 100 60", "Percent 100 60"]),
    limited("more percent than pods", 10, 500, 20, up=["Pods 2 60", "Percent 100 60"]),
    limited("up with a large pods policy", 10, 50, 50, up=["Pods 100 60"]),
    limited("up by pods", 10, 50, 40, up=["Pods 30 60"]),
    limited("up by percent", 10, 50, 30, up=["Percent 200 60"]),
    limited("down, more pods than percent", 100, 2, 80, down=["Pods 20 60", "Percent 1 60"]),
    limited("down, pods and percent alike", 100, 2, 98, down=["Pods 2 60", "Percent 1 60"]),
    limited("down to minReplicas by pods", 10, 0, 1, down=["Pods 100 60"]),
    limited("down to minReplicas by percent", 10, 2, 5, least=5, down=["Percent 100 60"]),
    limited("down by pods", 10, 2, 5, down=["Pods 5 60"]),
    limited("down by percent", 10, 5, 5, down=["Percent 50 60"]),
    limited("up to maxReplicas, after changes", 100, 500, 200, most=200, up=["Pods 300 60"], added=THREE),
    limited(
        "up by percent to maxReplicas, after changes", 100, 500, 200, most=200, up=["Percent 10000 60"], added=THREE
    ),
    limited("up, more was added than the policy allows", 100, 500, 100, up=["Pods 5 120"], added=THREE),
    limited("up by pods, after changes", 100, 500, 235, up=["Pods 150 120"], added=THREE),
    limited("up by percent, after changes", 100, 500, 255, up=["Percent 200 120"], added=THREE),
    limited("up after both", 6, 24, 16, up=["Percent 300 300"], added=[(60, 4)], removed=[(60, 2)]),
    limited("down with the defaults, after changes", 10, 5, 5, removed=THREE),
    limited("down to minReplicas, after changes", 100, 0, 1, down=["Pods 115 120"], removed=THREE),
    limited("down to a larger minReplicas", 100, 0, 5, least=5, down=["Pods 130 120"], removed=THREE),
    limited("down by all percent", 100, 2, 5, least=5, down=["Percent 100 120"], removed=THREE),
    limited("down, more was removed than the policy allows", 100, 2, 100, down=["Pods 5 120"], removed=THREE),
    limited(
        "down by percent, after changes", 100, 0, 56, down=["Percent 50 120"], removed=[(100, 2), (60, 4), (20, 6)]
    ),
    limited("down after both", 10, 1, 6, down=["Percent 50 180"], added=[(60, 2)], removed=[(60, 4)]),
    limited("down, prevented", 100, 0, 100, down=["Percent 10 120"], removed=[(100, 10), (60, 10), (20, 10)]),
    limited("down below zero", 10, 5, 5, down=["Percent 1000 120"], removed=[(100, 10), (60, 10), (20, 10)]),
    limited("changes beyond the period, up", 100, 200, 200, up=["Pods 1000 60"], added=FOUR),
    limited("changes within one of two periods, up", 100, 200, 200, up=["Pods 1000 120", "Percent 100 60"], added=FOUR),
    limited("changes beyond the period, down", 100, 5, 5, down=["Pods 1000 60"], removed=FOUR),
    limited("CalculateScaleUpLimit", 1, 1000, 2, up=["Pods 2 60", "Percent 50 60"], select="Min"),
    limited("CalculateScaleDownLimit", 5, 1, 3, down=["Pods 2 60", "Percent 50 60"], select="Min"),
    limited("down by percent is cut off", 5, 0, 2, down=["Percent 50 60"]),
    limited("a change as old as the period no longer counts", 10, 99, 15, up=["Pods 5 60"], added=[(60, 5)]),
    limited(
        "a change takes the place of one that is outdated in its own direction",
        *(10, 99, 13),
        up=["Pods 1 300"],
        down=["Pods 100 15"],
        removed=[(200, 3), (100, 2)],
    ),
    limited("disabled, up", 5, 9, 5, select="Disabled"),
    limited("disabled, down", 5, 1, 5, select="Disabled"),
]


@pytest.mark.parametrize("case", LIMITS, ids=lambda case: case.name)
def test_policies_limit_a_change_by_what_changed_in_their_periods(case: Case) -> None:
    """The table of TestScalingWithRules."""
    assert desired(case) == case.desired


def waiting(
    name: str, replicas: int, to: int, result: int, recommended: Sequence[tuple[float, int]], up: int = 0, down: int = 0
) -> Case:
    behavior = {
        "scaleUp": {**rules("Pods 1000 15", window=up), **EXACT},
        "scaleDown": {**rules(window=down), **EXACT},
    }
    return Case(name, hpa(behavior=behavior), replicas, (1000.0 * to,), result, recommended=recommended)


WINDOWS = [
    waiting("down without records", 100, 5, 5, []),
    waiting("down to the highest", 100, 3, 5, [(120, 4), (60, 5)], down=180),
    waiting("up to the lowest", 1, 7, 4, [(120, 4), (60, 5)], up=300),
    waiting("down is not delayed by the window of up", 100, 3, 3, [(120, 1), (60, 2)], up=300),
    waiting("up is not delayed by the window of down", 1, 3, 3, [(120, 4), (60, 5)], down=300),
    waiting("down with old records", 100, 3, 3, [(600, 10), (540, 9)]),
    waiting("up with old records", 1, 100, 100, [(600, 10), (540, 9)]),
    waiting("down with old and new records", 100, 3, 5, [(600, 10), (60, 4), (120, 5), (540, 9)], down=180),
    waiting("up with old and new records", 1, 100, 5, [(6000, 10), (60, 6), (120, 5), (180, 9)], up=300),
    waiting("up with a short window", 1, 7, 4, [(30, 4)], up=45),
    waiting("both, and not up while it falls", 2, 1, 2, [(6000, 2), (180, 3)], up=300, down=300),
    waiting("both, and not down while it rises", 2, 3, 2, [(6000, 2), (180, 1)], up=300, down=300),
]


@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: case.name)
def test_a_window_takes_the_recommendation_of_it_that_changes_least(case: Case) -> None:
    """The table of TestNormalizeDesiredReplicasWithBehavior."""
    assert desired(case) == case.desired


@pytest.mark.parametrize(
    ("name", "to", "result", "recommended"),
    [
        ("empty log", 5, 5, []),
        ("stabilize", 3, 5, [(120, 4), (60, 5)]),
        ("no stabilize", 3, 3, [(120, 1), (60, 2)]),
        ("no stabilize, old recommendations", 3, 3, [(600, 10), (540, 9)]),
        ("stabilize, old recommendations", 3, 5, [(600, 10), (60, 4), (120, 5), (540, 9)]),
    ],
)
def test_without_behavior_the_highest_of_five_minutes_counts(
    name: str, to: int, result: int, recommended: Sequence[tuple[float, int]]
) -> None:
    """The table of TestNormalizeDesiredReplicas."""
    assert desired(Case(name, hpa(), 20, (1000.0 * to,), result, recommended=recommended)) == result


def test_after_a_restart_the_current_replicas_are_the_first_recommendation() -> None:
    """ScaleDownStabilizeInitialSize."""
    controllers = Controllers([hpa()])
    one, five = np.array([1]), np.array([5])

    wanted = [controllers.sync(now, 1000.0 * one[np.newaxis], five, five, five)[0] for now in (0.0, 299.0, 301.0)]

    assert wanted == [5, 5, 1]


def test_a_controller_that_took_the_last_replica_away_brings_it_back() -> None:
    controllers = Controllers([hpa(least=0, behavior={"scaleDown": rules(), "scaleUp": rules()})])
    one, none = np.array([1]), np.array([0])

    assert controllers.sync(0.0, np.zeros((1, 1)), one, one, one)[0] == 0
    assert controllers.sync(15.0, np.full((1, 1), 2000.0), none, none, none)[0] == 2
    assert not controllers.scaled_to_zero[0]


def test_what_was_asked_for_while_scaling_was_disabled_is_not_remembered() -> None:
    controllers = Controllers([hpa()])
    none, two = np.array([0]), np.array([2])

    assert controllers.sync(0.0, np.full((1, 1), 9000.0), none, none, none)[0] == 0
    assert controllers.sync(15.0, np.full((1, 1), 1000.0), two, two, two)[0] == 1
