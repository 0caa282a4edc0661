"""What operators and time do to topics and groups of a real Kafka, beyond what the demo needs."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import CommitFailedError, NoError, RetriableError
from kafka.protocol.admin import AlterClientQuotasRequest
from kafka.protocol.consumer import OffsetCommitRequest

from local.kafka.admin import admin
from local.kafka.broker import Kafka
from local.processes import wait_until

WAIT_SECONDS = 120.0


def delete_records(cluster: Kafka, topic: str, partition: int, before: int) -> None:
    """Delete everything before that offset: it is the new log start."""
    with admin(cluster.bootstrap_servers) as client:
        client.delete_records({TopicPartition(topic, partition): before})


def add_partitions(cluster: Kafka, topic: str, total: int) -> None:
    with admin(cluster.bootstrap_servers) as client:
        client.create_partitions({topic: total})
        wait_until(lambda: _led(client, topic) == total, f"{total} partitions of topic {topic}", WAIT_SECONDS)


def create_topic_with(cluster: Kafka, topic: str, **properties: str) -> None:
    """One partition; in the names of `properties` underscores stand for dots."""
    configs = {name.replace("_", "."): value for name, value in properties.items()}
    with admin(cluster.bootstrap_servers) as client:
        client.create_topics([NewTopic(topic, 1, 1, topic_configs=configs)])
        wait_until(lambda: _led(client, topic) == 1, f"a leader of topic {topic}", WAIT_SECONDS)


def set_property(cluster: Kafka, topic: str, name: str, value: str) -> None:
    """Change a topic, and wait until the broker goes by it."""
    with admin(cluster.bootstrap_servers) as client:
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})])

        def is_known() -> bool:
            found = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
            return bool(found["topic"][topic].get(name, {}).get("value") == value)

        wait_until(is_known, f"{name} of topic {topic} to be {value}", WAIT_SECONDS)


def produce_with_key(cluster: Kafka, topic: str, count: int, key: bytes) -> None:
    servers = cluster.bootstrap_servers.split(",")
    with contextlib.closing(KafkaProducer(bootstrap_servers=servers)) as producer:
        sent = [producer.send(topic, key=key, value=b"%d" % number) for number in range(count)]
        for message in sent:
            message.get(timeout=WAIT_SECONDS)


def readable(cluster: Kafka, topic: str) -> int:
    """How many messages of its partition 0 a consumer gets from the start to the end."""
    partition = TopicPartition(topic, 0)
    with contextlib.closing(KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers.split(","))) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end, count = consumer.end_offsets([partition])[partition], 0
        while consumer.position(partition) < end:
            count += sum(len(messages) for messages in consumer.poll(timeout_ms=100).values())
    return count


def delete_group(cluster: Kafka, group: str) -> None:
    with admin(cluster.bootstrap_servers) as client:
        assert client.delete_groups([group]) == {group: "OK"}


def delete_commits(cluster: Kafka, group: str, partitions: Iterable[tuple[str, int]]) -> None:
    """What expiry does as well: tombstones in the offsets topic."""
    with admin(cluster.bootstrap_servers) as client:
        errors = client.delete_group_offsets(group, [TopicPartition(*partition) for partition in partitions])
    assert set(errors.values()) == {NoError}


def commit_and_expire(cluster: Kafka, group: str, topic: str, offset: int) -> None:
    """Commit for partition 0; the broker's next look for expired commits removes it. Works on a single broker."""
    commit = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    # Later versions lack the retention of a single commit, so that all would wait for offsets.retention.minutes.
    request = OffsetCommitRequest(
        group_id=group,
        member_id="",
        retention_time_ms=1,
        topics=[commit(name=topic, partitions=[partition])],
        max_version=4,
    )
    with admin(cluster.bootstrap_servers) as client:
        response = client._manager.run(client._manager.send, request)
    assert [each.error_code for topic in response.topics for each in topic.partitions] == [0]


def state_of(cluster: Kafka, group: str) -> str:
    """Returns the state that Kafka reports, such as Stable or Empty; no text while the group's coordinator moves."""
    with contextlib.suppress(RetriableError), admin(cluster.bootstrap_servers) as client:
        return str(client.describe_groups([group])[group]["group_state"])
    return ""


@contextlib.contextmanager
def member(cluster: Kafka, group: str, *topics: str, assignor: object = None) -> Iterator[KafkaConsumer]:
    """The only member of its group, which is Stable; it commits nothing by itself."""
    with contextlib.closing(joining(cluster, group, *topics, assignor=assignor)) as consumer:
        wait_until(lambda: _has_joined(consumer), f"group {group} to be Stable", WAIT_SECONDS)
        yield consumer


def joining(
    cluster: Kafka,
    group: str,
    *topics: str,
    session_seconds: int = 45,
    assignor: object = None,
) -> KafkaConsumer:
    """A member that joins when it polls; whoever calls closes it."""
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=session_seconds * 1_000,
        metadata_max_age_ms=1_000,  # until it has seen the topic, it is assigned nothing
        **({} if assignor is None else {"partition_assignment_strategy": [assignor]}),
    )
    consumer.subscribe(list(topics))
    # A member that joins before it knows its topics assigns itself nothing, and may never be heard of again.
    for topic in topics:
        consumer.partitions_for_topic(topic)
    return consumer


def commit_as_member(consumer: KafkaConsumer, topic: str, offset: int) -> None:
    """Commit for partition 0 of `topic`, once the member has joined again if its group rebalances meanwhile."""

    def is_committed() -> bool:
        with contextlib.suppress(CommitFailedError, RetriableError):
            consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)})
            return True
        consumer.poll(timeout_ms=100, max_records=1)
        return False

    wait_until(is_committed, f"offset {offset} of {topic} to be committed by a member", WAIT_SECONDS)


@contextlib.contextmanager
def rebalancing(cluster: Kafka, group: str, topic: str) -> Iterator[None]:
    """A second member joins a group whose first one does not come back to join again: everybody waits."""
    # Where it cannot leave within its time to close, the group is soon rid of it all the same.
    newcomer = joining(cluster, group, topic, session_seconds=6)

    def is_waited_for() -> bool:
        newcomer.poll(timeout_ms=100)
        return state_of(cluster, group) == "PreparingRebalance"

    try:
        wait_until(is_waited_for, f"group {group} to rebalance", WAIT_SECONDS)
        yield
        assert state_of(cluster, group) == "PreparingRebalance"
    finally:
        newcomer.close(timeout_ms=1_000)  # it would wait for the other to join first


@contextlib.contextmanager
def transactions(cluster: Kafka, name: str) -> Iterator[KafkaProducer]:
    """A producer whose every message needs a transaction."""
    servers = cluster.bootstrap_servers.split(",")
    with contextlib.closing(KafkaProducer(bootstrap_servers=servers, transactional_id=name)) as producer:
        producer.init_transactions()
        yield producer


@contextlib.contextmanager
def quota(cluster: Kafka, client_id: str, key: str, value: float) -> Iterator[None]:
    """A quota for every client of that id, while the block runs."""
    _alter_quota(cluster, client_id, {"key": key, "value": value, "remove": False})
    try:
        yield
    finally:
        _alter_quota(cluster, client_id, {"key": key, "value": 0.0, "remove": True})


def _alter_quota(cluster: Kafka, client_id: str, operation: Mapping[str, object]) -> None:
    entity = AlterClientQuotasRequest.EntryData.EntityData(entity_type="client-id", entity_name=client_id)
    entry = AlterClientQuotasRequest.EntryData(
        entity=[entity], ops=[AlterClientQuotasRequest.EntryData.OpData(**operation)]
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
    with admin(cluster.bootstrap_servers) as client:
        # The library knows the request, but its admin client has no method for it.
        response = client._manager.run(client._manager.send, request)
    assert [entry.error_code for entry in response.entries] == [0]


def _has_joined(consumer: KafkaConsumer) -> bool:
    consumer.poll(timeout_ms=100, max_records=1)
    return bool(consumer.assignment())


def _led(client: object, topic: str) -> int:
    (described,) = client.describe_topics([topic])  # type: ignore[attr-defined]  # the library has no types
    return sum(partition["leader_id"] >= 0 for partition in described["partitions"])
