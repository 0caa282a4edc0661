"""A cluster of three brokers and one group, and its cycles: what the tests of the cycle begin with."""

from adapter.settings.models import Settings
from tests.support import samples
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.rig import Rig
from tests.support.samples import wants

ORDERS_0, ORDERS_1, ORDERS_2 = ("orders", 0), ("orders", 1), ("orders", 2)
SILENT_2 = "broker 2 at kafka-2:9092 does not answer"
BILLING = wants(group="billing")


def kafka() -> Kafka:
    """Three brokers that lead a partition each; billing, coordinated by broker 2, is 3 + 10 + 0 behind."""
    return Kafka(
        topics={"orders": [1, 2, 3]},
        commits={"billing": {ORDERS_0: 7, ORDERS_1: 10, ORDERS_2: 5}},
        coordinators={"billing": 2},
        ends={ORDERS_0: 10, ORDERS_1: 20, ORDERS_2: 5},
    )


def running(cluster: Kafka | None = None, settings: Settings | None = None) -> Rig:
    """After its first cycle."""
    rig = Rig(cluster or kafka(), settings)
    rig.run()
    return rig


def given(**rule: object) -> Settings:
    return samples.settings(rules=[{"group": "billing", "topics": ["orders"], **rule}])
