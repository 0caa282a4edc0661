"""A fake cluster of which one part can go wrong, and its adapter: what the tests of faults on the wire begin with."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

import pytest

from adapter.clock import Clock
from adapter.metrics.definitions import SERVED
from adapter.settings.file import parse
from adapter.settings.models import Settings
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.wire_fake import WireFake, wire_fake
from tests.support.kubernetes.served import Served, hurried, served

CALL_SECONDS = 1.0
LONG = 60.0
"""A maxAge that no test reaches."""
ORDERS_1 = ("orders", 1)


def kafka() -> Kafka:
    """Billing, of broker 2, is 3 + 10 + 0 behind on all brokers' partitions; mail needs broker 1 alone: 19."""
    return Kafka(
        topics={"orders": [1, 2, 3], "letters": [1]},
        commits={"billing": {("orders", 0): 7, ORDERS_1: 10, ("orders", 2): 5}, "mail": {("letters", 0): 1}},
        coordinators={"billing": 2, "mail": 1},
        ends={("orders", 0): 10, ORDERS_1: 20, ("orders", 2): 5, ("letters", 0): 20},
    )


def settings(*clusters: object, max_age: float = LONG, **parts: object) -> Settings:
    return hurried(parse({"clusters": list(clusters), **parts}, SERVED), interval=0.05, max_age=max_age)


@pytest.fixture
def fake() -> Iterator[WireFake]:
    with wire_fake(kafka()) as brokers:
        yield brokers


@pytest.fixture(autouse=True)
def nothing_unforeseen(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No cycle failed with an unexpected error, and the library's thread kept running."""
    yield
    traces = [record.getMessage() for record in caplog.records if record.exc_info and record.name.startswith("adapter")]
    crashes = [record.getMessage() for record in caplog.records if "IO loop crashed" in record.getMessage()]
    assert traces + crashes == []


@contextlib.contextmanager
def starting(fake: WireFake, max_age: float = LONG, clock: Clock | None = None, **parts: object) -> Iterator[Served]:
    """From the first cycle on."""
    with served(settings(fake.cluster(), max_age=max_age, **parts), clock, CALL_SECONDS) as running:
        yield running


@contextlib.contextmanager
def reading(fake: WireFake, max_age: float = LONG, clock: Clock | None = None, **parts: object) -> Iterator[Served]:
    """After both groups were read."""
    with starting(fake, max_age, clock, **parts) as running:
        running.wait_for_lag(13, "billing")
        running.wait_for_lag(19, "mail")
        yield running


def one_of(**numbers: Sequence[int]) -> Callable[[str, int, float], bool]:
    """Group -> the numbers that are true at one time or another."""
    return lambda group, value, _: value in numbers[group]
