"""The routes of the status page: who may read it, what comes with it, and how many are made at the same time."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapter.conditions import Conditions
from adapter.metrics.query import Metrics
from adapter.reload.live_metrics import LiveMetrics
from apiservice.autoscalers.followed import Autoscalers
from apiservice.status_page import route
from apiservice.status_page.route import MOST_AT_ONCE, StatusPage
from tests.support.kubernetes.fakes import LAG, FakeCallers, House
from tests.support.kubernetes.hpas import external, hpa
from tests.support.samples import SteppedClock, row, settings, store_of, view
from tests.support.status_pages import autoscalers

ROWS = {("billing", "orders", 0): row(0, 12_000), ("mail", "orders", 0): row(1, 10)}
AS_PAGE = f"{LAG}?output=html"


@dataclass
class Door(House):
    """The HTTPS port with a status page of real metrics; a page waits for the gate."""

    gate: threading.Event = field(default_factory=threading.Event)
    threads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        given = settings(rules=[{"group": "billing", "namespaces": ["shop"]}])
        real = Metrics(given, store_of(view(ROWS, settings=given)), SteppedClock())
        hpas = SimpleNamespace(current=autoscalers(hpa("consumer", external(group="billing"))))
        self.live = _Gated(self, real, given)
        self.page = StatusPage(
            cast("LiveMetrics", self.live), cast("Autoscalers", hpas), Conditions(), "kafka-lag-adapter-0", "0.1.0"
        )
        self.app = self.app_with(lambda _: (self.page.router,))
        self.gate.set()


@dataclass
class _Gated:
    door: Door
    real: Metrics
    settings: Any

    @property
    def current(self) -> Metrics:
        self.door.threads.append(threading.current_thread().name)
        assert self.door.gate.wait(120)
        return self.real


@pytest.fixture
def door() -> Iterator[Door]:
    made = Door()
    yield made
    made.gate.set()
    made.page.stop(5.0)


def test_a_reader_of_everything_gets_a_page_of_html_that_allows_no_script(door: Door) -> None:
    answer = door.get("/status")

    assert (answer.code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.body.startswith(b"<!DOCTYPE html>")
    assert b"billing" in answer.body
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-cache, private"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_the_page_is_made_off_the_event_loop(door: Door) -> None:
    door.get("/status")

    assert all(name.startswith("status-page") for name in door.threads)


def test_below_the_api_group_a_reader_sees_what_its_namespace_may_read(door: Door) -> None:
    shop, mall = door.get(AS_PAGE), door.get(AS_PAGE.replace("shop", "mall"))

    assert (shop.code, mall.code) == (200, 200)
    assert b"billing" in shop.body
    assert b"shop/consumer" in shop.body
    assert b"billing" not in mall.body
    assert b"shop/consumer" not in mall.body


def test_the_reviews_are_those_of_the_path_and_of_listing_the_metric(door: Door) -> None:
    callers = FakeCallers()
    door.app._callers = callers  # type: ignore[assignment] # as the door's own, but empty
    door.get("/status")
    door.get(AS_PAGE)

    of_path, of_metric = callers.reviewed
    assert (of_path.verb, of_path.path, of_path.resource) == ("get", "/status", "")
    assert (of_metric.verb, of_metric.resource, of_metric.namespace) == ("list", "kafka_consumergroup_lag", "shop")


@pytest.mark.parametrize("path", ["/status", AS_PAGE])
def test_who_may_not_read_gets_no_page(path: str) -> None:
    strict = Door(callers=FakeCallers(allowed=frozenset()))

    assert strict.get(path).code == 403
    assert strict.get(path, authorization="").code == 403
    assert strict.get(path, authorization="Bearer nobody").code == 401
    assert strict.threads == []
    strict.page.stop(5.0)


def test_without_the_query_the_path_is_a_read_as_ever(door: Door) -> None:
    assert door.get(LAG).headers["content-type"] == "application/json"


def test_the_query_makes_a_page_of_no_other_metric(door: Door) -> None:
    other = door.get(f"{LAG.replace('_lag', '_members')}?output=html")

    assert other.is_status(404, "the server could not find the requested resource")


def test_the_page_can_only_be_read(door: Door) -> None:
    assert door.ask("POST", "/status").is_status(405, "the server does not allow this method")
    assert door.ask("DELETE", AS_PAGE).is_status(405, "the server does not allow this method")


def test_who_asks_at_the_same_time_shares_a_page_and_one_page_too_many_is_refused(door: Door) -> None:
    door.gate.clear()

    async def codes() -> tuple[list[int], int, list[int]]:
        paths = ["/status", *(AS_PAGE.replace("shop", f"shop-{number}") for number in range(MOST_AT_ONCE - 1))]
        readers = [asyncio.create_task(door.asked("GET", path)) for path in (*paths, *paths)]
        while door.page.under_way < MOST_AT_ONCE:
            await asyncio.sleep(0.001)
        refused = (await door.asked("GET", AS_PAGE)).code
        door.gate.set()
        done = [(await reader).code for reader in readers]
        return done, refused, [(await door.asked("GET", AS_PAGE)).code]

    assert asyncio.run(codes()) == ([200] * 2 * MOST_AT_ONCE, 503, [200])


def test_the_thread_rests_before_the_next_page(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    class Stopping(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            slept.append(timeout or 0.0)
            return False

    monkeypatch.setattr(door.page, "_stopping", Stopping())
    monkeypatch.setattr(route, "REST", 1e9)
    monkeypatch.setattr(route, "LONGEST_REST_SECONDS", 3600.0)

    assert [door.get(path).code for path in ("/status", AS_PAGE)] == [200, 200]
    assert slept[0] == 0.0
    assert 0.0 < slept[1] <= 3600.0


def test_the_end_waits_for_a_page_no_longer_than_it_may(door: Door) -> None:
    door.gate.clear()

    async def stop() -> bool:
        reader = asyncio.create_task(door.asked("GET", "/status"))
        while not door.threads:
            await asyncio.sleep(0.001)
        await asyncio.to_thread(door.page.stop, 0.01)
        is_hanging = door.page.is_hanging
        door.gate.set()
        assert (await reader).code == 200
        return is_hanging

    assert asyncio.run(stop())


def test_the_end_does_not_wait_for_the_rest(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "REST", 1e9)
    monkeypatch.setattr(route, "LONGEST_REST_SECONDS", 3600.0)
    door.get("/status")

    async def stop() -> int:
        reader = asyncio.create_task(door.asked("GET", AS_PAGE))
        while not door.page.under_way:
            await asyncio.sleep(0.001)
        await asyncio.to_thread(door.page.stop, 120.0)
        return (await reader).code

    assert asyncio.run(stop()) == 503
    assert not door.page.is_hanging


def pages_made(door: Door) -> int:
    return sum(name.startswith("status-page") for name in door.threads)


def test_a_page_is_reused_for_a_while(door: Door) -> None:
    bodies = {door.get("/status").body for _ in range(3)}

    assert (pages_made(door), len(bodies)) == (1, 1)
    door.get(AS_PAGE)
    assert pages_made(door) == 2


def test_a_page_that_is_too_old_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "REUSED_SECONDS", 0.0)
    door = Door()
    for _ in range(2):
        door.get("/status")
    door.page.stop(5.0)

    assert pages_made(door) == 2


def test_no_page_outlives_the_settings_that_say_who_may_read_what(door: Door) -> None:
    door.get(AS_PAGE.replace("shop", "mall"))
    door.live.settings = settings()
    door.get(AS_PAGE.replace("shop", "mall"))

    assert pages_made(door) == 2
