"""A cluster of three brokers of another maker, whose groups belong to brokers by another hash than Kafka's."""

from adapter.kafka.versions import Versions
from tests.support.kafka.coordinators import cluster
from tests.support.kafka.fake_cluster import Kafka

OLD = Versions(offset_fetch=7, find_coordinator=3)
LEADERS = [1, 2, 3] * 5 + [1]
"""Of the partitions of the offsets topic."""


def by_another_hash(group: str) -> int:
    return len(group) % 3 + 1


def of_another_maker(*groups: str, **parts: object) -> Kafka:
    kafka = cluster(LEADERS, *groups)
    kafka.nodes, kafka.place = (1, 2, 3), by_another_hash
    for name, value in parts.items():
        setattr(kafka, name, value)
    return kafka
