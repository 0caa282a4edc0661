"""Others that change the same objects, missing rights and a silent API server."""

import pytest

from adapter.conditions import AUTOSCALER_CHANGES
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.autoscalers.activator import PAUSE_SECONDS
from apiservice.autoscalers.annotations import ASLEEP_SINCE
from tests.support.kubernetes.activating import ASKS, COOLDOWN_SECONDS, ORDERS, SCALE, SLEEP, World, lag
from tests.support.kubernetes.hpas import LAG, hpa


def test_the_status_of_an_object_that_changes_during_a_write_is_no_conflict(world: World) -> None:
    world.look()
    world.look_for(COOLDOWN_SECONDS - 10)
    world.objects.before_write = [lambda: None, lambda: world.objects.put(SCALE, world.objects.kept[SCALE])]

    world.look(10)

    assert world.writes() == SLEEP


def test_a_target_that_is_scaled_during_the_write_stays_as_it_is(world: World) -> None:
    world.look()
    world.look_for(COOLDOWN_SECONDS - 10)
    world.objects.before_write = [lambda: None, lambda: world.scale(5)]

    world.look(10)

    assert world.replicas == 5
    assert not world.is_marked
    assert world.posted() == ["ScaleToZeroConflict"]


def test_after_three_conflicts_in_a_row_it_is_left_alone_for_ten_minutes(world: World) -> None:
    for _ in range(3):
        world.look()
        world.look_for(COOLDOWN_SECONDS)
        assert world.replicas == 0
        world.scale(2)  # as GitOps does
        world.look()
        assert not world.is_marked
    assert world.posted() == ["ScaledToZero", "ScaleToZeroConflict"] * 3
    world.objects.written.clear()

    world.look_for(PAUSE_SECONDS - 10)
    assert world.writes() == []
    world.look_for(COOLDOWN_SECONDS + 20)

    assert world.writes() == SLEEP


def test_conflicts_before_a_regular_sleep_do_not_count(world: World) -> None:
    for _ in range(2):
        world.look()
        world.look_for(COOLDOWN_SECONDS)
        world.scale(2)
        world.look()
    world.sleep()
    world.metrics.answers = {LAG: lag(1)}
    world.look()
    world.metrics.answers = {LAG: lag(0)}
    world.show_replicas(1)
    world.look()
    world.look_for(COOLDOWN_SECONDS)
    world.scale(2)
    world.look()
    world.objects.written.clear()

    world.look_for(COOLDOWN_SECONDS + 10)

    assert world.writes() == SLEEP


def test_missing_rights_are_said_once_and_writing_succeeds_once_they_are_there(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.objects.refusing = {"/scale": ClusterUnreachable("the Kubernetes API server answered 403: forbidden", 403)}
    world.look_for(600)
    (condition,) = world.conditions.current
    assert (condition.reason, world.writes()) == ("Forbidden", [])
    assert "the component `autoscalers` contains the right to" in condition.message
    assert len(caplog.records) == 1

    world.objects.refusing = {}
    world.look_for(COOLDOWN_SECONDS)

    assert world.writes() == SLEEP
    assert world.conditions.current[0].reason == AUTOSCALER_CHANGES.reason


def test_a_silent_api_server_is_asked_once_in_a_round(world: World) -> None:
    world.sleep()
    world.others = [hpa(f"other-{number}", ORDERS) for number in range(50)]
    for each in world.others:
        each["metadata"] |= {"annotations": {**ASKS, ASLEEP_SINCE: "2026-11-24T05:00:00Z"}, "resourceVersion": "1"}
        each["spec"]["minReplicas"] = 1
    world.objects.refusing = {"/": ClusterUnreachable("the Kubernetes API server cannot be reached")}
    world.metrics.answers = {LAG: lag(1)}
    world.objects.reads.clear()

    world.look()

    assert len(world.objects.reads) == 1
