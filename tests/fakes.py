"""Stand-ins for what the HTTP surface asks: metrics, callers, a clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from adapter.errors import MetricUnknown
from adapter.metrics import MetricValue, Reading, Requirement
from apiservice.access import Attributes, Caller, Forbidden, Scope, Unauthorized
from apiservice.app import ApiServer, create_app
from apiservice.health import Readiness

HPA = Caller("system:serviceaccount:kube-system:horizontal-pod-autoscaler", "", ("system:authenticated",), ())
ANONYMOUS = Caller("system:anonymous", "", ("system:unauthenticated",), ())
MEASURED_AT = 1_795_261_709.75  # 2026-11-21T11:48:29.75Z
LAG_OF_ORDERS = MetricValue({"cluster": "main", "group": "billing", "topic": "orders"}, 42, MEASURED_AT)
Question = tuple[str, tuple[Requirement, ...]]


class FixedClock:
    """A monotonic clock that moves when it is told to."""

    def __init__(self, seconds: float = 1000.0) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds


@dataclass
class FakeMetrics:
    """Gives each metric's prepared answer or error, and remembers what it was asked."""

    answers: Mapping[str, tuple[MetricValue, ...] | Exception]
    names: tuple[str, ...] = ("kafka_consumergroup_lag", "Billing-Backlog")
    version: int = 1
    valid_until: float = 1060.0
    warnings: tuple[str, ...] = ()
    asked: list[Question] = field(default_factory=list)

    def read(self, metric: str, requirements: Sequence[Requirement]) -> Reading:
        self.asked.append((metric, tuple(requirements)))
        answer = self.answers.get(metric.lower(), MetricUnknown(f"no metric {metric} is served here"))
        if isinstance(answer, Exception):
            raise answer
        return Reading(metric.lower(), answer, self.warnings, self.version, self.valid_until)


@dataclass
class FakeCallers:
    """Knows callers by the request's `authorization` header; `allowed` None: everybody may do everything.

    `remembers`: answers from memory, as for a caller who was here a short time ago.
    """

    known: Mapping[str, Caller | Exception] = field(default_factory=lambda: {"Bearer hpa": HPA})
    allowed: frozenset[tuple[str, str]] | None = None
    reason: str = ""
    failure: Exception | None = None
    remembers: bool = False
    reviewed: list[Attributes] = field(default_factory=list)

    def recall(self, scope: Scope) -> Caller | None:
        return self._caller(scope) if self.remembers else None

    async def identify(self, scope: Scope) -> Caller:
        return self._caller(scope)

    def recall_permission(self, caller: Caller, attributes: Attributes) -> bool | None:
        return self._may(caller, attributes) if self.remembers else None

    async def authorize(self, caller: Caller, attributes: Attributes) -> None:
        self.reviewed.append(attributes)
        if self.failure is not None:
            raise self.failure
        if not self._may(caller, attributes):
            raise Forbidden(caller, attributes, self.reason)

    def _caller(self, scope: Scope) -> Caller:
        token = dict(scope["headers"]).get(b"authorization", b"").decode()
        if not token:
            return ANONYMOUS
        found = self.known.get(token, Unauthorized("the token is not known"))
        if isinstance(found, Exception):
            raise found
        return found

    def _may(self, caller: Caller, attributes: Attributes) -> bool:
        if caller is ANONYMOUS:
            return False
        return self.allowed is None or (attributes.verb, attributes.resource or attributes.path) in self.allowed


@dataclass
class House:
    """An application with everything around it that a test may want to turn or read."""

    metrics: FakeMetrics = field(default_factory=lambda: FakeMetrics({"kafka_consumergroup_lag": (LAG_OF_ORDERS,)}))
    callers: FakeCallers = field(default_factory=FakeCallers)
    checks: Mapping[str, bool] = field(default_factory=dict)
    clock: FixedClock = field(default_factory=FixedClock)
    counted: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.readiness = Readiness({name: partial(bool, holds) for name, holds in self.checks.items()})
        self.app: ApiServer = create_app(
            self.metrics,
            self.callers,
            self.readiness,
            exposition=lambda: (b"kafka_lag_adapter_up 1\n", "text/plain; version=0.0.4"),
            count_read=lambda metric, code: self.counted.append((metric, code)),
            version="0.1.0",
            monotonic=self.clock,
        )
