"""The routes of both ports, for probes and Prometheus: health, without credentials, and our own metrics.

Readiness depends on Kafka only in the first seconds, when other replicas have values and this one has none. Later, one
slow broker must not remove the API group from the cluster."""

from collections.abc import Callable
from threading import Event

from cachetools import TTLCache, cached
from fastapi import APIRouter, Depends, Response
from fastapi.responses import PlainTextResponse

from adapter.clock import utc_text
from adapter.conditions import Condition, Conditions, ConditionStatus
from apiservice.http.replies import HEADERS, with_headers

PATHS = ("/healthz", "/livez", "/readyz")
EXPOSED_SECONDS = 0.1

Exposition = Callable[[], tuple[bytes, str]]
"""Returns our own metrics in Prometheus's format: the bytes and their content type."""


def routes(conditions: Conditions, stopping: Event, exposition: Exposition, *others: APIRouter) -> APIRouter:
    """While `stopping` is set, the process is not ready, so that Kubernetes removes its address. `others` are added."""
    router = APIRouter(default_response_class=PlainTextResponse, dependencies=[Depends(with_headers)])
    # Anybody may read it on the plain port, and writing it takes milliseconds.
    exposition = cached(TTLCache(1, EXPOSED_SECONDS))(exposition)

    # Liveness does not depend on certificates: a restart would not help an adapter that waits for one.
    @router.get("/livez")
    @router.get("/healthz")
    async def live() -> str:
        return "ok"

    @router.get("/readyz")
    async def ready(response: Response, verbose: str | None = None) -> str:
        checks = {"ping": True, **conditions.checks, "shutdown": not stopping.is_set()}
        is_ready = all(checks.values())
        if is_ready and verbose is None:
            return "ok"
        response.status_code = 200 if is_ready else 500
        lines = [f"[+]{name} ok" if holds else f"[-]{name} failed: reason withheld" for name, holds in checks.items()]
        remarks = map(_remark, conditions.current)
        return "\n".join([*lines, *remarks, f"readyz check {'passed' if is_ready else 'failed'}\n"])

    @router.get("/metrics")
    async def own_metrics() -> Response:
        body, content_type = exposition()
        return Response(body, headers={**HEADERS, "content-type": content_type})

    for each in others:
        router.include_router(each)
    return router


def _remark(condition: Condition) -> str:
    is_good = condition.status is ConditionStatus.TRUE
    hint = "; the log has details" if condition.details and not is_good else ""
    level = "info" if is_good else "warn"
    since = utc_text(condition.changed_at)
    return f"{level}: {condition.subject}: {condition.reason} since {since}: {condition.message}{hint}"
