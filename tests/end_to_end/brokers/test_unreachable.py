"""A broker that other brokers reach and the adapter does not: it matters to the groups that it alone can know."""

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.protocol.metadata import FindCoordinatorRequest

from adapter.cluster.coordinators import OFFSETS_TOPIC
from adapter.kafka.passport import meet
from adapter.metrics.problems import ValueUnavailable
from adapter.settings.models import Cluster
from apiservice.doctor.kafka import checks_of
from local.forwarder import Forwarder, forwarder
from local.kafka.admin import admin, living_brokers
from local.kafka.broker import Broker, Kafka, joining_broker, kafka
from local.kafka.tools import commit, produce
from local.processes import wait_until
from tests.support.checks import broken
from tests.support.real.in_process import in_process
from tests.support.real.placing import (
    OFFSETS_PARTITIONS,
    WAIT_SECONDS,
    group_names,
    leader,
    make_offsets_topic,
    move,
    offsets_partition,
    placed_topic,
)

TOPIC, JOINING, MOVED = "unreached-orders", 3, 1
"""Topic, node, and the partition of the offsets topic that the node leads in some tests."""
CALL_SECONDS = 5.0
"""What the brokers that are not behind the door keep to, also on a busy machine."""
MET_SECONDS = 8.0
"""The same; a silent broker takes three of them."""
NAMES = [
    "billing",
    "Billing Service/eu",
    "gruppe-\u00e4",
    "\u65e5\u672c\u8a9e",
    "\U0001f600",
    "polygenelubricants",
    "x" * 249,
]


class Joined(NamedTuple):
    """Two brokers, with a topic and a group at the first; and a third that joins behind the door."""

    cluster: Kafka
    home: Path
    group: str
    nobody: str
    """A group of the same partition that does not exist."""


@pytest.fixture(scope="module")
def joined(rig_home: Path) -> Iterator[Joined]:
    home = rig_home / "joined-brokers"
    with kafka(home, brokers=2) as cluster:
        first, _ = cluster.brokers
        placed_topic(cluster, TOPIC, [first])
        make_offsets_topic(cluster, TOPIC)
        produce(cluster, TOPIC, 100)
        names = group_names(cluster, "unreached", first, 0)
        group, nobody = next(names), next(names)
        commit(cluster, group, {(TOPIC, 0): 60})
        yield Joined(cluster, home, group, nobody)


@pytest.fixture
def door() -> Iterator[Forwarder]:
    """Where the third broker says it is; shut."""
    with forwarder(0) as found:
        yield found


def test_a_broker_that_joins_at_an_unreachable_address_matters_to_no_group(joined: Joined, door: Forwarder) -> None:
    with in_process(joined.cluster, call_seconds=CALL_SECONDS) as rig:
        rig.wait_for(lambda: rig.value("records_lag_max", topic=TOPIC) == 100, "both groups")
        assert rig.lag(joined.group) == 40
        with third_broker(joined, door), door.held():
            asked = f"broker {JOINING} at 127.0.0.1:{door.port} does not answer"

            def failures() -> set[str]:
                return {failure.text for failure in rig.run_full_cycle().failures}

            # The third broker of another test may still be known at its own address.
            wait_until(lambda: asked in failures(), "a cycle that asks the third broker", WAIT_SECONDS)
            for _ in range(6):
                assert failures() <= {asked}
                assert rig.lag(joined.group) == 40
                assert rig.value("records_lag_max", topic=TOPIC) == 100
                assert rig.is_unknown(group=joined.nobody)


def test_a_start_beside_a_frozen_broker_refuses_only_the_groups_that_it_coordinates(
    joined: Joined, door: Forwarder
) -> None:
    first, _ = joined.cluster.brokers
    with third_broker(joined, door) as third, moved_to(joined.cluster, third, first):
        names = (f"at-the-third-{number}" for number in range(100))
        theirs, nobody = [name for name in names if offsets_partition(name) == MOVED][:2]
        commit(joined.cluster, theirs, {(TOPIC, 0): 10})
        with in_process(joined.cluster, call_seconds=CALL_SECONDS) as rig:
            with door.held():
                rig.wait_for_lag(40, joined.group)
                for _ in range(3):
                    assert rig.lag(joined.group) == 40
                    assert rig.is_unknown(group=joined.nobody)
                    for asked in ({"group": theirs}, {"group": nobody}, {"topic": TOPIC}):
                        refused = rig.refusal("lag", **asked)
                        assert isinstance(refused, ValueUnavailable)
                        assert f"broker {JOINING} at 127.0.0.1:{door.port} has not listed its groups yet" in str(
                            refused
                        )
                    assert {item.labels["group"] for item in rig.read("lag").values} >= {joined.group}
                    rig.run_full_cycle()
            rig.wait_for_lag(90, theirs)

            rig.wait_for(lambda: rig.value("records_lag_max", topic=TOPIC) == 100, "the sum over all groups")
            assert rig.is_unknown(group=nobody)


def test_doctor_finds_a_broker_that_accepts_connections_and_does_not_answer(joined: Joined, door: Forwarder) -> None:
    """As a bootstrap server, and as one that the others name."""
    silent = f"127.0.0.1:{door.port}"
    servers = [*joined.cluster.bootstrap_servers.split(","), silent]
    with third_broker(joined, door), door.held():
        found = [*checks_of(meet(Cluster.model_validate({"name": "main", "bootstrapServers": servers}), MET_SECONDS))]

    assert broken(found) == {
        "KLA205": f"bootstrap server {silent} does not answer",
        "KLA207": f"broker {JOINING} at {silent} does not answer",
    }


def coordinator(client: KafkaAdminClient, asked: Broker, group: str) -> int:
    """Returns its node id, in a version of the request that all brokers have."""
    request = FindCoordinatorRequest(key=group, key_type=0, max_version=3)
    return int(client._manager.run(client._manager.send, request, asked.node_id).node_id)


def test_kafka_coordinates_every_group_where_its_name_says(joined: Joined, door: Forwarder) -> None:
    """Its own answer to FindCoordinator, against the hash and the leaders in Metadata, once all brokers know of the
    move: each hears of it at its own time."""
    first, _ = joined.cluster.brokers
    names = [*NAMES, *(f"group-{number}" for number in range(300))]
    with (
        third_broker(joined, door) as third,
        moved_to(joined.cluster, third, first),
        admin(joined.cluster.bootstrap_servers) as client,
    ):

        def is_coordinated_by_the_leaders() -> bool:
            leaders = [leader(client, OFFSETS_TOPIC, partition) for partition in range(OFFSETS_PARTITIONS)]
            return set(leaders) == {1, 2, JOINING} and {name: coordinator(client, first, name) for name in names} == {
                name: leaders[offsets_partition(name)] for name in names
            }

        wait_until(is_coordinated_by_the_leaders, "every group to be coordinated as its name says", WAIT_SECONDS)


@contextlib.contextmanager
def third_broker(joined: Joined, door: Forwarder) -> Iterator[Broker]:
    """Known to the other two, and behind the open door."""
    with joining_broker(joined.home, JOINING, door.port) as broker:
        door.lead_to(broker.port)
        door.release()
        broker.wait_until_ready({JOINING})  # it counts as alive some tenths of a second before it listens
        for one in joined.cluster.brokers:
            wait_until(partial(knows_at, one, JOINING, door.port), f"{one.node_id} to know broker 3", WAIT_SECONDS)
        yield broker


def knows_at(broker: Broker, node: int, port: int) -> bool:
    """Whether the broker has heard of the node at this port; it may have been elsewhere before."""
    try:
        with admin(f"127.0.0.1:{broker.port}") as client:
            return living_brokers(client).get(node) == port
    except KafkaError:
        return False  # it was sent on to where the node was before


@contextlib.contextmanager
def moved_to(cluster: Kafka, broker: Broker, back: Broker) -> Iterator[None]:
    """The broker leads a partition of the offsets topic meanwhile."""
    with admin(cluster.bootstrap_servers) as client:
        move(client, OFFSETS_TOPIC, MOVED, [broker.node_id, back.node_id])
        try:
            yield
        finally:
            move(client, OFFSETS_TOPIC, MOVED, [back.node_id])
