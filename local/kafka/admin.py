"""kafka-python's admin client as a context manager that leaves nothing open, even if it could not connect."""

import contextlib
from collections.abc import Iterator

from kafka.admin import KafkaAdminClient
from kafka.net.compat import KafkaNetClient

from local.downloads import KAFKA_RELEASE


@contextlib.contextmanager
def admin(bootstrap_servers: str, **settings: object) -> Iterator[KafkaAdminClient]:
    """`settings` are the library's own. Raises its KafkaTimeoutError if no server accepts this client."""
    opened: list[KafkaNetClient] = []

    def open_connections(**config: object) -> KafkaNetClient:
        opened.append(KafkaNetClient(**config))
        return opened[-1]

    try:
        # A constructor that fails forgets its IO thread and sockets; so they are made here and closed here.
        with KafkaAdminClient(
            bootstrap_servers=bootstrap_servers.split(","), kafka_client=open_connections, **settings
        ) as client:
            yield client
    finally:
        for connections in opened:
            connections.close()


def living_brokers(client: KafkaAdminClient) -> dict[int, int]:
    """Returns node id -> port of the brokers that the one asked counts as alive."""
    if KAFKA_RELEASE < (4,):  # their DescribeCluster lacks fields that the library expects
        metadata = client._manager.run(client._get_cluster_metadata, [])
        return {broker["node_id"]: broker["port"] for broker in metadata["brokers"]}
    known = client.describe_cluster()["brokers"]
    return {broker["broker_id"]: broker["port"] for broker in known if not broker["is_fenced"]}
