"""The route of the series: a text in pieces, written in a thread, compressed where that is wanted."""

import asyncio
import gzip
import threading
from collections.abc import Iterator

import pytest
from fastapi import APIRouter
from starlette.types import ASGIApp

from adapter.conditions import Conditions
from apiservice.app import create_metrics_app
from apiservice.http import health
from apiservice.http.group_series import MOST_AT_ONCE, GroupSeriesRoute, Pieces
from tests.support.kubernetes.fakes import ask, asked

PATH = "/metrics/groups"
CONTENT_TYPE = "text/plain; version=0.0.4"


def port(router: APIRouter) -> ASGIApp:
    routes = health.routes(Conditions(), threading.Event(), lambda: (b"", CONTENT_TYPE), router)
    return create_metrics_app(routes)


@pytest.fixture
def made(request: pytest.FixtureRequest) -> Iterator[GroupSeriesRoute]:
    route = GroupSeriesRoute(request.param, CONTENT_TYPE)
    yield route
    route.thread.stop(60.0)


def two_pieces() -> Iterator[bytes]:
    yield b"lag 1\n"
    yield f"thread {threading.current_thread().name.startswith('group-series')}\n".encode()


@pytest.mark.parametrize("made", [two_pieces], indirect=True)
def test_the_pieces_are_made_in_a_thread_of_their_own(made: GroupSeriesRoute) -> None:
    answer = ask(port(made.router), "GET", PATH)

    assert (answer.code, answer.headers["content-type"]) == (200, CONTENT_TYPE)
    assert answer.body == b"lag 1\nthread True\n"


@pytest.mark.parametrize("made", [two_pieces], indirect=True)
def test_they_are_compressed_for_who_accepts_it(made: GroupSeriesRoute) -> None:
    answer = ask(port(made.router), "GET", PATH, [("accept-encoding", "deflate, gzip")])

    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(answer.body) == b"lag 1\nthread True\n"


@pytest.mark.parametrize("made", [lambda: None], indirect=True)
def test_without_series_there_is_no_such_path(made: GroupSeriesRoute) -> None:
    assert ask(port(made.router), "GET", PATH).is_status(404, "the server could not find the requested resource")


def test_one_reader_too_many_is_refused_until_another_has_ended() -> None:
    gate = threading.Event()

    def waiting() -> Iterator[bytes]:
        assert gate.wait(60)
        yield b"lag 1\n"

    pieces: Pieces = waiting
    route = GroupSeriesRoute(pieces, CONTENT_TYPE)
    app = port(route.router)

    async def codes() -> tuple[int, list[int], int]:
        readers = [asyncio.create_task(asked(app, "GET", PATH)) for _ in range(MOST_AT_ONCE)]
        await asyncio.sleep(0)
        while route.readers < MOST_AT_ONCE:
            await asyncio.sleep(0.001)
        refused = await asked(app, "GET", PATH)
        gate.set()
        done = [(await reader).code for reader in readers]
        return refused.code, done, (await asked(app, "GET", PATH)).code

    assert asyncio.run(codes()) == (503, [200] * MOST_AT_ONCE, 200)
    route.thread.stop(60.0)
