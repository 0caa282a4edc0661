"""A Metadata response that is the last one to the byte is not decoded again."""

import pytest
from kafka.protocol.metadata import MetadataResponse

from adapter.brokers import Brokers
from adapter.wire import MalformedResponse
from tests import samples

Topic = MetadataResponse.MetadataResponseTopic
Partition = Topic.MetadataResponsePartition
Broker = MetadataResponse.MetadataResponseBroker
VERSION = 12


def brokers() -> Brokers:
    return Brokers(samples.settings().clusters[0], lambda _: None)


def body(leader: int = 1, throttle: int = 0, controller: int = 1) -> bytes:
    nodes = [Broker(node_id=node, host=f"kafka-{node}", port=9092, rack=None) for node in (1, 2)]
    partitions = [
        Partition(
            error_code=0, partition_index=0, leader_id=leader, leader_epoch=0, replica_nodes=[1, 2], isr_nodes=[1]
        )
    ]
    topics = [Topic(error_code=0, name="orders", partitions=partitions)]
    made = MetadataResponse(
        throttle_time_ms=throttle,
        brokers=nodes,
        cluster_id="of some length",
        controller_id=controller,
        topics=topics,
        version=VERSION,
    )
    return bytes(made.encode())


def test_the_same_bytes_give_the_same_topology_whatever_the_throttle_and_the_controller() -> None:
    one = brokers()
    first = one._same_or_new(1, body(), VERSION)

    assert first.topics["orders"].leaders.tolist() == [1]
    assert one._same_or_new(1, body(throttle=7), VERSION) is first
    assert one._same_or_new(2, body(controller=2), VERSION) is first


def test_other_bytes_are_decoded_and_share_what_has_not_changed() -> None:
    one = brokers()
    first = one._same_or_new(1, body(), VERSION)
    moved = one._same_or_new(1, body(leader=2), VERSION)

    assert moved.topics["orders"].leaders.tolist() == [2]
    assert one._same_or_new(2, body(leader=2), VERSION).topics["orders"] is moved.topics["orders"]
    assert first.topics["orders"].leaders.tolist() == [1]


def test_what_cannot_be_read_is_malformed() -> None:
    with pytest.raises(MalformedResponse):
        brokers()._same_or_new(1, body()[:20], VERSION)
