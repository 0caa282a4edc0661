"""Stand-ins for what the HTTP surface asks: metrics, callers, a clock; and a way to ask it."""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import unquote

from fastapi import APIRouter
from starlette.types import ASGIApp

from adapter.conditions import Conditions, Definition
from adapter.errors import MetricUnknown
from adapter.metrics.access import Audience
from adapter.metrics.aggregation import MetricValue
from adapter.metrics.definitions import by_served_name
from adapter.metrics.query import Metrics, Reading
from adapter.metrics.requirement import Requirement
from apiservice.api_group import API_GROUPS, ApiGroup
from apiservice.app import ApiServer, create_metrics_app
from apiservice.auth.caller import Attributes, Caller, Forbidden, Scope, Unauthorized
from apiservice.auth.callers import Callers
from apiservice.http import health
from apiservice.metrics_api.reads import MetricReads, Replies
from apiservice.pods.pod import Pod
from apiservice.upstream.live import Upstreams

Event = MutableMapping[str, Any]

HPA = Caller("system:serviceaccount:kube-system:horizontal-pod-autoscaler", "", ("system:authenticated",), ())
ANONYMOUS = Caller("system:anonymous", "", ("system:unauthenticated",), ())
MEASURED_AT = 1_795_261_709.75  # 2026-11-21T11:48:29.75Z
LAG_OF_ORDERS = MetricValue({"cluster": "main", "group": "billing", "topic": "orders"}, 42_000, MEASURED_AT)
GROUP = "/apis/external.metrics.k8s.io"
V1BETA1 = f"{GROUP}/v1beta1"
NAMESPACE = f"{V1BETA1}/namespaces/shop"
LAG = f"{NAMESPACE}/kafka_consumergroup_lag"
REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    500: "InternalError",
    503: "ServiceUnavailable",
}
GATE_SECONDS = 60.0
OWN_METRICS = (b"kafka_lag_adapter_up 1\n", "text/plain; version=0.0.4")
Question = tuple[str, tuple[Requirement, ...]]


class FixedClock:
    """A monotonic clock that moves only on request."""

    def __init__(self, seconds: float = 1000.0) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds


@dataclass
class FakeMetrics:
    """Gives each metric's prepared answer or error, and remembers what it was asked."""

    answers: Mapping[str, tuple[MetricValue, ...] | Exception]
    names: tuple[str, ...] = ("kafka_consumergroup_lag", "Billing-Backlog")
    names_of_members: tuple[str, ...] = ("kafka_consumergroup_lag",)
    version: int = 1
    valid_until: float = 1060.0
    steps: Mapping[str, int] = field(default_factory=dict)
    """Metric -> effort of any question about it; 1 if not given."""
    gates: Mapping[str, threading.Event] = field(default_factory=dict)
    """Metric -> what a read of it waits for."""
    threads: list[str] = field(default_factory=list)
    """Of each read."""
    warnings: tuple[str, ...] = ()
    is_fallback: bool = False
    asked: list[Question] = field(default_factory=list)
    tenants: frozenset[str] = frozenset()
    """Namespaces that may not read everything."""
    namespaces: list[str | None] = field(default_factory=list)
    """Of each read."""
    lists: list[bool] = field(default_factory=list)
    """Whether each read may leave out groups."""

    def audience_of(self, namespace: str | None) -> Audience | None:
        return frozenset({namespace}) if namespace is not None and namespace in self.tenants else None

    def shows_work(self, metric: str) -> bool:
        definition = by_served_name().get(metric.lower())
        return definition is None or definition.shows_work

    def read(
        self,
        metric: str,
        requirements: Sequence[Requirement],
        namespace: str | None = None,
        *,
        may_list: bool = True,
    ) -> Reading:
        self.lists.append(may_list)
        self.namespaces.append(namespace)
        self.asked.append((metric, tuple(requirements)))
        self.threads.append(threading.current_thread().name)
        if metric in self.gates:
            assert self.gates[metric].wait(GATE_SECONDS), f"nobody opened the gate of {metric}"
        answer = self.answers.get(metric.lower(), MetricUnknown(f"no metric {metric} is served here"))
        if isinstance(answer, Exception):
            raise answer
        name = next(name for name in self.names if name.lower() == metric.lower())
        return Reading(name, answer, self.warnings, self.version, self.valid_until, self.is_fallback)

    def effort(
        self,
        metric: str,
        requirements: Sequence[Requirement],  # noqa: ARG002 - fixed
        namespace: str | None = None,  # noqa: ARG002 - fixed
    ) -> int:
        return self.steps.get(metric, 1)


@dataclass
class FakeCallers:
    """Knows callers by the request's `authorization` header; `allowed` None: everybody may do everything."""

    known: Mapping[str, Caller | Exception] = field(default_factory=lambda: {"Bearer hpa": HPA})
    allowed: frozenset[tuple[str, str]] | None = None
    reason: str = ""
    failure: Exception | None = None
    reviewed: list[Attributes] = field(default_factory=list)

    async def authorize(self, caller: Caller, attributes: Attributes) -> None:
        self.reviewed.append(attributes)
        if self.failure is not None:
            raise self.failure
        if not self._may(caller, attributes):
            raise Forbidden(caller, attributes, self.reason)

    async def identify(self, scope: Scope) -> Caller:
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
class FakeConnection:
    """Remembers whether the application recognised its caller."""

    is_recognised: bool = False

    def recognise(self) -> None:
        self.is_recognised = True


def conditions_of(checks: Mapping[str, bool]) -> Conditions:
    """Conditions on which readiness depends; those that do not hold are not known yet."""
    conditions = Conditions(lambda: MEASURED_AT)
    for name, holds in checks.items():
        definition = Definition(name, "Fine", "all is well")
        conditions.expect(definition)
        if holds:
            conditions.holds(definition)
    return conditions


def plain_port(conditions: Conditions | None = None, exposition: health.Exposition = lambda: OWN_METRICS) -> ASGIApp:
    """The application of the port without TLS."""
    return create_metrics_app(health.routes(conditions or Conditions(), threading.Event(), exposition))


@dataclass
class House:
    """An application with everything around it that a test may want to turn or read."""

    metrics: FakeMetrics = field(default_factory=lambda: FakeMetrics({"kafka_consumergroup_lag": (LAG_OF_ORDERS,)}))
    callers: FakeCallers = field(default_factory=FakeCallers)
    checks: Mapping[str, bool] = field(default_factory=dict)
    clock: FixedClock = field(default_factory=FixedClock)
    counted: list[tuple[str, int]] = field(default_factory=list)
    upstreams: Sequence[Upstreams] = ()
    groups: tuple[ApiGroup, ...] = API_GROUPS
    pods: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    """By namespace, of those whose pods are known."""
    kinds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """What the cluster knows of resources."""

    def __post_init__(self) -> None:
        self.stopping = threading.Event()
        self.replies = Replies(self.clock)
        self.app = self.app_with(lambda _: ())

    def app_with(self, others: Callable[[Replies], Sequence[APIRouter]]) -> ApiServer:
        """The application with further routes."""
        return ApiServer(
            [
                MetricReads(group, lambda: cast("Metrics", self.metrics), self.replies, self.pods.get, self.kind_of)
                for group in self.groups
            ],
            cast("Callers", self.callers),
            health.routes(conditions_of(self.checks), self.stopping, lambda: OWN_METRICS),
            count_read=lambda metric, code: self.counted.append((metric, code)),
            version="0.1.0",
            upstreams=self.upstreams,
            others=others(self.replies),
        )

    async def kind_of(self, resource: str) -> tuple[str, str] | None:
        return self.kinds.get(resource)

    def get(self, target: str | bytes, **headers: str) -> "Answer":
        """The answer to GET as the autoscaler, unless `authorization` says otherwise (empty: without credentials)."""
        return self.ask("GET", target, **headers)

    def ask(self, method: str, target: str | bytes, **headers: str) -> "Answer":
        """The answer to a request; `target` is what stands in the request's first line."""
        return asyncio.run(self.asked(method, target, **headers))

    async def asked(self, method: str, target: str | bytes, **headers: str) -> "Answer":
        """As `ask`, in a loop where others may ask as well."""
        given = {"authorization": "Bearer hpa", **headers}
        return await asked(
            self.app, method, target, [(name.replace("_", "-"), text) for name, text in given.items() if text]
        )


@dataclass(frozen=True)
class Answer:
    """What came back; header names in lower case."""

    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:  # noqa: ANN401 - whatever the JSON holds
        return json.loads(self.body)

    def is_status(self, code: int, message: str) -> bool:
        """Whether this is a Status that Kubernetes' clients decode, its message beginning so; never `Retry-After`."""
        shape = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": REASONS[code]}
        headers = {
            "content-type": "application/json",
            "x-content-type-options": "nosniff",
            "cache-control": "no-cache, private",
        }
        return (
            self.code == self.document["code"] == code
            and self.document.items() >= shape.items()
            and self.document["message"].startswith(message)
            and self.headers.items() >= headers.items()
            and "retry-after" not in self.headers
        )


def ask(app: ASGIApp, method: str, target: str | bytes, headers: Sequence[tuple[str, str]] = ()) -> Answer:
    """One request to an ASGI application, its target decoded as uvicorn decodes it."""
    return asyncio.run(asked(app, method, target, headers))


async def asked(
    app: ASGIApp,
    method: str,
    target: str | bytes,
    headers: Sequence[tuple[str, str]] = (),
    connection: "FakeConnection | None" = None,
) -> Answer:
    """As `ask`, in a loop where others may ask as well."""
    raw = target.encode() if isinstance(target, str) else target
    raw_path, _, query = raw.partition(b"?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "https",
        "path": unquote(raw_path.decode("latin-1")),
        "raw_path": raw_path,
        "root_path": "",
        "query_string": query,
        "headers": [(name.encode(), text.encode("latin-1")) for name, text in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 6443),
        "state": {"connection": connection or FakeConnection()},
    }
    sent: list[Event] = []

    async def receive() -> Event:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(event: Event) -> None:
        sent.append(event)

    try:
        await app(scope, receive, send)
    except RuntimeError:
        # Starlette answers and then raises on, for the server to log; whoever tests that looks at the answer.
        if not sent:
            raise
    start = sent[0]
    found = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], found, b"".join(event["body"] for event in sent[1:]))
