"""`/livez`, `/readyz` and `/healthz`, without credentials.

Readiness depends on Kafka only in the first seconds, when other replicas have values and this one has none. Later, one
slow broker must not remove the API group from the cluster."""

from collections.abc import Mapping
from datetime import UTC, datetime

from fastapi import Request, Response

from adapter.conditions import Condition, Conditions, Status
from adapter.errors import some_of
from apiservice.http.replies import Endpoint, text_reply
from apiservice.http.status import PathUnknown

PATHS = ("/healthz", "/livez", "/readyz")


class Readiness:
    """Whether the required conditions are known, and whether the process is shutting down."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._is_shutting_down = False

    def shut_down(self) -> None:
        """Makes the process unready, so that Kubernetes removes its address while requests are still answered."""
        self._is_shutting_down = True

    def results(self) -> dict[str, bool]:
        return {"ping": True, **self._conditions.checks, "shutdown": not self._is_shutting_down}

    def remarks(self) -> list[str]:
        """Returns a line for each condition."""
        return [_remark(each) for each in self._conditions.current]


def _remark(condition: Condition) -> str:
    is_good = condition.status is Status.TRUE
    since = f"{datetime.fromtimestamp(condition.changed_at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    hint = "; the log has details" if condition.details and not is_good else ""
    level = "info" if is_good else "warn"
    return f"{level}: {condition.subject}: {condition.reason} since {since}: {condition.message}{hint}"


def is_health_path(path: str) -> bool:
    return path.startswith(PATHS) and "/" + path.split("/", 2)[1] in PATHS


def routes(readiness: Readiness) -> dict[str, Endpoint]:
    # Liveness does not depend on certificates: a restart would not help an adapter that waits for one.
    return _routes("/readyz", readiness) | _routes("/livez", None) | _routes("/healthz", None)


def _routes(path: str, readiness: Readiness | None) -> dict[str, Endpoint]:
    def results() -> dict[str, bool]:
        return readiness.results() if readiness else {"ping": True}

    async def whole(request: Request) -> Response:
        query, remarks = request.query_params, readiness.remarks() if readiness else []
        return _report(path[1:], results(), remarks, frozenset(query.getlist("exclude")), "verbose" in query)

    async def one(request: Request) -> Response:
        holds = results().get(request.path_params["check"])
        if holds is None:
            raise PathUnknown
        return text_reply("ok") if holds else text_reply("internal server error: reason withheld\n", 500)

    return {path: whole, f"{path}/{{check}}": one}


def _report(
    name: str,
    results: Mapping[str, bool],
    remarks: list[str],
    excluded: frozenset[str],
    verbose: bool,  # noqa: FBT001 - a query's flag
) -> Response:
    failed = [check for check, holds in results.items() if not holds and check not in excluded]
    if not failed and not verbose:
        return text_reply("ok")
    lines = [*(_line(check, holds, check in excluded) for check, holds in results.items()), *remarks]
    unknown = some_of([f'"{check[:63]}"' for check in sorted(excluded - results.keys())], separator=", ")
    if unknown:
        lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}")
    lines.append(f"{name} check {'failed' if failed else 'passed'}")
    return text_reply("\n".join(lines) + "\n", 500 if failed else 200)


def _line(check: str, holds: bool, is_excluded: bool) -> str:  # noqa: FBT001 - two facts about the check
    if is_excluded:
        return f"[+]{check} excluded: ok"
    return f"[+]{check} ok" if holds else f"[-]{check} failed: reason withheld"
