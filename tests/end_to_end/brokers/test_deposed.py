"""A broker that the adapter reaches and the controllers do not: others lead in its place, and it does not know."""

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from kafka import KafkaProducer

from adapter.cluster.coordinators import OFFSETS_TOPIC
from adapter.collector.inventory import LIVING_SECONDS
from adapter.kafka.answers import Answer
from local.forwarder import Forwarder, forwarder
from local.kafka.broker import Broker, Kafka, joining_broker, kafka
from local.kafka.settings import FAR_CONTROLLER_LISTENER
from local.kafka.tools import commit, produce
from local.processes import free_port, wait_until
from tests.support.real.in_process import in_process
from tests.support.real.placing import WAIT_SECONDS, group_names, make_offsets_topic, placed_topic
from tests.support.real.versions import needs_kafka

TOPIC, JOINING = "deposed-orders", 3


class Joined(NamedTuple):
    cluster: Kafka
    third: Broker
    """Leads the topic."""
    doors: list[Forwarder]
    """Between the third broker and the controllers."""


@pytest.fixture
def joined(rig_home: Path) -> Iterator[Joined]:
    home, port = rig_home / "deposed-brokers", free_port()
    with contextlib.ExitStack() as stack:
        doors = {node: stack.enter_context(forwarder(0)) for node in (1, 2)}
        ports = {node: door.port for node, door in doors.items()}
        cluster = stack.enter_context(kafka(home, brokers=2, controller_doors=ports))
        for broker in cluster.brokers:
            doors[broker.node_id].lead_to(broker.ports[FAR_CONTROLLER_LISTENER])
            doors[broker.node_id].release()
        third = stack.enter_context(joining_broker(home, JOINING, port, controller_doors=ports))
        own = stack.enter_context(forwarder(third.port, port=port))
        own.release()
        third.wait_until_ready({1, 2, JOINING})
        yield Joined(cluster, third, list(doors.values()))


@needs_kafka(3, 9, "controllers that advertise a listener")
def test_a_broker_that_does_not_know_that_it_was_deposed_is_asked_for_twenty_seconds_at_most(joined: Joined) -> None:
    """It returns the log end and the commits of before, without an error. Two looks: it may be asked for the first."""
    cluster, third = joined.cluster, joined.third
    first, _ = cluster.brokers
    placed_topic(cluster, TOPIC, [third, first])
    make_offsets_topic(cluster, TOPIC)
    reader = next(group_names(cluster, "deposed-reader", first, 0))
    kept = next(group_names(cluster, "deposed-kept", third, 1))
    produce(cluster, TOPIC, 100)
    for group, offset in ((reader, 40), (kept, 10)):
        commit(cluster, group, {(TOPIC, 0): offset})
    with in_process(cluster, collection={"groups": {"include": ["deposed-.*"]}}) as rig:

        def has_moved(topic: str, partition: int) -> bool:
            """As the first broker knows: any other client may ask the third one."""
            answer = rig.brokers.topology([first.node_id])[first.node_id]
            assert isinstance(answer, Answer)
            return int(answer.content.topics[topic].leaders[partition]) != JOINING

        rig.wait_for_lag(60, reader)
        rig.wait_for_lag(90, kept)
        began = rig.clock.monotonic()
        for door in joined.doors:
            door.hold()
        for topic, partition in ((TOPIC, 0), (OFFSETS_TOPIC, 1)):
            wait_until(partial(has_moved, topic, partition), f"{topic} to move", WAIT_SECONDS)
        at_first = [f"127.0.0.1:{first.port}"]
        with contextlib.closing(KafkaProducer(bootstrap_servers=at_first, acks="all", request_timeout_ms=2000)) as one:
            for sent in [one.send(TOPIC, b"", partition=0) for _ in range(5)]:
                sent.get(timeout=WAIT_SECONDS)
        commit(cluster, kept, {(TOPIC, 0): 100})
        rig.put_forward(began - rig.clock.monotonic())  # no regular look comes meanwhile
        rig.run_once()
        was_believed = (rig.lag(reader), rig.lag(kept)) == (60, 90)
        for _ in range(2):
            rig.put_forward(LIVING_SECONDS)
            rig.run_once()

        assert was_believed
        assert (rig.lag(reader), rig.lag(kept)) == (65, 5)
