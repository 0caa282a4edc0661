"""The fake brokers' response to Metadata: brokers, topics and leaders."""

import uuid
from typing import Any

from kafka.protocol.metadata import MetadataResponse

from benchmarks.rig.stored_cluster import StoredCluster

HOST = "127.0.0.1"
METADATA_VERSION = 11
NO_ERROR, UNKNOWN_TOPIC_OR_PARTITION = 0, 3


def metadata_frame(cluster: StoredCluster) -> bytes:
    """The response is the same for all nodes and slow to encode, so it is encoded once."""
    response = metadata_response(cluster, list(cluster.topics))
    response.API_VERSION = METADATA_VERSION
    response.with_header(0)
    return bytes(response.encode(header=True, framed=True))


def metadata_response(cluster: StoredCluster, topics: list[str]) -> Any:  # noqa: ANN401
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=node, host=HOST, port=port, rack=None)
        for node, port in enumerate(cluster.ports, start=1)
    ]
    described = [_topic(cluster, topic) for topic in topics]
    return MetadataResponse(
        throttle_time_ms=0, brokers=brokers, cluster_id="stored", controller_id=1, topics=described
    )  # fmt: skip


def _topic(cluster: StoredCluster, topic: str) -> Any:  # noqa: ANN401
    kind = MetadataResponse.MetadataResponseTopic
    number, size = cluster.topics.get(topic, (0, 0))
    partitions = [
        kind.MetadataResponsePartition(
            error_code=NO_ERROR, partition_index=index, leader_id=leader, leader_epoch=0, replica_nodes=[leader],
            isr_nodes=[leader], offline_replicas=[],
        )
        for index in range(size)
        for leader in [cluster.leader(topic, index)]
    ]  # fmt: skip
    error = NO_ERROR if size else UNKNOWN_TOPIC_OR_PARTITION
    topic_id = uuid.UUID(int=number + 1)
    return kind(error_code=error, name=topic, topic_id=topic_id, is_internal=False, partitions=partitions)
