"""Brokers that say how long they do not read the connection: as Kafka, Event Hubs and Confluent Cloud throttle."""

import pytest

from adapter.kafka.failures import OVER_QUOTA
from tests.support.kafka.spoilt_cluster import fake, nothing_unforeseen, one_of, reading
from tests.support.kafka.wire_fake import LIST_OFFSETS, METADATA, OFFSET_FETCH, VERSIONS, WireFake
from tests.support.kubernetes.served import Served, Watcher

__all__ = ["fake", "nothing_unforeseen"]

OLD = {**VERSIONS, OFFSET_FETCH: (0, 7), LIST_OFFSETS: (0, 2), METADATA: (0, 5)}
"""The library takes such a broker for Kafka 1.0, which throttled without a word."""


@pytest.mark.parametrize("versions", [VERSIONS, OLD], ids=["newest", "old"])
def test_a_short_throttle_is_waited_for(fake: WireFake, versions: dict[int, tuple[int, int]]) -> None:
    fake.versions = versions
    with (
        reading(fake) as running,
        Watcher(running, ["billing", "mail"], one_of(billing=[13], mail=[19, 18])) as watcher,
    ):
        fake.throttle_ms, fake.is_muted = 150, True
        running.wait_for_cycles(3)
        fake.kafka.commits["mail"]["letters", 0] = 2
        running.wait_for_lag(18, "mail")
        running.wait_for(lambda: not running.causes("billing") | running.causes("mail"))
    watcher.check()


@pytest.mark.parametrize("versions", [VERSIONS, OLD], ids=["newest", "old"])
def test_a_throttle_beyond_the_deadline_is_named_and_the_last_values_stay(
    fake: WireFake, versions: dict[int, tuple[int, int]]
) -> None:
    fake.versions = versions
    with (
        reading(fake) as running,
        Watcher(running, ["billing", "mail"], one_of(billing=[13], mail=[19, 18])) as watcher,
    ):
        fake.throttle_ms, fake.is_muted = 4_000, True
        running.wait_for(lambda: all(OVER_QUOTA in cause for cause in running.causes("mail")) and has_cause(running))
        labels = {"cluster": "main", "cause": "throttled"}
        assert running.telemetry.registry.get_sample_value("kafka_lag_adapter_broker_errors_total", labels)
        fake.throttle_ms, fake.is_muted = 0, False
        fake.kafka.commits["mail"]["letters", 0] = 2
        running.wait_for_lag(18, "mail")
    watcher.check()
    assert watcher.refusals == {"billing": [], "mail": []}


def has_cause(running: Served) -> bool:
    return bool(running.causes("mail"))
