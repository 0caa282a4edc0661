"""Brokers that take one group per request, each at its own pace. The brokers are fake."""

import contextlib
from collections.abc import Iterator

import pytest

from adapter import clock
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.spoilt_cluster import fake, nothing_unforeseen, one_of, reading, settings
from tests.support.kafka.wire_fake import LIST_OFFSETS, OFFSET_FETCH, VERSIONS, WireFake, wire_fake
from tests.support.kubernetes.served import Served, Watcher, served

__all__ = ["fake", "nothing_unforeseen"]

SINGLY = {**VERSIONS, OFFSET_FETCH: (0, 7)}


@contextlib.contextmanager
def many_groups(counts: dict[int, int], paces: dict[int, float]) -> Iterator[tuple[WireFake, Served]]:
    """Node -> how many groups it coordinates, each 3 behind, and the seconds that it takes for each answer."""
    groups = {f"group-{node}-{number:03}": node for node, count in counts.items() for number in range(count)}
    places = [("orders", 0), ("orders", 1), ("orders", 2)]
    kafka = Kafka(
        topics={"orders": [1, 2, 3]},
        commits={group: dict.fromkeys(places, 7) for group in groups},
        coordinators=groups,
        ends=dict.fromkeys(places, 8),
    )
    with wire_fake(kafka) as brokers:
        brokers.versions = SINGLY
        brokers.pace = {(node, OFFSET_FETCH): pace for node, pace in paces.items()}
        with served(settings(brokers.cluster())) as running:
            yield brokers, running


def errors(running: Served) -> dict[str, float]:
    """Cause -> how many requests have failed because of it."""
    found = (sample for metric in running.telemetry.registry.collect() for sample in metric.samples)
    return {
        sample.labels["cause"]: sample.value
        for sample in found
        if sample.name == "kafka_lag_adapter_broker_errors_total" and sample.value
    }


def new_errors(running: Served, cycles: int) -> set[str]:
    """The causes of requests that fail during so many cycles. On a busy machine, a broker may miss any deadline."""
    before = errors(running)
    running.wait_for_cycles(cycles)
    return {cause for cause, count in errors(running).items() if count > before.get(cause, 0)}


def test_a_slow_broker_is_read_completely_and_is_not_silent() -> None:
    """Each of them would take longer than a call may, were all its groups requested at once."""
    with many_groups({1: 65, 2: 17, 3: 7}, {1: 0.05, 2: 0.2, 3: 0.5}) as (brokers, running):
        running.wait_for(lambda: not new_errors(running, cycles=1))
        lags = {group: running.lag(group) for group in brokers.kafka.commits}

    assert lags == dict.fromkeys(lags, 3)


def test_a_broker_that_falls_silent_is_noticed_with_one_wave_and_named(fake: WireFake) -> None:
    fake.versions = SINGLY
    fake.kafka.commits |= {f"group-{number}": {("letters", 0): 1} for number in range(50)}
    fake.kafka.coordinators |= {f"group-{number}": 2 for number in range(50)}
    with reading(fake) as running, Watcher(running, ["billing", "mail"], one_of(billing=[13], mail=[19])) as watcher:
        before = fake.asked[2, OFFSET_FETCH]
        fake.kafka.silent = {2}
        running.wait_for(lambda: any("broker 2 at" in cause for cause in running.causes("group-49")))
        said, asked = running.causes("group-49"), fake.asked[2, OFFSET_FETCH]
    watcher.check()
    assert said == {f"broker 2 at {fake.address(2)} does not answer"}
    assert asked - before < 2 * 51, "the rest of one cycle, and one wave of the next one"


@pytest.mark.parametrize(
    ("versions", "suspended"),
    [(VERSIONS, 0.0), (SINGLY, 0.0), (VERSIONS, 3600.0)],
    ids=["all groups at once", "one group per request", "after the machine was suspended"],
)
def test_a_throttle_that_takes_up_the_deadline_is_not_silence(
    fake: WireFake, versions: dict[int, tuple[int, int]], suspended: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call may take 1 s, of which a throttle of 0.95 s leaves the broker too little to answer."""
    now = clock.monotonic
    monkeypatch.setattr(clock, "monotonic", lambda: now() + suspended)
    fake.versions = versions
    with reading(fake) as running, Watcher(running, ["billing", "mail"], one_of(billing=[13], mail=[19])) as watcher:
        fake.pace = dict.fromkeys(((1, OFFSET_FETCH), (1, LIST_OFFSETS)), 0.1)
        fake.throttle_ms, fake.is_muted = 950, True
        running.wait_for(lambda: new_errors(running, cycles=3) == {"throttled"})
    watcher.check()
    assert watcher.refusals == {"billing": [], "mail": []}
