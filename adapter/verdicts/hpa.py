"""An HPA's spec as kube-apiserver stores it, parsed from any object of autoscaling/v2: defaults are filled in, and what
kube-apiserver refuses is refused, with its path.

Follows pkg/apis/autoscaling (v2/defaults.go, validation) of Kubernetes 1.36."""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from adapter.documents import problems_of
from adapter.errors import AdapterError, shown

API_VERSION, KIND = "autoscaling/v2", "HorizontalPodAutoscaler"
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?")
_UNITS = {
    unit: Decimal(10) ** power for unit, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
}
_UNITS |= {f"{unit}i": Decimal(1024) ** (at + 1) for at, unit in enumerate("KMGTPE")}


class HpaInvalid(AdapterError):
    """The object is no HPA that can be simulated; `problems` has every reason, each with its path."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def quantity(value: object) -> Decimal:
    """Parses Kubernetes' quantities: `1500m` to 1.5."""
    match = _QUANTITY.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    if match is None or isinstance(value, bool):
        raise ValueError(f"is {shown(value)}; must be a quantity such as 100, 1500m or 10k")
    number, unit, exponent = match.groups()
    return Decimal(number) * (Decimal(10) ** int(exponent) if exponent else _UNITS.get(unit, Decimal(1)))


def _positive_milli(value: object) -> int:
    """Rounds up, as the HPA controller reads a quantity."""
    milli = math.ceil(quantity(value) * 1000)
    if milli <= 0:
        raise ValueError(f"is {shown(value)}; must be positive")
    return milli


def _not_negative(value: object) -> float:
    if (number := quantity(value)) < 0:
        raise ValueError(f"is {shown(value)}; must not be negative")
    return float(number)


def _number_of(value: object) -> object:
    """Refuses `true`, which pydantic takes for 1."""
    if isinstance(value, bool):
        raise ValueError(f"is {shown(value)}; must be a whole number")  # noqa: TRY004 - pydantic wants it
    return value


class HpaPart(BaseModel):
    """Strict about keys: one that is not simulated would make the result wrong. Keys that are null are as absent."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, content: object) -> object:
        return {k: v for k, v in content.items() if v is not None} if isinstance(content, Mapping) else content


Count = Annotated[int, BeforeValidator(_number_of), Field(ge=0)]
Positive = Annotated[int, BeforeValidator(_number_of), Field(ge=1)]


class Policy(HpaPart):
    type: Literal["Pods", "Percent"]
    value: Positive
    period_seconds: Annotated[int, BeforeValidator(_number_of), Field(ge=1, le=1800)]


class ScalingRules(HpaPart):
    """One direction of `behavior`."""

    policies: Annotated[tuple[Policy, ...], Field(min_length=1)]
    stabilization_window_seconds: Annotated[int, BeforeValidator(_number_of), Field(ge=0, le=3600)] | None = None
    """None: that of the controller's flag, for scaling down."""
    select_policy: Literal["Max", "Min", "Disabled"] = "Max"
    tolerance: Annotated[float, BeforeValidator(_not_negative)] | None = None
    """None: that of the controller's flag."""


class ScaleUp(ScalingRules):
    policies: Annotated[tuple[Policy, ...], Field(min_length=1)] = (
        Policy(type="Pods", value=4, period_seconds=15),
        Policy(type="Percent", value=100, period_seconds=15),
    )
    stabilization_window_seconds: Annotated[int, BeforeValidator(_number_of), Field(ge=0, le=3600)] = 0


class ScaleDown(ScalingRules):
    policies: Annotated[tuple[Policy, ...], Field(min_length=1)] = (
        Policy(type="Percent", value=100, period_seconds=15),
    )


class Behavior(HpaPart):
    scale_up: ScaleUp = ScaleUp()
    scale_down: ScaleDown = ScaleDown()


class LabelRequirement(HpaPart):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class LabelSelector(HpaPart):
    match_labels: Mapping[str, str] = Field(default_factory=dict)
    match_expressions: tuple[LabelRequirement, ...] = ()


class MetricIdentifier(HpaPart):
    name: Annotated[str, Field(min_length=1)]
    selector: LabelSelector = LabelSelector()


class MetricTarget(HpaPart):
    """One of both, in thousandths."""

    type: Literal["Value", "AverageValue"]
    value: Annotated[int, BeforeValidator(_positive_milli)] | None = None
    average_value: Annotated[int, BeforeValidator(_positive_milli)] | None = None

    @model_validator(mode="after")
    def _has_its_number(self) -> Self:
        wanted, other = ("value", "averageValue") if self.type == "Value" else ("averageValue", "value")
        of = {"value": self.value, "averageValue": self.average_value}
        if of[wanted] is None:
            raise ValueError(f"of type {self.type} must have `{wanted}`")
        if of[other] is not None:
            raise ValueError(f"of type {self.type} must not have `{other}`")
        return self


class MetricSource(HpaPart):
    metric: MetricIdentifier
    target: MetricTarget
    described_object: Mapping[str, Any] | None = None
    """Of Object metrics, which read the same value through any object."""


class Metric(HpaPart):
    type: Literal["External", "Object"]
    """What the other types measure comes from pods, which no history has."""
    external: MetricSource | None = None
    object: MetricSource | None = None

    @model_validator(mode="after")
    def _has_its_source(self) -> Self:
        if (self.external is None) == (self.type == "External") or (self.object is None) == (self.type == "Object"):
            raise ValueError(f"of type {self.type} must have `{self.type.lower()}` and no other source")
        return self

    @property
    def source(self) -> MetricSource:
        source = self.external or self.object
        assert source is not None
        return source


class Hpa(HpaPart):
    """The `spec`."""

    scale_target_ref: Mapping[str, Any] = Field(default_factory=dict)
    min_replicas: Count = 1
    max_replicas: Positive
    metrics: Annotated[tuple[Metric, ...], Field(min_length=1)]
    behavior: Behavior | None = None
    """None is not the same as the defaults: without it, the controller uses older rules."""

    @model_validator(mode="after")
    def _has_a_range(self) -> Self:
        if self.max_replicas < self.min_replicas:
            raise ValueError(f"`maxReplicas` {self.max_replicas} must be at least `minReplicas` {self.min_replicas}")
        return self


class _Object(HpaPart):
    model_config = ConfigDict(extra="ignore")

    api_version: Literal["autoscaling/v2"]
    kind: Literal["HorizontalPodAutoscaler"]
    spec: Hpa


def hpa_of(document: object) -> Hpa:
    """Returns the spec of an HPA as kubectl reads or writes it; raises HpaInvalid."""
    if not isinstance(document, Mapping):
        raise HpaInvalid((f"must be one object of kind {KIND}",))
    try:
        return _Object.model_validate(document, by_alias=True, by_name=False).spec
    except ValidationError as error:
        raise HpaInvalid(problems_of(error, _Object)) from error
