"""Routes for GET alone. FastAPI's own routes load pydantic's first version, which takes 1.6 MB."""

from collections.abc import Awaitable, Callable

from fastapi import Request, Response
from starlette.routing import Route

Endpoint = Callable[[Request], Awaitable[Response]]


def get_route(path: str, endpoint: Endpoint) -> Route:
    route = Route(path, endpoint)
    route.methods = {"GET"}  # Starlette adds HEAD
    return route
