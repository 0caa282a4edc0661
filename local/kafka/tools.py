"""What demo, tests and benchmarks do with the local Kafka: topics, messages, commits; and Kafka's own lag."""

import re
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import NamedTuple

from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaTimeoutError, NoError, RetriableError, TopicAlreadyExistsError
from kafka.protocol.metadata import MetadataRequest
from kafka.structs import OffsetAndMetadata

from local.downloads import KAFKA_RELEASE
from local.kafka.admin import admin
from local.kafka.broker import Kafka
from local.kafka.java import java
from local.processes import RigError, scratch, start, wait_until

TIMEOUT_SECONDS = 120.0
KNOW_SECONDS = 15
# Kafka moved its tools to this package in 3.8.
IS_MOVED = KAFKA_RELEASE >= (3, 8)
GROUP_COMMAND = f"{'org.apache.kafka.tools.consumer.group' if IS_MOVED else 'kafka.admin'}.ConsumerGroupCommand"
DESCRIBED_ROW = re.compile(
    r"^(?P<group>\S.*?) +(?P<topic>[\w.-]+) +(?P<partition>\d+) +"
    r"(?P<committed>\d+|-) +(?P<log_end>\d+|-) +(?P<lag>-?\d+|-) ",
    re.MULTILINE,
)


class Described(NamedTuple):
    """One partition of a group as Kafka's own command shows it; None for its dash, which means unknown."""

    committed: int | None
    log_end: int | None
    lag: int | None


def create_topic(cluster: Kafka, name: str, partitions: int = 1, replication: int = 1) -> None:
    """Creates a topic and waits until the brokers report a leader for every partition."""
    with admin(cluster.bootstrap_servers) as client:
        topic = NewTopic(name, partitions, replication)
        wait_until(lambda: _is_created(client, topic), f"topic {name} to be created", TIMEOUT_SECONDS)
        wait_until(lambda: _has_leaders(client, name, partitions), f"leaders of topic {name}", TIMEOUT_SECONDS)


def delete_topic(cluster: Kafka, name: str) -> None:
    """Deletes a topic and waits until no broker lists it: one that does still accepts messages and commits for it."""
    nodes: list[int | None] = [broker.node_id for broker in cluster.brokers]
    with admin(cluster.bootstrap_servers) as client:
        client.delete_topics([name])
        for node in nodes or [None]:
            wait_until(partial(_is_gone, client, node, name), f"topic {name} to be gone", TIMEOUT_SECONDS)


def produce(cluster: Kafka, topic: str, count: int, partition: int | None = None) -> None:
    """Writes `count` messages of some bytes into one partition, or spread evenly; raises the broker's error, if any."""
    with closing(_producer(cluster, topic)) as producer:
        partitions = sorted(producer.partitions_for(topic)) if partition is None else [partition]
        sent = [
            producer.send(topic, value=b"%d" % number, partition=partitions[number % len(partitions)])
            for number in range(count)
        ]
        producer.flush(timeout=TIMEOUT_SECONDS)
        for message in sent:
            message.get(timeout=TIMEOUT_SECONDS)


def commit(cluster: Kafka, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commits offsets for a group without members, as an operator would; (topic, partition) -> offset."""
    positions = {TopicPartition(*key): OffsetAndMetadata(offset, "", -1) for key, offset in offsets.items()}
    wait_until(lambda: _is_committed(cluster, group, positions), f"the commit of group {group}", TIMEOUT_SECONDS)


def described(cluster: Kafka, group: str) -> dict[tuple[str, int], Described]:
    """Returns (topic, partition) -> what Kafka's own command says about the group; raises RigError if unknown."""
    return _described(cluster, "--group", group).get(group, {})


def described_groups(cluster: Kafka) -> dict[str, dict[tuple[str, int], Described]]:
    """Returns the same for all groups that have rows, with one start of the command."""
    return _described(cluster, "--all-groups")


def _described(cluster: Kafka, *which: str) -> dict[str, dict[tuple[str, int], Described]]:
    """Kafka's command takes a second or two, mostly for the start of Java."""
    arguments = ("--bootstrap-server", cluster.bootstrap_servers, "--describe", "--offsets", *which)
    with scratch("described") as folder:
        process = start("the group command", java(GROUP_COMMAND, *arguments, heap_megabytes=128), log=folder / "output")
        with process:
            status = process.wait(TIMEOUT_SECONDS)
        output = process.log.read_text()
    if status != 0 or re.search("^Error", output, re.MULTILINE):
        raise RigError(f"the group command ended with status {status}:\n{output}")
    groups: dict[str, dict[tuple[str, int], Described]] = {}
    for row in DESCRIBED_ROW.finditer(output):
        numbers = (None if row[name] == "-" else int(row[name]) for name in ("committed", "log_end", "lag"))
        groups.setdefault(row["group"], {})[row["topic"], int(row["partition"])] = Described(*numbers)
    return groups


def _producer(cluster: Kafka, topic: str) -> KafkaProducer:
    """Returns a producer that knows the topic. One that asks a frozen broker first is given up for another."""
    settings = {"acks": "all", "linger_ms": 10, "batch_size": 256 * 1024, "max_block_ms": KNOW_SECONDS * 1000}
    found: list[KafkaProducer] = []

    def is_found() -> bool:
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers.split(","), **settings)
        try:
            producer.partitions_for(topic)
        except KafkaTimeoutError:
            producer.close(timeout=0)
            return False
        found.append(producer)
        return True

    wait_until(is_found, f"a producer to know topic {topic}", TIMEOUT_SECONDS)
    return found[0]


def _is_created(client: KafkaAdminClient, topic: NewTopic) -> bool:
    """Returns False while ZooKeeper still deletes a topic of that name, which brokers no longer list."""
    try:
        client.create_topics([topic])
    except TopicAlreadyExistsError:
        if topic.name in client.list_topics():
            raise
        return False
    return True


def _is_gone(client: KafkaAdminClient, node: int | None, name: str) -> bool:
    """Asks this broker, or any; the library's own method always asks any."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    found = client._manager.run(client._manager.send, request, node)
    return all(topic.name != name for topic in found.topics)


def _has_leaders(client: KafkaAdminClient, topic: str, partitions: int) -> bool:
    (described_topic,) = client.describe_topics([topic])
    leaders = [partition["leader_id"] for partition in described_topic["partitions"]]
    return len(leaders) == partitions and min(leaders) >= 0


def _is_committed(cluster: Kafka, group: str, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
    """Returns False if it can be retried: at a cluster's first commit, the offsets topic is still being created."""
    try:
        # A new one each time, as it would remember a coordinator that has moved.
        with admin(cluster.bootstrap_servers) as client:
            errors = set(client.alter_group_offsets(group, positions).values()) - {NoError}
    except RetriableError:
        return False
    refused = [error.__name__ for error in errors if not error.retriable]
    if refused:
        raise RigError(f"group {group}: the commit was refused: {', '.join(refused)}")
    return not errors
