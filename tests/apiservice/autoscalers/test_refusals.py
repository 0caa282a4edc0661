"""HPAs that ask for scale to zero and do not get it, and what wakes when nothing could wake it any more."""

from collections.abc import Callable
from typing import Any

import pytest

from adapter.settings.models import AutoscalerChanges
from apiservice.autoscalers.changes import LOOK_SECONDS
from tests.support.kubernetes.activating import (
    CPU,
    HPA,
    ORDERS,
    SCALE,
    WAKE,
    World,
    lag,
)
from tests.support.kubernetes.hpas import LAG, custom, external, hpa

LEAD = "kafka_consumergroup_lead_min"
UNCOMMITTED = "kafka_consumergroup_uncommitted_partitions"


def refused(world: World) -> None:
    """Says so once, in an Event and in the log, and changes nothing."""
    world.look_for(600)
    assert world.writes() == []
    assert world.posted() == ["ScaleToZeroRefused"]


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"scale_to_zero": "yes"}, 'scale-to-zero is \'yes\'; must be "true" or "false"'),
        ({"cooldown": "5 minutes"}, "cooldown is '5 minutes'; must be a duration"),
        ({"cooldown": "25h"}, "cooldown is '25h'; must be at most 24h"),
        ({"activation": "-1"}, "activation is '-1'; must be a number"),
        ({"activation": "1e3"}, "activation is '1e3'; must be a number"),
    ],
)
def test_a_bad_annotation_is_reported_once_and_nothing_is_done(
    world: World, annotations: dict[str, str], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.annotate(**annotations)

    refused(world)

    assert [words in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"minReplicas": 0}, "the HPA itself scales to zero"),
        ({"metrics": [ORDERS, CPU]}, "not served by this adapter"),
        ({"metrics": [CPU]}, "has no metric that is served by this adapter"),
        ({"metrics": [custom("Pods", ORDERS)]}, "no value without pods"),
        ({"metrics": [ORDERS, external(LEAD, group="billing")]}, f"{LEAD} is not 0 while nothing waits"),
        ({"metrics": [external(UNCOMMITTED, group="billing")]}, f"{UNCOMMITTED} is not 0 while nothing waits"),
        ({"metrics": [ORDERS, external(topic="orders")]}, "names no group"),
        ({"metrics": [external(LAG, {"key": "group", "operator": "Exists"})]}, "names no group"),
        (
            {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "consumer"}},
            "neither a Deployment",
        ),
        (
            {"scaleTargetRef": {"apiVersion": "other.example/v1", "kind": "Deployment", "name": "consumer"}},
            "neither a Deployment",
        ),
    ],
)
def test_an_hpa_that_cannot_be_scaled_to_zero_is_refused_with_a_reason(
    world: World, spec: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.change(**spec)

    refused(world)

    assert [words in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize("metrics", [[CPU], []], ids=["of others", "none"])
def test_what_sleeps_behind_an_hpa_that_lost_its_metrics_of_ours_is_woken_after_a_restart(
    world: World, metrics: list[dict[str, Any]]
) -> None:
    world.sleep()
    world.change(metrics=metrics)
    world.begin()

    world.look()

    assert world.writes() == WAKE


def other_hpa(*owners: dict[str, str]) -> dict[str, Any]:
    other = hpa("other", CPU)
    other["spec"]["scaleTargetRef"]["name"] = "consumer"
    other["metadata"]["ownerReferences"] = [*owners]
    return other


@pytest.mark.parametrize(
    ("owner", "words"),
    [([], "is also scaled by HPA other"), ([{"kind": "ScaledObject", "name": "old"}], "by KEDA's ScaledObject old")],
)
def test_a_target_that_others_scale_as_well_is_left_to_them(
    world: World, owner: list[dict[str, str]], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.others = [other_hpa(*owner)]

    refused(world)

    assert [words in record.getMessage() for record in caplog.records] == [True]


def test_a_target_of_the_same_name_in_another_namespace_is_another_target(world: World) -> None:
    world.others = [other_hpa()]
    world.others[0]["metadata"]["namespace"] = "elsewhere"

    world.sleep()


def removed_annotation(world: World) -> None:
    world.annotate(scale_to_zero=None)


def removed_annotations(world: World) -> None:
    world.annotate(scale_to_zero=None, cooldown=None, asleep_since=None)


def disabled(world: World) -> None:
    world.allowed = AutoscalerChanges()


def bad_value(world: World) -> None:
    world.annotate(activation="x")


def foreign_metric(world: World) -> None:
    world.change(metrics=[CPU])


def rival(world: World) -> None:
    world.others = [other_hpa()]


def deleted_hpa(world: World) -> None:
    del world.objects.kept[HPA]


@pytest.mark.parametrize(
    "act",
    [removed_annotation, removed_annotations, disabled, bad_value, foreign_metric, rival, deleted_hpa],
)
def test_what_nothing_could_wake_any_more_is_woken_at_once(world: World, act: Callable[[World], None]) -> None:
    world.sleep()
    act(world)

    world.look(LOOK_SECONDS)
    world.look()

    assert world.replicas == 1
    assert HPA not in world.objects.kept or not world.is_marked
    assert [each.reason for each in world.conditions.current if world.allowed.scale_to_zero] in ([], ["Written"])


def test_a_former_target_is_woken_when_the_hpa_gets_another_one(world: World) -> None:
    world.sleep()
    world.change(scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "next"})

    world.look()

    assert world.replicas == 1


def test_a_mark_that_somebody_removes_does_not_keep_the_target_asleep(world: World) -> None:
    world.sleep()
    world.annotate(asleep_since=None)
    world.look(10)
    assert world.writes() == []
    world.metrics.answers = {LAG: lag(1)}

    world.look(10)

    assert world.replicas == 1


@pytest.mark.parametrize(("replicas", "work"), [(1, 0), (0, 1)])
def test_a_target_that_is_deleted_while_it_sleeps_leaves_no_mark(world: World, replicas: int, work: int) -> None:
    world.sleep()
    del world.objects.kept[SCALE]
    world.show_replicas(replicas)
    world.metrics.answers = {LAG: lag(work)}

    world.look()

    assert world.writes() == [("asleep-since", "removed")]
