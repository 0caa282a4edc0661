"""An HPA that is recommended, as values with a reason for every number."""

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Number:
    value: int
    reason: str


@dataclass(frozen=True, slots=True)
class Target:
    """None: no number can be recommended, for this reason."""

    value: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Behavior:
    """One direction of an HPA's `behavior`; a policy of 0 is left out."""

    window_seconds: Number
    pods: Number
    percent: Number
    period_seconds: int

    @property
    def policies(self) -> list[tuple[Literal["Pods", "Percent"], Number]]:
        both: list[tuple[Literal["Pods", "Percent"], Number]] = [("Pods", self.pods), ("Percent", self.percent)]
        return [(kind, number) for kind, number in both if number.value]

    @property
    def rules(self) -> dict[str, Any]:
        policies = [
            Policy(type=kind, value=number.value, period_seconds=self.period_seconds) for kind, number in self.policies
        ]
        return {"policies": policies, "stabilization_window_seconds": self.window_seconds.value}


@dataclass(frozen=True, slots=True)
class Recommendation:
    target: Target
    """`averageValue` of the lag: messages that one replica may have waiting."""
    min_replicas: Number
    max_replicas: Number
    up: Behavior
    down: Behavior

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
        source = MetricSource(metric=MetricIdentifier(name="lag"), target=target)
        return Hpa(
            min_replicas=self.min_replicas.value,
            max_replicas=self.max_replicas.value,
            metrics=(Metric(type="External", external=source),),
            behavior=hpa.Behavior(scale_up=ScaleUp(**self.up.rules), scale_down=ScaleDown(**self.down.rules)),
        )
