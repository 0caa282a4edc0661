"""An HPA that is recommended, as values with a reason for every number."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

from adapter.verdicts import hpa
from adapter.verdicts.hpa import (
    Hpa,
    Metric,
    MetricIdentifier,
    MetricSource,
    MetricTarget,
    Policy,
    ScaleDown,
    ScaleUp,
)
from spark.trials.hpa_file import METRIC, REPLICAS, REQUIRED


@dataclass(frozen=True, slots=True)
class Number:
    value: int
    reason: str


@dataclass(frozen=True, slots=True)
class Target:
    """None: no number can be recommended, for this reason."""

    value: int | None
    reason: str


class Reads(IntEnum):
    """What an HPA reads. The simpler comes first: it needs less of the adapter's settings, and less to be known."""

    LAG = 0
    REPLICAS = 1
    """The lag, divided by the adapter."""
    REQUIRED_REPLICAS = 2
    """What arrives and waits, divided by what a member can do."""

    @property
    def metric(self) -> str:
        return (METRIC, REPLICAS, REQUIRED)[self]

    @property
    def short(self) -> str:
        """The name of the value in the adapter's settings."""
        return self.metric.removeprefix("kafka_consumergroup_")


@dataclass(frozen=True, slots=True)
class LagPerReplica:
    """The rule of the adapter's settings for `Reads.REPLICAS`."""

    messages: Number


@dataclass(frozen=True, slots=True)
class Promise:
    """The rule of the adapter's settings for `Reads.REQUIRED_REPLICAS`."""

    max_wait_seconds: Number
    capacity: float
    """Messages per second of one member, until the adapter has learned it."""
    capacity_reason: str


@dataclass(frozen=True, slots=True)
class Behavior:
    """One direction of an HPA's `behavior`; a policy of 0 is left out."""

    window_seconds: Number
    pods: Number
    percent: Number
    period_seconds: int
    tolerance: Number | None = None
    """None: the controller's own."""

    @property
    def policies(self) -> list[tuple[Literal["Pods", "Percent"], Number]]:
        both: list[tuple[Literal["Pods", "Percent"], Number]] = [("Pods", self.pods), ("Percent", self.percent)]
        return [(kind, number) for kind, number in both if number.value]

    @property
    def rules(self) -> dict[str, Any]:
        policies = [
            Policy(type=kind, value=number.value, period_seconds=self.period_seconds) for kind, number in self.policies
        ]
        tolerance = None if self.tolerance is None else float(self.tolerance.value)
        return {
            "policies": policies,
            "stabilization_window_seconds": self.window_seconds.value,
            "tolerance": tolerance,
        }


@dataclass(frozen=True, slots=True)
class Recommendation:
    target: Target
    """`averageValue`: messages that one replica may have waiting, or 1 of a number of replicas."""
    min_replicas: Number
    max_replicas: Number
    up: Behavior
    down: Behavior
    rule: LagPerReplica | Promise | None = None
    """What the adapter's settings must say of the group; None: nothing, because the HPA goes by the lag."""

    @property
    def reads(self) -> Reads:
        if self.rule is None:
            return Reads.LAG
        return Reads.REQUIRED_REPLICAS if isinstance(self.rule, Promise) else Reads.REPLICAS

    @property
    def replicas(self) -> tuple[tuple[str, Number], ...]:
        """By their names in an HPA."""
        return ("minReplicas", self.min_replicas), ("maxReplicas", self.max_replicas)

    @property
    def behaviors(self) -> tuple[tuple[str, Behavior], ...]:
        """By their names in an HPA."""
        return ("scaleUp", self.up), ("scaleDown", self.down)

    @property
    def spec(self) -> Hpa:
        """As Kubernetes stores it. There is a target."""
        target = MetricTarget(type="AverageValue", average_value=self.target.value)
        source = MetricSource(metric=MetricIdentifier(name=self.reads.metric), target=target)
        return Hpa(
            min_replicas=self.min_replicas.value,
            max_replicas=self.max_replicas.value,
            metrics=(Metric(type="External", external=source),),
            behavior=hpa.Behavior(scale_up=ScaleUp(**self.up.rules), scale_down=ScaleDown(**self.down.rules)),
        )
