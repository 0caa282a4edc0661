"""Reads that take long: made beside the event loop, once for all who ask the same."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import pytest

from adapter.metrics.problems import NoMatch, ValueUnavailable
from adapter.metrics.query import Metrics
from adapter.metrics.selection import effort_of, selection_of
from apiservice.metrics_api.label_selector import parse
from tests.support.kafka.questions import BILLING, SHIPPING
from tests.support.kubernetes.fakes import GATE_SECONDS, LAG, LAG_OF_ORDERS, NAMESPACE, Answer, FakeMetrics, House
from tests.support.samples import SteppedClock, row, settings, store_of, view

LAG_NAME = "kafka_consumergroup_lag"
BACKLOG = f"{NAMESPACE}/billing-backlog"
LARGE = 100_000


@dataclass
class Gated:
    """A house where reading the lag is large and waits for the gate; another metric is small."""

    gate: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        answers = {LAG_NAME: (LAG_OF_ORDERS,), "billing-backlog": (LAG_OF_ORDERS,)}
        metrics = FakeMetrics(answers, steps={LAG_NAME: LARGE}, gates={LAG_NAME: self.gate})
        self.house = House(metrics=metrics)


@pytest.fixture
def gated() -> Iterator[Gated]:
    made = Gated()
    yield made
    made.gate.set()
    made.house.replies.thread.stop(GATE_SECONDS)


async def until_asked(metrics: FakeMetrics, count: int) -> None:
    async with asyncio.timeout(GATE_SECONDS):
        while len(metrics.asked) < count:
            await asyncio.sleep(0.001)


def test_a_small_read_is_answered_while_a_large_one_is_being_made(gated: Gated) -> None:
    async def ask() -> tuple[Answer, bool, Answer]:
        listing = asyncio.create_task(gated.house.asked("GET", LAG))
        await until_asked(gated.house.metrics, 1)
        small = await gated.house.asked("GET", BACKLOG)
        was_waiting = not listing.done()
        gated.gate.set()
        return small, was_waiting, await listing

    small, was_waiting, large = asyncio.run(ask())

    assert (small.code, was_waiting, large.code) == (200, True, 200)


def test_a_small_read_is_made_without_another_thread(gated: Gated) -> None:
    gated.house.get(BACKLOG)
    gated.gate.set()
    gated.house.get(LAG)

    small, large = gated.house.metrics.threads
    assert small == threading.current_thread().name
    assert large.startswith("large-reads")


def test_who_ask_the_same_at_once_share_one_reading(gated: Gated) -> None:
    async def ask() -> list[Answer]:
        tasks = [asyncio.create_task(gated.house.asked("GET", LAG)) for _ in range(25)]
        await until_asked(gated.house.metrics, 1)
        gated.gate.set()
        return await asyncio.gather(*tasks)

    answers = asyncio.run(ask())

    assert {answer.code for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 1
    assert len(gated.house.metrics.asked) == 1


def test_who_asks_after_a_newer_cycle_does_not_get_the_older_reading(gated: Gated) -> None:
    async def ask() -> list[Answer]:
        older = asyncio.create_task(gated.house.asked("GET", LAG))
        await until_asked(gated.house.metrics, 1)
        gated.house.metrics.version = 2
        newer = asyncio.create_task(gated.house.asked("GET", LAG))
        for _ in range(5):
            await asyncio.sleep(0)
        gated.gate.set()
        return [await older, await newer]

    answers = asyncio.run(ask())

    assert [answer.code for answer in answers] == [200, 200]
    assert len(gated.house.metrics.asked) == 2


@pytest.mark.parametrize(
    "error",
    [
        ValueUnavailable("lag of group billing is 95 s old, limit 60 s"),
        NoMatch("no group payments; near it: billing"),
        ZeroDivisionError("password=secret"),
    ],
)
def test_an_error_of_a_large_read_is_the_same_status(gated: Gated, error: Exception) -> None:
    gated.gate.set()
    gated.house.metrics.answers = {LAG_NAME: error}
    large = gated.house.get(LAG)
    gated.house.metrics.steps = {}
    small = gated.house.get(LAG)

    assert large == small
    assert large.code >= 400
    assert gated.house.metrics.threads[0] != gated.house.metrics.threads[1]


def test_a_large_reply_is_kept_like_any_other_and_an_error_is_not(gated: Gated) -> None:
    gated.gate.set()
    gated.house.metrics.answers = {LAG_NAME: ValueUnavailable("not yet")}
    refused = gated.house.get(LAG)
    gated.house.metrics.answers = {LAG_NAME: (LAG_OF_ORDERS,)}
    first, second = gated.house.get(LAG), gated.house.get(LAG)

    assert (refused.code, first.code) == (503, 200)
    assert first == second
    assert len(gated.house.metrics.asked) == 2


def test_a_caller_who_goes_away_leaves_the_answer_for_the_others(gated: Gated) -> None:
    async def ask() -> Answer:
        leaving, staying = (asyncio.create_task(gated.house.asked("GET", LAG)) for _ in range(2))
        await until_asked(gated.house.metrics, 1)
        leaving.cancel()
        await asyncio.wait((leaving,))
        gated.gate.set()
        return await staying

    assert asyncio.run(ask()).code == 200
    assert len(gated.house.metrics.asked) == 1


def test_a_very_long_selector_is_taken_apart_beside_the_loop() -> None:
    house = House()
    answer = house.get(f"{LAG}?labelSelector={'a,' * 5000}a")
    refused = house.get(f"{LAG}?labelSelector={'a,' * 5000}a=(")
    watched = house.get(f"{LAG}?pad={'x' * 5000}&watch=true")
    house.replies.thread.stop(GATE_SECONDS)

    assert answer.code == 200
    assert house.metrics.threads[0].startswith("large-reads")
    assert refused.is_status(400, "unable to parse requirement")
    assert watched.code == 405


# What counts as large

MANY = view({(f"group-{g}", f"topic-{t}", p): row(5, 10) for g, t, p in product(range(50), range(40), range(2))})
SELECTORS = [
    "",
    "group=group-7",
    "group in (group-7,group-8,nobody)",
    "group!=group-7",
    "group=nobody",
    "topic=topic-3",
    "group=group-7,topic=topic-3",
    "group=group-7,topic=none",
    "partition=1",
    "group=group-7,partition=1",
    "group notin (group-1),partition>0",
]


@pytest.mark.parametrize("selector", SELECTORS)
def test_effort_is_never_less_than_what_is_chosen(selector: str) -> None:
    asked = parse(selector)
    chosen = selection_of(MANY, asked, stale_too=True)

    assert effort_of(MANY, asked) >= len(chosen.groups) + len(chosen.entries)


@pytest.mark.parametrize(
    ("selector", "effort"),
    [
        ("group=group-7", 41),
        ("group=group-7,topic=topic-3", 41),
        ("group in (group-7,group-8,nobody)", 82),
        ("group=group-7,partition=1", 41 + 8),
        ("", 2050),
        ("group!=group-7", 2050),
        ("group!=group-7,group!=group-8,group!=group-9", 3 * 2050),
        ("partition=1", 2050 + 400),
        ("group=nobody", 2050),
        ("group=group-7,topic=none", 2050),
    ],
)
def test_effort_is_what_has_to_be_looked_at(selector: str, effort: int) -> None:
    assert effort_of(MANY, parse(selector)) == effort


def test_effort_is_that_of_the_clusters_and_groups_that_the_question_reaches() -> None:
    own = [{"name": "backlog", "value": "lag", "cluster": "main", "group": "billing"}]
    metrics = Metrics(
        settings(clusters=[{"name": name, "bootstrapServers": ["a:9092"]} for name in ("main", "west")], metrics=own),
        store_of(view({**BILLING, **SHIPPING}), view(SHIPPING, cluster="west")),
        SteppedClock(),
    )

    assert metrics.effort(LAG_NAME, ()) == (2 + 3) + (1 + 1)
    assert metrics.effort(LAG_NAME, parse("cluster=west")) == 2
    assert metrics.effort("Backlog", ()) == 1 + 2
    assert metrics.effort("nope", ()) == 0
