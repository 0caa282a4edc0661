"""What an HPA controller makes of the values now, one step after the other."""

from typing import Any

import pytest

from adapter.metrics.definitions import SERVED
from apiservice.autoscalers.arithmetic import Arithmetic, simulated
from apiservice.autoscalers.autoscaler import Autoscaler, autoscaler_of
from tests.support.hpas import rules
from tests.support.kubernetes.hpas import custom, external, hpa

LAG = external(group="billing", topic="orders")


def autoscaler(
    replicas: int, *metrics: dict[str, Any], behavior: dict[str, Any] | None = None, **status: object
) -> Autoscaler:
    """From 0 to 9 replicas; a target of 1000 messages for each."""
    fields: dict[str, Any] = {"currentReplicas": replicas, **status}
    document = hpa("billing", *(metrics or (LAG,)), **fields)
    document["spec"]["behavior"] = behavior
    made = autoscaler_of(document, SERVED)
    assert made is not None
    return made


def steps(lag: int | None, replicas: int, *, behavior: dict[str, Any] | None = None, **status: object) -> Arithmetic:
    made = autoscaler(replicas, behavior=behavior, **status)
    found = simulated(made, dict.fromkeys(made.metrics, None if lag is None else 1000 * lag))
    assert found is not None
    return found


def test_a_lag_asks_for_replicas_within_policies_and_range() -> None:
    assert steps(12_000, 1) == Arithmetic(ratio=12.0, asked=12, by_policies=4, by_range=4, desired=4)
    assert steps(12_000, 6) == Arithmetic(ratio=2.0, asked=12, by_policies=12, by_range=9, desired=9)


def test_policies_of_its_behavior_bound_a_step() -> None:
    behavior = {"scaleUp": rules("Pods 1 60")}

    assert steps(12_000, 2, behavior=behavior) == Arithmetic(6.0, asked=12, by_policies=3, by_range=3, desired=3)


def test_within_the_tolerance_nothing_changes() -> None:
    assert steps(5_400, 5).asked == 5
    assert steps(5_600, 5).asked == 6


def test_the_window_keeps_what_the_policies_would_take_away() -> None:
    assert steps(2_000, 5) == Arithmetic(ratio=0.4, asked=2, by_policies=2, by_range=2, desired=5)
    assert steps(2_000, 5, behavior={"scaleDown": rules("Percent 100 15", window=0)}).desired == 2


def test_a_value_that_is_refused_keeps_the_replicas() -> None:
    assert steps(None, 5) == Arithmetic(ratio=None, asked=5, by_policies=5, by_range=5, desired=5)


@pytest.mark.parametrize(("conditions", "desired"), [((), 0), (({"type": "ScaledToZero", "status": "True"},), 1)])
def test_at_zero_it_wakes_only_what_the_controller_itself_put_to_sleep(conditions: object, desired: int) -> None:
    assert steps(500, 0, conditions=conditions).desired == desired


def test_an_hpa_with_pods_metrics_alone_is_not_followed() -> None:
    assert simulated(autoscaler(1, custom("Pods", LAG)), {}) is None
