"""Three real brokers: two that a level group needs, and a third that it does not need and that can be delayed."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import CoordinatorLoadInProgressError

from local.forwarder import Forwarder, forwarder
from local.kafka.admin import admin
from local.kafka.broker import Kafka, kafka
from local.kafka.settings import OUTSIDE_LISTENER
from local.kafka.tools import commit
from local.processes import wait_until

TOPIC, FAR_TOPIC = "level", "far"
PARTITIONS = 2
TIMEOUT_SECONDS = 120.0
CANDIDATES = 20
"""Kafka selects a group's coordinator by its name, so names are tried until each wanted broker coordinates one."""


@dataclass(frozen=True, slots=True)
class LateBroker:
    cluster: Kafka
    door: Forwarder
    """In front of the third broker for clients of the outside listener, who are not delayed elsewhere."""
    group: str
    """Coordinated by the first broker; reads `TOPIC`, whose partitions the first and the second lead."""
    far_group: str
    """Coordinated by the third broker, which leads its topic as well."""


@contextlib.contextmanager
def late_broker(home: Path) -> Iterator[LateBroker]:
    # With one replica nothing that the first two brokers hold waits for the third.
    properties = {"offsets.topic.replication.factor": "1"}
    with kafka(home, brokers=3, has_outside=True, properties=properties) as cluster:
        first, second, third = cluster.brokers
        with admin(cluster.bootstrap_servers) as client:
            near = {0: [first.node_id], 1: [second.node_id]}
            client.create_topics(
                [
                    NewTopic(TOPIC, replica_assignments=near),
                    NewTopic(FAR_TOPIC, replica_assignments={0: [third.node_id]}),
                ]
            )
            names = [f"group-{number}" for number in range(CANDIDATES)]
            for name in names:
                commit(cluster, name, {(TOPIC, 0): 0})
            group, far_group = (_coordinated_by(client, broker.node_id) for broker in (first, third))
            client.delete_groups([name for name in names if name not in {group, far_group}])
            commit(cluster, far_group, {(FAR_TOPIC, 0): 0})
        port = cluster.outside_port
        assert port is not None
        with forwarder(third.ports[OUTSIDE_LISTENER], port=port) as door:
            door.release()
            yield LateBroker(cluster, door, group, far_group)


def _coordinated_by(client: KafkaAdminClient, node: int) -> str:
    found: list[str] = []

    def is_found() -> bool:
        with contextlib.suppress(CoordinatorLoadInProgressError):
            found[:] = sorted(listed["group_id"] for listed in client.list_groups(broker_ids=[node]))
        return bool(found)

    wait_until(is_found, f"a group that broker {node} coordinates", TIMEOUT_SECONDS)
    return found[0]
