"""Processes that end between two writes, leaders that change, and a watch that is late."""

from collections.abc import Callable

import pytest

from adapter.settings.models import AutoscalerChanges
from apiservice.autoscalers.annotations import ASLEEP_BY
from tests.support.kubernetes.activating import COOLDOWN_SECONDS, HPA, SLEEP, WAKE, World, lag
from tests.support.kubernetes.hpas import LAG


class Killed(BaseException):
    """The end of the process at a write."""


def kill() -> None:
    raise Killed


def test_a_process_that_is_killed_between_mark_and_scale_leaves_the_target_awake(world: World) -> None:
    world.look()
    world.look_for(COOLDOWN_SECONDS - 10)
    world.objects.before_write = [lambda: None, kill]
    with pytest.raises(Killed):
        world.look(10)
    assert (world.replicas, world.is_marked) == (2, True)

    world.begin()
    world.look()
    assert (world.replicas, world.is_marked) == (2, False)
    world.look()
    world.look_for(COOLDOWN_SECONDS)

    assert (world.replicas, world.is_marked) == (0, True)


def test_a_process_that_is_killed_between_scaling_up_and_the_mark_leaves_it_to_the_next(world: World) -> None:
    world.sleep()
    world.metrics.answers = {LAG: lag(1)}
    world.objects.before_write = [lambda: None, kill]
    with pytest.raises(Killed):
        world.look()
    assert (world.replicas, world.is_marked) == (1, True)

    world.begin()
    world.look()

    assert (world.replicas, world.is_marked) == (1, False)


def test_a_new_process_wakes_what_another_put_to_sleep(world: World) -> None:
    world.sleep()
    world.begin()
    world.metrics.answers = {LAG: lag(1)}

    world.look()

    assert world.writes() == WAKE


def test_only_the_leader_writes_and_the_next_one_has_counted_along(world: World) -> None:
    world.is_leader = False
    world.look()
    world.look_for(COOLDOWN_SECONDS * 2)
    assert (world.writes(), world.posted()) == ([], [])

    world.is_leader = True
    world.look(10)

    assert world.writes() == SLEEP


def test_what_another_leader_has_woken_is_not_woken_again(world: World) -> None:
    world.sleep()
    world.is_leader = False
    world.look()
    world.scale(1)
    world.annotate(asleep_since=None)
    world.look()
    world.is_leader = True
    world.scale(0)
    world.metrics.answers = {LAG: lag(1)}

    world.look()

    assert world.writes() == []


def test_nothing_is_written_twice_while_the_watch_is_late(world: World) -> None:
    world.look()
    world.look_for(COOLDOWN_SECONDS - 10)
    world.look(10)
    world.is_shown = False
    world.look_for(600)

    assert world.writes() == SLEEP


def test_nothing_is_woken_twice_while_the_watch_is_late(world: World) -> None:
    world.sleep()
    world.metrics.answers = {LAG: lag(1)}
    world.look()
    world.is_shown = False
    world.look_for(600)

    assert world.writes() == WAKE


def test_a_changed_hpa_is_not_put_to_sleep_by_what_it_was(world: World) -> None:
    world.look()
    world.look_for(COOLDOWN_SECONDS - 10)
    world.is_shown = False
    world.annotate(scale_to_zero="false")

    world.look(10)

    assert world.writes() == []


def test_what_another_adapter_put_to_sleep_is_woken_by_work_and_by_nothing_else(world: World) -> None:
    """Such as one with other settings in another namespace."""
    world.owner, allowed = "blue/lag", world.allowed
    world.begin()
    world.sleep()
    assert world.objects.kept[HPA]["metadata"]["annotations"][ASLEEP_BY] == "blue/lag"

    world.owner, world.allowed = "green/lag", AutoscalerChanges()
    world.begin()
    world.look_for(60)
    assert (world.objects.written, world.changes.is_needed) == ([], False)

    world.allowed, world.metrics.answers = allowed, {LAG: lag(1)}
    world.look()
    assert (world.replicas, world.is_marked) == (1, False)
    assert ASLEEP_BY not in world.objects.kept[HPA]["metadata"]["annotations"]


def without_annotations(world: World) -> None:
    world.annotate(scale_to_zero=None, cooldown=None, asleep_since=None, asleep_by=None)


def deleted(world: World) -> None:
    del world.objects.kept[HPA]


def without_marks_and_wish(world: World) -> None:
    world.annotate(asleep_since=None, asleep_by=None)
    world.look(10)
    world.annotate(scale_to_zero="false")


@pytest.mark.parametrize("act", [without_annotations, deleted, without_marks_and_wish])
def test_what_another_adapter_put_to_sleep_stays_so_although_its_hpa_asks_for_nothing_more(
    world: World, act: Callable[[World], None]
) -> None:
    """Also for an adapter that would have woken it for work."""
    world.owner = "blue/lag"
    world.begin()
    world.sleep()
    world.owner = "green/lag"
    world.begin()
    world.look(10)
    act(world)

    world.look(10)
    world.look(10)

    assert (world.objects.written, world.replicas) == ([], 0)


def test_an_adapter_wakes_what_it_put_to_sleep_itself_when_the_settings_no_longer_allow_it(world: World) -> None:
    world.owner = "blue/lag"
    world.begin()
    world.sleep()
    world.allowed = AutoscalerChanges()
    world.begin()
    world.look(10)
    world.look(10)

    assert (world.replicas, world.is_marked) == (1, False)
