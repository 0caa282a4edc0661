"""When targets of HPAs are scaled to zero and back, and in which order what is written."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from adapter.conditions import AUTOSCALER_CHANGES, Conditions
from adapter.metrics.aggregation import MetricValue
from adapter.metrics.definitions import SERVED
from adapter.metrics.problems import ValueUnavailable
from adapter.metrics.query import Metrics
from adapter.settings.models import AutoscalerChanges
from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.autoscalers.activator import PAUSE_SECONDS
from apiservice.autoscalers.annotations import ACTIVATION, ASLEEP_SINCE, COOLDOWN, SCALE_TO_ZERO
from apiservice.autoscalers.changes import LOOK_SECONDS, Changes
from apiservice.autoscalers.followed import Autoscalers
from apiservice.autoscalers.hpa_writes import HpaWrites
from apiservice.cluster_api.objects import ClusterObjects
from apiservice.cluster_api.scale import scale_path
from apiservice.events import Events
from tests.support.kubernetes.fake_objects import FakeObjects
from tests.support.kubernetes.fakes import FakeMetrics, FixedClock
from tests.support.kubernetes.hpas import LAG, custom, external, hpa

COOLDOWN_SECONDS = 60.0
HPA = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/consumer"
SCALE = scale_path("shop", "deployments", "consumer")
ORDERS = external(group="billing", topic="orders")
UNKNOWN = ValueUnavailable("broker 1 does not answer")
CPU: dict[str, Any] = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}
ASKS = {SCALE_TO_ZERO: "true", COOLDOWN: "1m"}
SLEEP = [("asleep-since", "set"), ("replicas", 0)]
WAKE = [("replicas", 1), ("asleep-since", "removed")]


def lag(value: int) -> tuple[MetricValue, ...]:
    return (MetricValue({}, value * 1000, 0.0),)


@dataclass
class World:
    """One HPA and its Deployment at a kube-apiserver, and one replica of the adapter."""

    clock: FixedClock = field(default_factory=FixedClock)
    objects: FakeObjects = field(default_factory=FakeObjects)
    metrics: FakeMetrics = field(default_factory=lambda: FakeMetrics({LAG: lag(0)}))
    allowed: AutoscalerChanges = field(default_factory=lambda: AutoscalerChanges.model_validate({"scaleToZero": True}))
    is_leader: bool = True
    others: list[dict[str, Any]] = field(default_factory=list)
    """Further HPAs."""
    conditions: Conditions = field(default_factory=Conditions)
    is_shown: bool = True
    """Whether the watch shows what has been written."""

    def __post_init__(self) -> None:
        document = hpa("consumer", ORDERS)
        document["spec"]["minReplicas"] = 1
        document["metadata"] |= {"annotations": {**ASKS}, "uid": "u-1"}
        self.objects.put(HPA, document)
        self.scale(2)
        self.begin()

    def begin(self) -> None:
        """Starts a process, which remembers nothing."""
        self.autoscalers = Autoscalers(lambda: SERVED, lambda _: None)
        self.events = Events(self.objects.create, "pod-1", self.clock)
        self.changes = Changes(
            self.autoscalers,
            lambda: cast("Metrics", self.metrics),
            lambda: self.allowed,
            lambda: self.is_leader,
            HpaWrites(cast("ClusterObjects", self.objects), self.events, self.conditions),
            self.clock,
        )

    def scale(self, replicas: int) -> None:
        """Somebody else scales the Deployment."""
        self.objects.put(SCALE, {"metadata": {"name": "consumer"}, "spec": {"replicas": replicas}})
        self.show_replicas(replicas)

    def show_replicas(self, replicas: int) -> None:
        """The HPA's controller writes the status."""
        document = self.objects.kept[HPA]
        document["status"]["currentReplicas"] = replicas
        self.objects.put(HPA, document)

    def annotate(self, **changes: str | None) -> None:
        """The HPA's owner changes annotations; their names without our prefix and with underscores."""
        document = self.objects.kept[HPA]
        named = {f"kafka-lag-adapter/{key.replace('_', '-')}": value for key, value in changes.items()}
        merged = {**document["metadata"]["annotations"], **named}
        document["metadata"]["annotations"] = {key: value for key, value in merged.items() if value is not None}
        self.objects.put(HPA, document)

    def change(self, **spec: object) -> None:
        document = self.objects.kept[HPA]
        document["spec"] |= spec
        self.objects.put(HPA, document)

    @property
    def replicas(self) -> int:
        return int(self.objects.kept[SCALE]["spec"]["replicas"])

    @property
    def is_marked(self) -> bool:
        return ASLEEP_SINCE in self.objects.kept[HPA]["metadata"]["annotations"]

    def look(self, seconds: float = 0.0) -> None:
        """One look, after so many seconds."""
        self.clock.seconds += seconds
        self.metrics.version += 1
        self.metrics.valid_until = self.clock.seconds + 60
        if self.is_shown:
            own = [self.objects.kept[HPA]] if HPA in self.objects.kept else []
            self.autoscalers.listed(iter([*own, *self.others]))
        self.changes.turn()

    def look_for(self, seconds: float, each: float = 10.0) -> None:
        for _ in range(int(seconds / each)):
            self.look(each)

    def sleep(self) -> None:
        self.look()
        self.look_for(COOLDOWN_SECONDS)
        self.show_replicas(0)
        self.look()
        assert (self.replicas, self.is_marked) == (0, True)
        assert self.posted()[-1] == "ScaledToZero"
        self.objects.written.clear()

    def posted(self) -> list[str]:
        """The Events' reasons, once all are posted."""
        while self.events.turn() == 0:
            pass
        return [str(what) for kind, what in self.objects.written if kind == "Event"]

    def writes(self) -> list[tuple[str, object]]:
        return [write for write in self.objects.written if write[0] != "Event"]


@pytest.fixture
def world() -> World:
    return World()


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
        ({"metrics": [custom("Pods", ORDERS)]}, "no value without pods"),
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
