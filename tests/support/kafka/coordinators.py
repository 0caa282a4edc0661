"""A cluster of four brokers whose groups belong to partitions of the offsets topic by their names, as in Kafka."""

from collections.abc import Sequence

from adapter.cluster.coordinators import OFFSETS_TOPIC, partition_of
from adapter.metrics.problems import NoMatch, ValueUnavailable
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig
from tests.support.kafka.small_cluster import ORDERS_0

NODES = (1, 2, 3, 4)
PARTITIONS = 8


def named(partition: int, number: int = 0) -> str:
    """A group that belongs to the partition."""
    names = (name for name in (f"group-{n}" for n in range(1000)) if partition_of(name, PARTITIONS) == partition)
    return [next(names) for _ in range(number + 1)][number]


def cluster(leaders: Sequence[int], *groups: str) -> Kafka:
    """One topic, at broker 1; each group is 3 behind."""
    return Kafka(
        topics={"orders": [1], OFFSETS_TOPIC: list(leaders)},
        generations={OFFSETS_TOPIC: "a", "orders": "b"},
        epochs={OFFSETS_TOPIC: [0] * len(leaders)},
        commits={group: {ORDERS_0: 7} for group in groups},
        ends={ORDERS_0: 10},
        nodes=NODES,
    )


def move(kafka: Kafka, partition: int, node: int) -> None:
    kafka.topics[OFFSETS_TOPIC][partition] = node
    kafka.epochs[OFFSETS_TOPIC][partition] += 1


def rig_of(kafka: Kafka, cycles: int = 1, **settings: object) -> Rig:
    rig = Rig(kafka, samples.settings(**settings))
    rig.run(cycles)
    return rig


def is_absent(rig: Rig, group: str) -> bool:
    try:
        rig.lag(group)
    except NoMatch:
        return True
    except ValueUnavailable:
        pass
    return False


LEADERS = [1, 2, 3, 1, 2, 3, 4, 4]
READ, UNREAD = named(0), named(6)
