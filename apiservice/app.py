"""The HTTP surface: authenticate, authorize, answer.

request ──► caller ──► a metric ──► MetricReads          a few lookups, without the framework
                 │ │       └──► Upstream                  what is not ours, if the settings have an upstream
                 │ └─► all else ──► FastAPI               also health, without a caller
                 └───► not allowed ──► Status

Queries and `Accept` are parsed once the caller is known; those of other callers are limited first."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from cachetools import LRUCache, TTLCache, cached
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.errors import AdapterError
from apiservice.api_group import EXTERNAL
from apiservice.auth.caller import UNAUTHENTICATED, Attributes, Callers, Unauthorized
from apiservice.auth.request_attributes import attributes_of
from apiservice.http import health
from apiservice.http.health import Readiness
from apiservice.http.negotiation import accept_and_agent, check_bounds, is_for_people
from apiservice.http.query_parameters import is_watch
from apiservice.http.replies import Endpoint, json_reply, pretty, text_reply
from apiservice.http.status import BadRequest, MethodNotAllowed, PathUnknown, Status, status_of
from apiservice.metrics_api import discovery, openapi
from apiservice.metrics_api.reads import MetricReads
from apiservice.upstream.client import AGENT
from apiservice.upstream.live import Upstream, Upstreams

logger = logging.getLogger(__name__)

EXPOSED_SECONDS = 0.1
MOST_KEPT = 4000
LONGEST_KEPT = 1000
"""Characters of path and query, in ASCII: about 20 MB in total."""

Exposition = Callable[[], tuple[bytes, str]]
"""Returns our own metrics in Prometheus's format: the bytes and their content type."""


class ApiServer:
    """The ASGI application of the HTTPS port.

    `count_read` receives each read's code and metric, or "upstream", or "other"."""

    def __init__(
        self,
        apis: Sequence[MetricReads],
        callers: Callers,
        readiness: Readiness,
        *,
        exposition: Exposition,
        count_read: Callable[[str, int], None],
        version: str,
        upstreams: Upstreams | None = None,
    ) -> None:
        names = {api.group: partial(self._names, api) for api in apis}
        documents = discovery.routes(names, version) | openapi.routes(names, version)
        endpoints = health.routes(readiness) | documents | _exposed(exposition)
        self._others = _framework(endpoints | discovery.root(endpoints))
        self._apis = apis
        self._upstreams = upstreams
        self._callers = callers
        self._count_read = count_read
        self._attributes: LRUCache[tuple[str, str, bytes], Attributes] = LRUCache(MOST_KEPT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(scope) if scope["type"] == "http" else None
        await (self._others if response is None else response)(scope, receive, send)

    def close(self) -> None:
        for api in self._apis:
            api.close()

    async def _answer(self, scope: Scope) -> Response | None:
        """Answers reads of metrics and refuses callers; returns None if another route must answer."""
        api, read = self._read_of(scope["path"])
        upstream = None if api is None or read is None else self._upstream_for(api, read[1], scope)
        response: Response | None = None
        try:
            await self._admit(scope)
            if api is not None and read is not None:
                response = await (upstream or api).answer(*read, scope)
        except AdapterError as error:
            if isinstance(error, Unauthorized):
                # The reply omits the reason. Logged at DEBUG, so that clients without credentials cannot fill the log.
                logger.debug("credentials refused: %s", error)
            response = refusal(status_of(error), scope)
        except Exception as error:
            logger.exception("%s %r failed", scope["method"], scope["path"])
            response = refusal(status_of(error), scope)
        if api is not None and read is not None and response is not None:
            name = api.spelled(read[1]) or ("other" if upstream is None else "upstream")
            self._count_read(name, response.status_code)
        return response

    def _names(self, api: MetricReads) -> tuple[str, ...]:
        """Returns what discovery lists."""
        if self._upstreams is None or api.group is not EXTERNAL:
            return api.names
        return self._upstreams.names_beside(api.names)

    def _read_of(self, path: str) -> tuple[MetricReads, tuple[str, str]] | tuple[None, None]:
        for api in self._apis:
            read = api.read_of(path)
            if read is not None:
                return api, read
        return None, None

    def _upstream_for(self, api: MetricReads, metric: str, scope: Scope) -> Upstream | None:
        """Our metrics win, also for those who may not read them. What an adapter asks for is not passed on again."""
        if self._upstreams is None or api.group is not EXTERNAL or api.spelled(metric):
            return None
        if accept_and_agent(scope)[1] == AGENT.encode():
            return None
        return self._upstreams.current

    async def _admit(self, scope: Scope) -> None:
        """Returns if the caller is known and allowed."""
        if health.is_health_path(scope["path"]):
            check_bounds(scope)
            return
        caller = await self._callers.identify(scope)
        if UNAUTHENTICATED in caller.groups:
            check_bounds(scope)
            attributes = attributes_of_request(scope)
        else:
            scope["state"]["connection"].recognise()
            attributes = self._kept_attributes(scope)
        await self._callers.authorize(caller, attributes)

    def _kept_attributes(self, scope: Scope) -> Attributes:
        key = (scope["method"], scope["path"], scope["query_string"])
        attributes = self._attributes.get(key)
        if attributes is None:
            attributes = attributes_of_request(scope)
            if sum(map(len, key)) <= LONGEST_KEPT and scope["path"].isascii():
                self._attributes[key] = attributes
        return attributes


def create_metrics_app(readiness: Readiness, exposition: Exposition) -> ASGIApp:
    """Builds the application of the plain HTTP port: our own metrics and health."""
    app = _framework(health.routes(readiness) | _exposed(exposition))

    async def bounded(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            check_bounds(scope)
        except BadRequest as error:
            await refusal(status_of(error), scope)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return bounded


def attributes_of_request(scope: Scope) -> Attributes:
    return attributes_of(scope["method"], scope["path"], is_watch(scope["query_string"]))


def refusal(status: Status, scope: Scope) -> Response:
    """Returns the Status as JSON whatever the client accepts: an error in the wrong format is better than none."""
    response = json_reply(status.body(), status.code, {"allow": "GET"} if status.code == 405 else None)
    _, agent = accept_and_agent(scope)
    return pretty(response) if is_for_people(scope["query_string"], agent) else response


def _framework(endpoints: Mapping[str, Endpoint]) -> FastAPI:
    """Returns FastAPI with these routes alone, by path, and every error turned into a Status."""

    async def refuse(request: Request, error: Exception) -> Response:
        if isinstance(error, StarletteHTTPException):  # routes raise only 404 and 405
            error = MethodNotAllowed() if error.status_code == 405 else PathUnknown()
        return refusal(status_of(error), request.scope)

    refused = (StarletteHTTPException, AdapterError, Exception)
    app = FastAPI(openapi_url=None, redirect_slashes=False, exception_handlers=dict.fromkeys(refused, refuse))
    for path, endpoint in endpoints.items():
        app.get(path)(endpoint)
    return app


def _exposed(exposition: Exposition) -> dict[str, Endpoint]:
    # Anybody may read it on the plain port, and writing it takes milliseconds.
    exposition = cached(TTLCache(1, EXPOSED_SECONDS))(exposition)

    async def own_metrics(_: Request) -> Response:
        body, content_type = exposition()
        return text_reply(body, content_type=content_type)

    return {"/metrics": own_metrics}
