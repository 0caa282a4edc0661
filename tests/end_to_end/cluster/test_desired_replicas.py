"""KEDA's documented scenarios for its Kafka scaler, with native HPAs on numbers of replicas."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from local.adapter import Adapter
from local.kafka.broker import Kafka
from local.kafka.tools import commit
from local.kubernetes.control_plane import ControlPlane
from local.processes import wait_until
from tests.support.real.groups_to_read import path
from tests.support.real.scaled_groups import (
    ALL,
    BEYOND_THE_END,
    FALLBACK,
    MESSAGES,
    ORDERS,
    SCALED,
    STUCK,
    TOPICS,
    WAKING,
    WITHIN_TOLERANCE,
    Scaled,
)

PLACE = "scaled"
SECONDS = 180.0


@pytest.fixture(scope="module", autouse=True)
def hpas(control_plane: ControlPlane, adapter: Adapter, one_broker: Kafka) -> Iterator[None]:
    """All at once, because each waits for its adapter and its controller more than it computes."""
    assert adapter.is_live()
    commit(one_broker, FALLBACK.group, BEYOND_THE_END)
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}
    deployments, scalers = zip(*(one.manifests(PLACE) for one in ALL), strict=True)
    control_plane.apply([place, *deployments])
    # Without pods, an HPA does not compare its metric with the number of replicas.
    wait_until(lambda: all(has_pods(control_plane, one) for one in ALL), "the first pods of every group", SECONDS)
    control_plane.apply(scalers)
    yield
    control_plane.delete([place])
    commit(one_broker, FALLBACK.group, dict.fromkeys(BEYOND_THE_END, 0))


def deployment(plane: ControlPlane, one: Scaled) -> Any:  # noqa: ANN401 - JSON
    return plane.get(f"/apis/apps/v1/namespaces/{PLACE}/deployments/{one.name}")


def has_pods(plane: ControlPlane, one: Scaled) -> bool:
    return bool(deployment(plane, one)["status"].get("replicas") == one.at_first)


def replicas(plane: ControlPlane, one: Scaled) -> int:
    return int(deployment(plane, one)["spec"]["replicas"])


def hpa(plane: ControlPlane, one: Scaled) -> Any:  # noqa: ANN401 - JSON
    return plane.get(f"/apis/autoscaling/v2/namespaces/{PLACE}/horizontalpodautoscalers/{one.name}")


def number(plane: ControlPlane, one: Scaled) -> str:
    """What kube-apiserver serves."""
    status, body = plane.raw(path(PLACE, "kafka_consumergroup_replicas", f"group%3D{one.group}"))
    assert status == 200, body
    (item,) = json.loads(body)["items"]
    return str(item["value"])


def wait_for(plane: ControlPlane, one: Scaled, wanted: int) -> None:
    wait_until(lambda: replicas(plane, one) == wanted, f"{wanted} replicas of {one.name}", SECONDS)


@pytest.mark.parametrize("one", SCALED, ids=[one.name for one in SCALED])
def test_the_hpa_reaches_the_replicas_of(control_plane: ControlPlane, one: Scaled) -> None:
    wait_for(control_plane, one, one.replicas)

    assert number(control_plane, one) == str(one.replicas)


def test_without_a_tolerance_of_its_own_an_hpa_ignores_the_last_of_twelve_replicas(control_plane: ControlPlane) -> None:
    def average() -> str:
        (metric,) = hpa(control_plane, WITHIN_TOLERANCE)["status"].get("currentMetrics") or [{}]
        return str(metric.get("external", {}).get("current", {}).get("averageValue"))

    wait_until(lambda: average() == "1091m", "the HPA to have read 12 for 11 replicas", SECONDS)

    assert number(control_plane, WITHIN_TOLERANCE) == "12"
    assert replicas(control_plane, WITHIN_TOLERANCE) == 11


def test_lag_above_the_activation_wakes_a_group_and_it_sleeps_again_after_the_window(
    control_plane: ControlPlane, one_broker: Kafka
) -> None:
    wait_for(control_plane, WAKING, 0)
    commit(one_broker, WAKING.group, {(ORDERS, number): 0 for number in range(10)})
    wait_for(control_plane, WAKING, 3)
    commit(one_broker, WAKING.group, {(ORDERS, number): MESSAGES for number in range(TOPICS[ORDERS])})
    wait_for(control_plane, WAKING, 0)

    assert number(control_plane, WAKING) == "0"


def test_partitions_that_are_stuck_ask_for_no_replicas(control_plane: ControlPlane, one_broker: Kafka) -> None:
    """A lag of 110 stands still in eleven partitions, which would be worth as many replicas as there are partitions."""
    offsets = itertools.cycle((1, 0))

    def is_reached() -> bool:
        """The partition moves on, or it would be stuck as well."""
        commit(one_broker, STUCK.group, {(ORDERS, 0): next(offsets)})
        return (replicas(control_plane, STUCK), number(control_plane, STUCK)) == (STUCK.replicas, "3")

    wait_until(is_reached, "3 replicas for the partition that moves", SECONDS)


def test_a_fallback_is_said_in_a_condition(adapter: Adapter, control_plane: ControlPlane, one_broker: Kafka) -> None:
    def is_used() -> bool:
        return b"warn: fallbacks: Used" in adapter.get_plain("/readyz?verbose")[1]

    wait_until(is_used, "the condition", SECONDS)
    commit(one_broker, FALLBACK.group, dict.fromkeys(BEYOND_THE_END, 0))
    wait_until(lambda: number(control_plane, FALLBACK) == "3", "the lag's own number", SECONDS)

    wait_until(lambda: not is_used(), "its end", SECONDS)
    commit(one_broker, FALLBACK.group, BEYOND_THE_END)
    wait_until(is_used, "the fallback, as the other tests find it", SECONDS)
