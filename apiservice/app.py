"""The HTTP surface: authenticate, authorize, answer.

request ──► caller ──► a metric ──► MetricReads          a few lookups, without the framework
                 │ │       └──► Upstream                  what is not ours, if the settings have an upstream
                 │ └─► all else ──► FastAPI               also pages, and health without a caller
                 └───► not allowed ──► Status

Queries and `Accept` are parsed once the caller is known; those of other callers are limited first."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.errors import AdapterError
from apiservice.auth.caller import UNAUTHENTICATED, Unauthorized
from apiservice.auth.callers import Callers
from apiservice.http import health
from apiservice.http.query_parameters import check_bounds
from apiservice.http.read_paths import AS_PAGE, Read
from apiservice.http.replies import json_reply
from apiservice.http.request_attributes import attributes_of
from apiservice.http.status import BadRequest, MethodNotAllowed, PathUnknown, status_of
from apiservice.metrics_api import discovery, openapi
from apiservice.metrics_api.reads import MetricReads
from apiservice.upstream.client import AGENT
from apiservice.upstream.live import Upstream, Upstreams

logger = logging.getLogger(__name__)


class ApiServer:
    """The ASGI application of the HTTPS port.

    `of_both_ports`: the routes of `health`. `others`: those of this port alone. `count_read` receives each read's
    metric, "upstream" or "other", and code.
    """

    def __init__(
        self,
        apis: Sequence[MetricReads],
        callers: Callers,
        of_both_ports: APIRouter,
        *,
        count_read: Callable[[str, int], None],
        version: str,
        upstreams: Sequence[Upstreams] = (),
        others: Sequence[APIRouter] = (),
    ) -> None:
        names = {api.group: partial(self._names, api) for api in apis}
        without_metric = discovery.routes_without_metric(names)
        routers = (of_both_ports, *others, discovery.routes(names), without_metric, openapi.routes(names, version))
        self._others = _framework(*routers)
        self._apis = apis
        self._upstreams = {group.path: each for each in upstreams for group in each.groups}
        self._callers = callers
        self._count_read = count_read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(scope) if scope["type"] == "http" else None
        await (self._others if response is None else response)(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response | None:
        """Answers reads of metrics and refuses callers; returns None if another route must answer."""
        api, read = self._read_of(scope)
        upstream = None if api is None or read is None else self._upstream_for(api, read.metric, scope)
        response: Response | None = None
        try:
            await self._admit(scope)
            if api is not None and read is not None:
                if scope["method"] == "GET":
                    query = scope["query_string"]
                    asking = api.answer(read, query) if upstream is None else upstream.answer(api.group, read, query)
                    response = await asking
                else:
                    response = refusal(MethodNotAllowed())
        except AdapterError as error:
            if isinstance(error, Unauthorized):
                # The reply omits the reason. Logged at DEBUG, so that clients without credentials cannot fill the log.
                logger.debug("credentials refused: %s", error)
            response = refusal(error)
        except Exception as error:
            logger.exception("%s %r failed", scope["method"], scope["path"])
            response = refusal(error)
        if api is not None and read is not None and response is not None:
            name = api.spelled(read.metric) or ("other" if upstream is None else "upstream")
            self._count_read(name, response.status_code)
        return response

    def _names(self, api: MetricReads) -> tuple[str, ...]:
        """Returns what discovery lists."""
        upstreams = self._upstreams.get(api.path)
        return api.resources if upstreams is None else upstreams.names_beside(api.resources)

    def _read_of(self, scope: Scope) -> tuple[MetricReads, Read] | tuple[None, None]:
        if scope["query_string"] == AS_PAGE:
            return None, None
        for api in self._apis:
            read = api.read_of(scope["path"])
            if read is not None:
                return api, read
        return None, None

    def _upstream_for(self, api: MetricReads, metric: str, scope: Scope) -> Upstream | None:
        """Our metrics win, also for those who may not read them. What an adapter asks for is not passed on again."""
        upstreams = self._upstreams.get(api.path)
        if upstreams is None or api.spelled(metric) or (b"user-agent", AGENT.encode()) in scope["headers"]:
            return None
        return upstreams.current

    async def _admit(self, scope: Scope) -> None:
        """Returns if the caller is known and allowed."""
        if scope["path"] in health.PATHS:
            check_bounds(scope)
            return
        caller = await self._callers.identify(scope)
        if UNAUTHENTICATED in caller.groups:
            check_bounds(scope)
        else:
            scope["state"]["connection"].recognise()
        attributes = attributes_of(scope["method"], scope["path"], scope["query_string"])
        await self._callers.authorize(caller, attributes)


def create_metrics_app(of_both_ports: APIRouter) -> ASGIApp:
    """Builds the application of the plain HTTP port: our own metrics and health."""
    app = _framework(of_both_ports)

    async def bounded(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            check_bounds(scope)
        except BadRequest as error:
            return await refusal(error)(scope, receive, send)
        return await app(scope, receive, send)

    return bounded


def refusal(error: Exception) -> Response:
    """Returns the error's Status as JSON."""
    status = status_of(error)
    return json_reply(status.body(), status.code, {"allow": "GET"} if status.code == 405 else None)


def _framework(*routers: APIRouter) -> FastAPI:
    """Returns FastAPI with these routes alone, and every error turned into a Status."""

    async def refuse(_: Request, error: Exception) -> Response:
        if isinstance(error, StarletteHTTPException):  # routes raise only 404 and 405
            error = MethodNotAllowed() if error.status_code == 405 else PathUnknown()
        return refusal(error)

    refused = (StarletteHTTPException, AdapterError, Exception)
    app = FastAPI(openapi_url=None, redirect_slashes=False, exception_handlers=dict.fromkeys(refused, refuse))
    for router in routers:
        app.include_router(router)
    return app
