"""An HPA and its Deployment at a fake kube-apiserver, and a replica of the adapter that scales it to zero."""

from dataclasses import dataclass, field
from typing import Any, cast

from adapter.conditions import Conditions
from adapter.metrics.aggregation import MetricValue
from adapter.metrics.definitions import SERVED
from adapter.metrics.problems import ValueUnavailable
from adapter.metrics.query import Metrics
from adapter.settings.models import AutoscalerChanges
from apiservice.autoscalers.annotations import ASLEEP_SINCE, COOLDOWN, SCALE_TO_ZERO
from apiservice.autoscalers.changes import Changes
from apiservice.autoscalers.followed import Autoscalers
from apiservice.autoscalers.hpa_writes import HpaWrites
from apiservice.cluster_api.objects import ClusterObjects
from apiservice.cluster_api.scale import scale_path
from apiservice.events import Events
from tests.support.kubernetes.fake_objects import FakeObjects
from tests.support.kubernetes.fakes import FakeMetrics, FixedClock
from tests.support.kubernetes.hpas import LAG, external, hpa

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
    owner: str = ""
    """The adapter's Service."""

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
            HpaWrites(cast("ClusterObjects", self.objects), self.events, self.conditions, self.owner),
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
