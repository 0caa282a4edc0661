"""A broker that the adapter reaches and the controllers do not: others lead in its place, and it does not know."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from adapter.cluster.coordinators import OFFSETS_TOPIC
from adapter.collector.inventory import LIVING_SECONDS
from local.forwarder import Forwarder, forwarder
from local.kafka.admin import admin
from local.kafka.broker import Broker, Kafka, joining_broker, kafka
from local.kafka.settings import CONTROLLER_LISTENER
from local.kafka.tools import commit, produce
from local.processes import free_port, wait_until
from tests.support.real.in_process import in_process
from tests.support.real.placing import WAIT_SECONDS, group_names, leader, make_offsets_topic, placed_topic

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
        cluster = stack.enter_context(kafka(home, brokers=2))
        controllers = {broker.node_id: broker.ports[CONTROLLER_LISTENER] for broker in cluster.brokers}
        doors = {node: stack.enter_context(forwarder(target)) for node, target in controllers.items()}
        for door in doors.values():
            door.release()
        reached_at = {node: door.port for node, door in doors.items()}
        third = stack.enter_context(joining_broker(home, JOINING, port, controllers=reached_at))
        own = stack.enter_context(forwarder(third.port, port=port))
        own.release()
        third.wait_until_ready({1, 2, JOINING})
        yield Joined(cluster, third, list(doors.values()))


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
    at_first = replace(cluster, bootstrap_servers=f"127.0.0.1:{first.port}")
    with (
        in_process(cluster, collection={"groups": {"include": ["deposed-.*"]}}) as rig,
        admin(at_first.bootstrap_servers) as client,
    ):
        rig.wait_for_lag(60, reader)
        rig.wait_for_lag(90, kept)
        began = rig.clock.monotonic()
        for door in joined.doors:
            door.hold()
        for topic, partition in ((TOPIC, 0), (OFFSETS_TOPIC, 1)):
            wait_until(lambda t=topic, p=partition: leader(client, t, p) in {1, 2}, f"{topic} to move", WAIT_SECONDS)
        produce(at_first, TOPIC, 1000)
        commit(at_first, kept, {(TOPIC, 0): 100})
        rig.put_forward(began - rig.clock.monotonic())  # no regular look comes meanwhile
        for _ in range(2):
            rig.put_forward(LIVING_SECONDS)
            rig.run_once()

        assert (rig.lag(reader), rig.lag(kept)) == (1060, 1000)
