"""A single broker that the controller counts as dead for a moment: its Metadata then names no broker at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.kafka.answers import Answer
from local.kafka.broker import Kafka, kafka
from local.kafka.settings import session_settings
from local.kafka.tools import commit, create_topic, produce
from local.processes import wait_until
from tests.support.real.in_process import InProcess, in_process
from tests.support.real.placing import WAIT_SECONDS
from tests.support.real.versions import needs_kafka

TOPIC, GROUP = "fenced-orders", "fenced"
SESSION_SECONDS, HEARTBEAT_SECONDS = 5.0, 8.0
"""The controller fences the broker in each pause between two heartbeats, as it fences one that was frozen."""


@pytest.fixture
def cluster(rig_home: Path) -> Iterator[Kafka]:
    properties = {
        **session_settings(SESSION_SECONDS),
        "broker.heartbeat.interval.ms": f"{1000 * HEARTBEAT_SECONDS:.0f}",
    }
    with kafka(rig_home / "fenced-broker", properties=properties) as broker:
        yield broker


def is_fenced(rig: InProcess) -> bool:
    answer = rig.brokers.topology([None])[None]
    return isinstance(answer, Answer) and not answer.content.brokers


def has_run_while_fenced(rig: InProcess) -> bool:
    if not is_fenced(rig):
        return False
    rig.run_full_cycle()
    return is_fenced(rig)


@needs_kafka(3, 3, "a broker that is its own controller")
def test_a_single_broker_that_was_fenced_is_read_again_as_soon_as_it_is_alive(cluster: Kafka) -> None:
    create_topic(cluster, TOPIC)
    produce(cluster, TOPIC, 100)
    commit(cluster, GROUP, {(TOPIC, 0): 40})
    with in_process(cluster) as rig:
        rig.wait_for_lag(60, GROUP)
        wait_until(lambda: has_run_while_fenced(rig), "a cycle without brokers in Metadata", WAIT_SECONDS)
        served = rig.lag(GROUP)
        produce(cluster, TOPIC, 5)
        rig.wait_for_lag(65, GROUP)

    assert served == 60
