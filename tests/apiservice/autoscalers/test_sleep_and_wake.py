"""When targets of HPAs are scaled to zero and back, and in which order what is written."""

import pytest

from adapter.metrics.aggregation import MetricValue
from adapter.settings.models import AutoscalerChanges
from apiservice.autoscalers.annotations import ACTIVATION, ASLEEP_SINCE, COOLDOWN, SCALE_TO_ZERO
from apiservice.autoscalers.changes import LOOK_SECONDS
from tests.support.kubernetes.activating import (
    ASKS,
    COOLDOWN_SECONDS,
    HPA,
    ORDERS,
    SCALE,
    SLEEP,
    UNKNOWN,
    WAKE,
    World,
    lag,
)
from tests.support.kubernetes.fakes import FakeMetrics
from tests.support.kubernetes.hpas import LAG, custom, external, hpa


def test_a_target_without_work_for_the_cooldown_is_scaled_to_zero_after_it_was_marked(world: World) -> None:
    world.look()
    world.look_for(COOLDOWN_SECONDS - 10)
    assert world.writes() == []

    world.look(10)

    assert world.writes() == SLEEP
    assert world.posted() == ["ScaledToZero"]


def test_at_the_first_message_it_is_scaled_up_before_the_mark_is_removed(world: World) -> None:
    world.sleep()
    world.metrics.answers = {LAG: lag(1)}

    world.look()

    assert world.writes() == WAKE
    assert world.posted() == ["ScaledFromZero"]


def test_it_wakes_to_the_minimum_of_its_hpa(world: World) -> None:
    world.sleep()
    world.change(minReplicas=3)
    world.metrics.answers = {LAG: lag(1)}

    world.look()

    assert world.replicas == 3


def test_what_waits_up_to_the_activation_neither_keeps_awake_nor_wakes(world: World) -> None:
    world.annotate(activation="100")
    world.metrics.answers = {LAG: lag(100)}
    world.sleep()
    world.look(10)
    assert world.writes() == []

    world.metrics.answers = {LAG: lag(101)}
    world.look(10)

    assert world.writes() == WAKE


@pytest.mark.parametrize("interruption", [lag(1), UNKNOWN])
def test_work_and_the_unknown_begin_the_cooldown_again(
    world: World, interruption: tuple[MetricValue, ...] | Exception
) -> None:
    world.look()
    world.look_for(COOLDOWN_SECONDS - 10)
    world.metrics.answers = {LAG: interruption}
    world.look(10)
    world.metrics.answers = {LAG: lag(0)}
    world.look(10)
    world.look_for(COOLDOWN_SECONDS - 10)
    assert world.writes() == []

    world.look(10)

    assert world.writes() == SLEEP


def test_the_cooldown_counts_from_the_hpas_own_last_scaling(world: World) -> None:
    world.look()
    world.look_for(COOLDOWN_SECONDS - 10)
    world.objects.kept[HPA]["status"]["lastScaleTime"] = "2026-11-24T05:00:00Z"
    world.look(10)
    world.look_for(COOLDOWN_SECONDS - 10)
    assert world.writes() == []

    world.look(10)

    assert world.writes() == SLEEP


def test_a_time_in_which_nobody_looked_does_not_count(world: World) -> None:
    world.look()
    world.look(COOLDOWN_SECONDS * 2)

    assert world.writes() == []


def test_the_unknown_never_wakes(world: World) -> None:
    world.sleep()
    world.metrics.answers = {LAG: UNKNOWN}

    world.look_for(600)

    assert world.writes() == []


def test_a_fallback_is_no_known_value_and_never_wakes(world: World) -> None:
    world.sleep()
    world.metrics.answers, world.metrics.is_fallback = {LAG: lag(6)}, True

    world.look_for(600)

    assert world.writes() == []


def test_one_metric_with_work_wakes_although_another_is_unknown(world: World) -> None:
    world.change(metrics=[ORDERS, external("records-lag-max", group="billing", topic="orders")])
    names = ("kafka_consumergroup_lag", "records-lag-max")
    world.metrics = FakeMetrics({LAG: lag(0), "records-lag-max": lag(0)}, names=names)
    world.sleep()
    world.metrics.answers = {LAG: UNKNOWN, "records-lag-max": lag(1)}

    world.look()

    assert world.writes() == WAKE


def test_values_are_read_for_the_hpas_own_namespace_and_selector(world: World) -> None:
    world.look()

    ((name, requirements),) = world.metrics.asked
    assert (name, [(each.key, *each.values) for each in requirements]) == (
        LAG,
        [("group", "billing"), ("topic", "orders")],
    )
    assert (world.metrics.namespaces, world.metrics.lists) == (["shop"], [False])


def test_an_object_metric_wakes_as_an_external_one(world: World) -> None:
    world.change(metrics=[custom("Object", ORDERS)])
    world.sleep()
    world.metrics.answers = {LAG: lag(1)}

    world.look()

    assert world.writes() == WAKE


def test_what_somebody_else_scaled_to_zero_is_left_alone(world: World) -> None:
    world.scale(0)
    world.look_for(600)
    assert world.objects.reads == []
    world.metrics.answers = {LAG: lag(100)}
    world.look_for(600)
    # The status is late: it still shows a replica.
    world.metrics.answers = {LAG: lag(0)}
    world.show_replicas(1)
    world.look_for(600)

    assert world.writes() == []
    assert not world.is_marked


def test_the_annotation_is_a_number_with_at_most_three_decimals(world: World) -> None:
    world.annotate(activation="0.5")
    world.metrics.answers = {LAG: (MetricValue({}, 500, 0.0),)}
    world.sleep()
    world.metrics.answers = {LAG: (MetricValue({}, 501, 0.0),)}

    world.look()

    assert world.writes() == WAKE


def test_the_names_of_the_annotations_have_the_prefix_of_the_project() -> None:
    assert {SCALE_TO_ZERO, COOLDOWN, ACTIVATION, ASLEEP_SINCE} == {
        f"kafka-lag-adapter/{name}" for name in ("scale-to-zero", "cooldown", "activation", "asleep-since")
    }


def test_what_must_wake_comes_before_what_may_sleep(world: World) -> None:
    waiting = hpa("waiting", external("records-lag-max", group="billing", topic="orders"), currentReplicas=0)
    waiting["metadata"] |= {"annotations": {**ASKS, ASLEEP_SINCE: "2026-11-24T05:00:00Z"}, "resourceVersion": "1"}
    waiting["spec"]["minReplicas"] = 1
    world.others = [waiting]
    world.objects.put(HPA.replace("consumer", "waiting"), waiting)
    world.objects.put(SCALE.replace("consumer", "waiting"), {"metadata": {}, "spec": {"replicas": 0}})
    world.metrics = FakeMetrics({LAG: lag(0), "records-lag-max": lag(0)}, names=(LAG, "records-lag-max"))
    world.look()
    world.look_for(COOLDOWN_SECONDS - 10)
    world.metrics.answers = {LAG: lag(0), "records-lag-max": lag(1)}

    world.look(10)

    assert world.writes() == [*WAKE, *SLEEP]


def test_without_permission_by_the_settings_nothing_is_asked_or_reported(world: World) -> None:
    world.allowed = AutoscalerChanges()

    world.look_for(600)

    assert (world.objects.written, world.metrics.asked, world.conditions.current) == ([], [], ())
    assert not world.changes.is_needed


def test_new_values_are_looked_at_at_once_and_old_ones_once_in_ten_seconds(world: World) -> None:
    world.look()
    asked = len(world.metrics.asked)
    for _ in range(int(LOOK_SECONDS)):
        world.clock.seconds += 1
        world.changes.turn()
    assert len(world.metrics.asked) == asked + 1

    world.metrics.version += 1
    world.changes.turn()

    assert len(world.metrics.asked) == asked + 2
