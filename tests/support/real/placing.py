"""Who leads what on a real Kafka: topics on given brokers, groups with given coordinators, leadership that moves."""

import itertools
from collections.abc import Iterator, Sequence

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import CoordinatorLoadInProgressError

from adapter.cluster.coordinators import OFFSETS_TOPIC, partition_of
from local.kafka.admin import admin
from local.kafka.broker import Broker, Kafka
from local.kafka.tools import commit
from local.processes import wait_until

OFFSETS_PARTITIONS = 5  # as `local.kafka.settings` has it
WAIT_SECONDS = 120.0


def placed_topic(cluster: Kafka, name: str, brokers: Sequence[Broker]) -> None:
    """One partition with these replicas, the first its leader."""
    nodes = [broker.node_id for broker in brokers]
    with admin(cluster.bootstrap_servers) as client:
        client.create_topics([NewTopic(name, replica_assignments={0: nodes})])
        wait_until(lambda: leader(client, name, 0) == nodes[0], f"topic {name} on broker {nodes[0]}", WAIT_SECONDS)


def leader(client: KafkaAdminClient, topic: str, partition: int) -> int:
    """Node id, -1: there is none, or no topic yet."""
    for described in client.describe_topics([topic]):
        for one in described["partitions"]:
            if one["partition_index"] == partition:
                return int(one["leader_id"])
    return -1


def make_offsets_topic(cluster: Kafka, topic: str) -> None:
    """By a first commit."""
    commit(cluster, "the-first-to-commit", {(topic, 0): 0})


def group_names(cluster: Kafka, prefix: str, coordinator: Broker, partition: int) -> Iterator[str]:
    """Names of groups in that partition of the offsets topic, which the broker leads from now on."""
    nodes = [coordinator.node_id, *(one.node_id for one in cluster.brokers if one is not coordinator)]
    with admin(cluster.bootstrap_servers) as client:
        move(client, OFFSETS_TOPIC, partition, nodes)
    names = (f"{prefix}-{number}" for number in itertools.count())
    return (name for name in names if offsets_partition(name) == partition)


def offsets_partition(group: str) -> int:
    return partition_of(group, OFFSETS_PARTITIONS)


def move(client: KafkaAdminClient, topic: str, partition: int, nodes: Sequence[int]) -> None:
    """Give the partition these replicas, the first the preferred one, and let it lead."""
    where = TopicPartition(topic, partition)
    client.alter_partition_reassignments({where: list(nodes)})
    wait_until(lambda: not client.list_partition_reassignments(), f"{topic}/{partition} to be placed", WAIT_SECONDS)

    def is_led() -> bool:
        """An election passes over a broker that a busy machine has just taken out of the replicas in sync."""
        client.elect_leaders(0, {topic: [partition]}, raise_errors=False)
        return leader(client, topic, partition) == nodes[0]

    wait_until(is_led, f"{nodes[0]} to lead {topic}", WAIT_SECONDS)


def coordinates(client: KafkaAdminClient, node: int, group: str) -> bool:
    """False while it still loads its groups."""
    try:
        return any(listed["group_id"] == group for listed in client.list_groups(broker_ids=[node]))
    except CoordinatorLoadInProgressError:
        return False
