"""Groups of every kind on a real broker: who is in them, what they read, and how far behind they are."""

from collections.abc import Set
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.structs import OffsetAndMetadata

from adapter.cluster.groups import GroupStatus, Kind, Listing, Phase
from adapter.kafka.answers import Answer
from adapter.kafka.versions import negotiated
from adapter.metrics.problems import NoMatch
from adapter.verdicts.assignment import Sharing
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, described, produce
from local.processes import wait_until
from tests.support.real.changes import WAIT_SECONDS, commit_as_member, member
from tests.support.real.group_members import (
    CONSUMER,
    KIP_848,
    SHARE_CONSUMER,
    console,
    join_as_connect_worker,
    lines,
    set_group_property,
    share_lags,
    streams_member,
)
from tests.support.real.in_process import InProcess, in_process
from tests.support.real.versions import LISTS_STATES, needs_kafka

SHARE_OFFSETS = 90
"""The key of DescribeShareGroupOffsets."""


def test_a_classic_groups_members_and_topics_are_described(one_broker: Kafka) -> None:
    create_topic(one_broker, "kinds-classic")
    with member(one_broker, "classic", "kinds-classic"), in_process(one_broker) as rig:
        rig.run_once()

        assert status(rig, "classic") == GroupStatus(Kind.CLASSIC, listed(Phase.STABLE))
        assert description(rig, "classic", Kind.CLASSIC) == ({"kinds-classic"}, {("kinds-classic", 0)})


@pytest.fixture(scope="module")
def two_topics(one_broker: Kafka) -> tuple[str, str]:
    """Of three and two partitions, with messages in each."""
    topics = {"kinds-three": 3, "kinds-two": 2}
    for topic, partitions in topics.items():
        create_topic(one_broker, topic, partitions)
        produce(one_broker, topic, 10)
    return "kinds-three", "kinds-two"


@pytest.mark.parametrize(("assignor", "most"), [(RangePartitionAssignor, 3), (RoundRobinPartitionAssignor, 5)])
def test_as_many_replicas_as_can_have_a_partition_with_the_assignor_of_the_members(
    one_broker: Kafka, two_topics: tuple[str, str], assignor: object, most: int
) -> None:
    """Also after the only member has left: nothing else says how those that follow will share the topics."""
    group = f"sharing-{most}"
    rule = {"group": group, "topics": list(two_topics), "replicas": {"lagPerReplica": 1}}
    with in_process(one_broker, rules=[rule]) as rig:
        with member(one_broker, group, *two_topics, assignor=assignor) as consumer:
            commit_as_member(consumer, two_topics[0], 0)
            rig.wait_for(lambda: rig.value("replicas", group=group) == most, f"{most} replicas")
        rig.wait_for(lambda: members(rig, group) == 0, "the member to be gone")

        assert rig.value("replicas", group=group) == most


@needs_kafka(4, 0, "KIP-848")
def test_a_group_of_the_new_protocol_counts_what_its_members_read(one_broker: Kafka, tmp_path: Path) -> None:
    read, left, group = "kip848-read", "kip848-left", "kip848"
    for topic in (read, left):
        create_topic(one_broker, topic)
        produce(one_broker, topic, 10)
    commit(one_broker, group, {(read, 0): 4, (left, 0): 1})
    with in_process(one_broker) as rig:
        rig.run_once()
        assert rig.lag(group) == 15, "an Empty group may come back to both"

        with console(CONSUMER, one_broker, group, read, tmp_path / "member.log", *KIP_848) as process:
            # A member that a busy machine holds up for too long reads some of it twice.
            wait_until(lambda: lines(process) >= 6, "the rest to be consumed", WAIT_SECONDS, alive=[process])
            produce(one_broker, read, 5)
            rig.wait_for(lambda: rig.lag(group) <= 5, "the topic that nobody reads to be left out")

            assert status(rig, group) == GroupStatus(Kind.CONSUMER, Phase.STABLE)
            assert description(rig, group, Kind.CONSUMER) == ({read}, {(read, 0)})
            assert sharing(rig, group) is Sharing.TOGETHER
            assert isinstance(rig.refusal("lag", group=group, topic=left), NoMatch)
            assert members(rig, group) == 1


@needs_kafka(4, 2, "streams groups")
def test_a_streams_application_counts_its_sources_and_its_repartition_topics(one_broker: Kafka) -> None:
    """The member is one at protocol level: it joins as Kafka Streams does, and reads nothing."""
    source, internal, left, application = "streams-in", "streams-app-by-key-repartition", "streams-left", "streams-app"
    create_topic(one_broker, source, partitions=2)
    for topic in (left, internal):
        create_topic(one_broker, topic)
    for topic in (source, left, internal):
        produce(one_broker, topic, 10)
    commit(one_broker, application, {(source, 0): 2, (source, 1): 1, (internal, 0): 3, (left, 0): 0})
    with streams_member(one_broker, application, source, internal), in_process(one_broker) as rig:
        rig.run_once()

        assert status(rig, application) == GroupStatus(Kind.STREAMS, Phase.STABLE)
        assert description(rig, application, Kind.STREAMS) == (
            {source, internal},
            {(source, 0), (source, 1), (internal, 0)},
        )
        assert members(rig, application) == 1
        assert sharing(rig, application) is Sharing.TOGETHER, "its two subtopologies have tasks of their own"
        assert rig.lag(application, source) == 7
        assert rig.lag(application) == 7 + 7
        assert isinstance(rig.refusal("lag", group=application, topic=left), NoMatch)


@needs_kafka(4, 2, "share groups with DescribeShareGroupOffsets")
def test_the_lag_of_a_share_group_is_the_brokers_own(one_broker: Kafka, tmp_path: Path) -> None:
    topic, group = "shared", "sharers"
    create_topic(one_broker, topic, partitions=2)
    produce(one_broker, topic, 12)
    set_group_property(one_broker, group, "share.auto.offset.reset", "earliest")
    with in_process(one_broker) as rig:
        with console(SHARE_CONSUMER, one_broker, group, topic, tmp_path / "member.log") as process:
            # What it has not acknowledged in 30 s comes again.
            wait_until(lambda: lines(process) >= 12, "all to be consumed", WAIT_SECONDS, alive=[process])
            rig.wait_for_lag(0, group)

            assert status(rig, group) == GroupStatus(Kind.SHARE, Phase.STABLE)
            assert description(rig, group, Kind.SHARE) == ({topic}, {(topic, 0), (topic, 1)})
            assert sharing(rig, group) is Sharing.SEVERAL_READERS
            rig.run_full_cycle()
            assert members(rig, group) == 1
            process.stop()
        produce(one_broker, topic, 7, partition=0)
        produce(one_broker, topic, 2, partition=1)
        rig.wait_for_lag(9, group)
        rig.wait_for(lambda: members(rig, group) == 0, "the member to be gone")

        assert share_lags(one_broker, group) == {(topic, 0): 7, (topic, 1): 2}
        assert rig.lag(group, topic, partition="0") == 7
        assert rig.value("records_lag_max", group=group) == 7

    with in_process(one_broker) as rig:
        as_an_older_broker(rig, SHARE_OFFSETS, 0)
        rig.run_once()
        assert 9 <= rig.lag(group) <= 12 + 9, "without the broker's count, what lies behind the start is all there is"

    with in_process(one_broker) as rig:
        as_an_older_broker(rig, SHARE_OFFSETS, None)
        rig.run_once()
        assert f"the progress of share group {group} cannot be read: broker 1 at " in str(
            rig.refusal("lag", group=group)
        )


def test_a_consumer_that_assigns_its_partitions_counts_like_any_other(one_broker: Kafka) -> None:
    """It never joins: its group is Empty all the time, and its commits advance."""
    topic = group = "assigned"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 10)
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(
        bootstrap_servers=one_broker.bootstrap_servers.split(","), group_id=group, enable_auto_commit=False
    )
    with closing(consumer), in_process(one_broker) as rig:
        consumer.assign([partition])
        for position in (4, 9):
            consumer.commit({partition: OffsetAndMetadata(position, "", -1)})
            rig.run_full_cycle()
            assert rig.lag(group) == 10 - position

        assert status(rig, group) == GroupStatus(Kind.CLASSIC, listed(Phase.EMPTY))
    assert described(one_broker, group)[topic, 0].lag == 1


def test_workers_of_kafka_connect_are_not_taken_for_a_group(one_broker: Kafka) -> None:
    """The worker is one at protocol level; the sink's consumers beside it are a group like any other."""
    create_topic(one_broker, "connect-in")
    produce(one_broker, "connect-in", 3)
    commit(one_broker, "connect-sink", {("connect-in", 0): 1})
    join_as_connect_worker(one_broker, "connect-workers")
    with in_process(one_broker) as rig:
        rig.run_once()

        assert rig.is_unknown(group="connect-workers")
        assert "connect-workers" not in listing(rig).groups
        assert rig.lag("connect-sink") == 2


def as_an_older_broker(rig: InProcess, api_key: int, newest: int | None) -> None:
    """The connection believes that the broker knows the request up to that version, or not at all."""
    rig.brokers.connect()
    listing(rig)
    connections = rig.brokers._manager._conns.values()
    for connection in connections:
        offered = {key: span for key, span in connection.versions.offered.items() if key != api_key}
        if newest is not None:
            offered[api_key] = (0, newest)
        connection.versions = negotiated(offered)


def listing(rig: InProcess) -> Listing:
    """What the one broker lists; the rig has connected before."""
    answer = rig.brokers.groups([1])[1]
    assert isinstance(answer, Answer)
    return answer.content


def listed(phase: Phase) -> Phase:
    """What a listing tells of it."""
    return phase if LISTS_STATES else Phase.UNKNOWN


def status(rig: InProcess, group: str) -> GroupStatus | None:
    return listing(rig).statuses.get(group)


def members(rig: InProcess, group: str) -> int | None:
    """What the cycle hands to the history."""
    return rig.cycle._members.counts.get(group)


def sharing(rig: InProcess, group: str) -> Sharing:
    (view,) = rig.store.views
    return view.sharing_of(group)


def description(rig: InProcess, group: str, kind: Kind) -> tuple[Set[str], Set[tuple[str, int]]]:
    """What the only member reads, and which partitions it owns."""
    answer = rig.brokers.described({1: [group]}, kind)[1]
    assert isinstance(answer, Answer)
    found = answer.content[group]
    assert found is not None
    assert (found.members, len({one.member for one in found.owned})) == (1, 1)
    return found.topics, {(one.topic, partition) for one in found.owned for partition in one.partitions}
