"""What `maxReplicas` of HPAs becomes, when, and by whose permission."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from adapter.conditions import Conditions
from adapter.errors import AdapterError
from adapter.metrics.definitions import SERVED
from adapter.metrics.partitions import Readable
from adapter.metrics.problems import ValueUnavailable
from adapter.metrics.query import Metrics
from adapter.settings.models import AutoscalerChanges
from adapter.verdicts.assignment import Sharing
from apiservice.autoscalers.annotations import MAX_REPLICAS, MAX_REPLICAS_BEFORE, MAX_REPLICAS_BY, MAX_REPLICAS_CEILING
from apiservice.autoscalers.cap import LOWER_SECONDS
from apiservice.autoscalers.changes import Changes
from apiservice.autoscalers.followed import Autoscalers
from apiservice.autoscalers.hpa_writes import MAX_REPLICAS_MANAGER, HpaWrites
from apiservice.cluster_api.objects import ClusterObjects
from apiservice.events import Events
from tests.support.kubernetes.fake_objects import FakeObjects
from tests.support.kubernetes.fakes import FixedClock
from tests.support.kubernetes.hpas import external, hpa

HPA = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/consumer"
ORDERS, RETURNS = (external(group="billing", topic=topic) for topic in ("orders", "returns"))
UNKNOWN = ValueUnavailable("topic orders may not be described")


@dataclass
class FakeMetrics:
    """`read`: topic -> its partitions, or why they are not known."""

    read: Mapping[str, int | AdapterError]
    groups: Mapping[str, str] = field(default_factory=dict)
    """Topic -> its group, if it is not billing."""
    sharing: Sharing = Sharing.BY_TOPIC
    is_in_doubt: bool = False
    version: int = 0
    valid_until: float = 0.0

    def partitions(self, _: str, requirements: Any, __: str | None) -> tuple[tuple[Readable, ...], float]:  # noqa: ANN401 - fake
        topics = {name for each in requirements if each.key == "topic" for name in each.values}
        (topic,) = topics
        count = self.read[topic]
        if isinstance(count, AdapterError):
            raise count
        covered = Readable("main", self.groups.get(topic, "billing"), {topic: count}, self.sharing)
        return () if self.is_in_doubt else (covered,), self.valid_until


@dataclass
class World:
    """One HPA at a kube-apiserver that knows who owns `maxReplicas`, and one replica of the adapter."""

    clock: FixedClock = field(default_factory=FixedClock)
    objects: FakeObjects = field(default_factory=FakeObjects)
    metrics: FakeMetrics = field(default_factory=lambda: FakeMetrics({"orders": 3}))
    allowed: AutoscalerChanges = field(default_factory=lambda: AutoscalerChanges.model_validate({"maxReplicas": True}))
    is_leader: bool = True
    conditions: Conditions = field(default_factory=Conditions)
    owner: str = ""
    """The adapter's Service."""

    def __post_init__(self) -> None:
        document = hpa("consumer", ORDERS)
        document["spec"] |= {"minReplicas": 1, "maxReplicas": 1}
        document["metadata"] |= {"annotations": {MAX_REPLICAS: "partitions"}, "uid": "u-1", "managedFields": []}
        self.objects.put(HPA, document)
        self.own(MAX_REPLICAS_MANAGER)
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
            HpaWrites(cast("ClusterObjects", self.objects), self.events, self.conditions, self.owner),
            self.clock,
        )

    @property
    def document(self) -> dict[str, Any]:
        return self.objects.kept[HPA]

    def own(self, *managers: str) -> None:
        """These field managers set `maxReplicas`."""
        fields: dict[str, object] = {"f:spec": {"f:maxReplicas": {}}}
        self.document["metadata"]["managedFields"] = [{"manager": each, "fieldsV1": fields} for each in managers]
        self.objects.put(HPA, self.document)

    def annotate(self, name: str, value: str | None) -> None:
        annotations = {**self.document["metadata"]["annotations"], name: value}
        kept = {key: each for key, each in annotations.items() if each is not None}
        self.document["metadata"]["annotations"] = kept
        self.objects.put(HPA, self.document)

    def change(self, **spec: object) -> None:
        self.document["spec"] |= spec
        self.objects.put(HPA, self.document)

    @property
    def maximum(self) -> int:
        return int(self.document["spec"]["maxReplicas"])

    @property
    def before(self) -> str | None:
        found: str | None = self.document["metadata"]["annotations"].get(MAX_REPLICAS_BEFORE)
        return found

    def look(self, seconds: float = 0.0) -> None:
        self.clock.seconds += seconds
        self.metrics.version += 1
        self.metrics.valid_until = self.clock.seconds + 60
        self.autoscalers.listed(iter([self.document]))
        self.changes.turn()

    def look_for(self, seconds: float) -> None:
        for _ in range(int(seconds / 10)):
            self.look(10)

    def posted(self) -> list[str]:
        while self.events.turn() == 0:
            pass
        return [str(what) for kind, what in self.objects.written if kind == "Event"]


@pytest.fixture
def world() -> World:
    return World()


def test_a_larger_number_is_set_at_once_and_the_former_one_is_kept(world: World) -> None:
    world.look()

    assert (world.maximum, world.before) == (3, "1")
    assert world.posted() == ["MaxReplicasChanged"]
    world.metrics.read = {"orders": 5}
    world.look(10)
    assert (world.maximum, world.before) == (5, "1")


def test_a_smaller_number_is_set_after_it_was_seen_for_five_minutes(world: World) -> None:
    world.change(maxReplicas=9)
    world.look()
    world.look_for(LOWER_SECONDS - 10)
    assert world.maximum == 9

    world.look(10)

    assert (world.maximum, world.before) == (3, "9")


@pytest.mark.parametrize("seen", [UNKNOWN, 9, 4])
def test_another_number_or_none_begins_the_five_minutes_again(world: World, seen: int | AdapterError) -> None:
    world.change(maxReplicas=9)
    world.look()
    world.look_for(LOWER_SECONDS - 10)
    world.metrics.read = {"orders": seen}
    world.look(10)
    world.metrics.read = {"orders": 3}
    world.look(10)
    world.look_for(LOWER_SECONDS - 10)
    assert world.maximum == 9

    world.look(10)

    assert world.maximum == 3


def test_a_time_in_which_nobody_looked_does_not_count(world: World) -> None:
    world.change(maxReplicas=9)
    world.look()
    world.look(2 * LOWER_SECONDS)

    assert world.maximum == 9


def test_nothing_changes_while_the_number_is_unknown(world: World) -> None:
    world.change(maxReplicas=9)
    world.metrics.read = {"orders": UNKNOWN}

    world.look_for(2 * LOWER_SECONDS)

    assert (world.objects.written, world.maximum) == ([], 9)


def test_several_metrics_of_a_group_are_about_all_their_topics(world: World) -> None:
    world.change(metrics=[ORDERS, RETURNS])
    world.metrics.read = {"orders": 3, "returns": 4}

    world.look()

    assert world.maximum == 4


@pytest.mark.parametrize(("ceiling", "maximum"), [("2", 2), ("40", 3)])
def test_it_never_exceeds_the_ceiling(world: World, ceiling: str, maximum: int) -> None:
    world.annotate(MAX_REPLICAS_CEILING, ceiling)

    world.look()

    assert world.maximum == maximum


def test_it_is_never_below_the_minimum_of_the_hpa(world: World) -> None:
    world.change(minReplicas=4, maxReplicas=9)

    world.look_for(LOWER_SECONDS + 10)

    assert world.maximum == 4


def test_where_somebody_else_sets_the_field_only_an_event_says_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.own("argocd-controller", MAX_REPLICAS_MANAGER)

    world.look_for(600)

    assert world.maximum == 1
    assert world.posted() == ["MaxReplicasRefused"]
    assert ["also set by argocd-controller" in each.getMessage() for each in caplog.records] == [True]


def test_the_value_of_the_creator_is_owned_together_with_him_and_changed_once_he_leaves_it_out(world: World) -> None:
    world.own("kubectl")
    world.look()
    assert [write for write in world.objects.written if write[0] != "Event"] == [("maxReplicas", 1)]
    world.own("kubectl", MAX_REPLICAS_MANAGER)
    world.look()
    assert world.maximum == 1

    world.own(MAX_REPLICAS_MANAGER)
    world.look()

    assert (world.maximum, world.before) == (3, "1")


def test_the_former_number_returns_when_the_annotation_goes(world: World) -> None:
    world.look()
    world.annotate(MAX_REPLICAS, None)

    world.look()

    assert (world.maximum, world.before) == (1, None)
    assert world.posted() == ["MaxReplicasChanged", "MaxReplicasRestored"]
    world.look()
    assert not world.changes.is_needed or world.allowed.max_replicas


def test_the_former_number_returns_when_the_settings_no_longer_allow_it(world: World) -> None:
    world.look()
    world.allowed = AutoscalerChanges()
    world.look(10)
    world.look(10)

    assert (world.maximum, world.before) == (1, None)
    assert not world.changes.is_needed


def test_what_another_adapter_has_changed_is_not_restored(world: World) -> None:
    world.owner = "blue/lag"
    world.begin()
    world.look()
    assert world.document["metadata"]["annotations"][MAX_REPLICAS_BY] == "blue/lag"
    for owner, left in (("green/lag", (3, "1")), ("blue/lag", (1, None))):
        world.owner, world.allowed = owner, AutoscalerChanges()
        world.begin()
        world.look(10)
        world.look(10)

        assert (world.maximum, world.before) == left
    assert MAX_REPLICAS_BY not in world.document["metadata"]["annotations"]


def test_without_permission_by_the_settings_nothing_is_written(world: World) -> None:
    world.allowed = AutoscalerChanges.model_validate({"scaleToZero": True})

    world.look_for(600)

    assert world.objects.written == []


def test_what_somebody_else_sets_by_then_is_not_restored(world: World) -> None:
    world.look()
    world.own("kubectl")
    world.change(maxReplicas=7)
    world.annotate(MAX_REPLICAS, None)

    world.look()

    assert (world.maximum, world.before) == (7, None)


@pytest.mark.parametrize("former", ["9" * 5000, "9999999999", "0", "-1", "many"])
def test_a_former_number_that_somebody_has_spoilt_is_removed_and_the_value_stays(world: World, former: str) -> None:
    world.look()
    world.annotate(MAX_REPLICAS_BEFORE, former)
    world.annotate(MAX_REPLICAS, None)

    world.look()

    assert (world.maximum, world.before) == (3, None)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (MAX_REPLICAS, "topics", "is 'topics'; must be \"partitions\""),
        (MAX_REPLICAS_CEILING, "many", "is 'many'; must be a whole number above 0"),
        (MAX_REPLICAS_CEILING, "0", "is '0'; must be a whole number above 0"),
    ],
)
def test_a_bad_annotation_is_reported_once_and_nothing_is_done(
    world: World, name: str, value: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.annotate(name, value)

    world.look_for(600)

    assert (world.maximum, world.posted()) == (1, ["MaxReplicasRefused"])
    assert [words in each.getMessage() for each in caplog.records] == [True]


def test_an_hpa_without_a_metric_of_ours_is_refused(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.change(metrics=[external("queue-length", queue="billing")])
    world.look_for(100)

    assert (world.maximum, world.posted()) == (1, ["MaxReplicasRefused"])
    assert ["has no metric that is served by this adapter" in each.getMessage() for each in caplog.records] == [True]


def test_metrics_of_several_groups_are_refused(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.change(metrics=[ORDERS, RETURNS])
    world.metrics.read = {"orders": 3, "returns": 4}
    world.metrics.groups = {"returns": "mail"}
    world.look_for(100)

    assert (world.maximum, world.posted()) == (1, ["MaxReplicasRefused"])
    assert ["about several groups" in each.getMessage() for each in caplog.records] == [True]


def test_a_selector_that_names_no_group_is_refused(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.change(metrics=[ORDERS, external(topic="orders")])
    world.look_for(100)

    assert (world.maximum, world.posted()) == (1, ["MaxReplicasRefused"])
    assert ["names no group" in each.getMessage() for each in caplog.records] == [True]


@pytest.mark.parametrize(("ceiling", "maximum"), [(None, 1), ("6", 6)])
def test_a_share_group_is_limited_by_the_ceiling_alone(world: World, ceiling: str | None, maximum: int) -> None:
    world.annotate(MAX_REPLICAS_CEILING, ceiling)
    world.metrics.sharing = Sharing.SEVERAL_READERS

    world.look_for(100)

    assert world.maximum == maximum


def test_nothing_changes_while_it_is_in_doubt_what_is_read(world: World) -> None:
    world.metrics.is_in_doubt = True

    world.look_for(2 * LOWER_SECONDS)

    assert (world.maximum, world.posted()) == (1, [])


def test_a_changed_hpa_is_not_overwritten(world: World) -> None:
    world.objects.before_write = [lambda: world.change(maxReplicas=2)]

    world.look()

    assert (world.maximum, world.before) == (2, None)


def test_only_the_leader_writes(world: World) -> None:
    world.is_leader = False

    world.look_for(100)

    assert (world.maximum, world.posted()) == (1, [])
