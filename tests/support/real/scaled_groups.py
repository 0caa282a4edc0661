"""Groups whose number of replicas the shared adapter derives: KEDA's scenarios for its Kafka scaler, a group for each.

Two topics with ten messages in each partition; nobody consumes, so that every lag stays as it was committed.
"""

from dataclasses import dataclass, field
from typing import Any

from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import Manifest

ORDERS, REFUNDS = "scaled-orders", "scaled-refunds"
TOPICS = {ORDERS: 12, REFUNDS: 3}
MESSAGES = 10
"""In each partition."""
BEYOND_THE_END = {(REFUNDS, 0): 500}
"""A commit that makes the lag unknown."""


def read(partitions: int) -> dict[tuple[str, int], int]:
    """Commits at the end of the first partitions."""
    return {(ORDERS, number): MESSAGES for number in range(partitions)}


@dataclass(frozen=True)
class Scaled:
    """A group, and the replicas that its HPA should have."""

    name: str
    replicas: int
    lag_per_replica: int
    keys: dict[str, Any] = field(default_factory=dict)
    commits: dict[tuple[str, int], int] = field(default_factory=dict)
    topics: tuple[str, ...] = (ORDERS,)
    offset_reset: str = "earliest"
    at_first: int = 2
    tolerance: str | None = "0"

    @property
    def group(self) -> str:
        return f"scaled-{self.name}"

    @property
    def rule(self) -> dict[str, Any]:
        replicas = {"lagPerReplica": self.lag_per_replica, **self.keys}
        topics = list(self.topics)
        return {"group": self.group, "topics": topics, "offsetReset": self.offset_reset, "replicas": replicas}

    def manifests(self, namespace: str) -> tuple[Manifest, Manifest]:
        """A Deployment and its HPA."""
        metadata = {"name": self.name, "namespace": namespace}
        pod = {
            "metadata": {"labels": {"app": self.name}},
            "spec": {"containers": [{"name": "any", "image": "any"}]},
        }
        selector = {"matchLabels": {"group": self.group}}
        metric = {"name": "kafka_consumergroup_replicas", "selector": selector}
        target = {"type": "AverageValue", "averageValue": "1"}
        return (
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": metadata,
                "spec": {
                    "replicas": self.at_first,
                    "selector": {"matchLabels": {"app": self.name}},
                    "template": pod,
                },
            },
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": metadata,
                "spec": {
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name},
                    "minReplicas": 0,
                    "maxReplicas": 20,
                    "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
                    "behavior": {
                        "scaleUp": {} if self.tolerance is None else {"tolerance": self.tolerance},
                        "scaleDown": {"stabilizationWindowSeconds": 3},
                    },
                },
            },
        )


FALLBACK = Scaled("fallback", 5, 5, {"fallback": {"after": "1s", "replicas": 5}}, topics=(REFUNDS,))
"""While its lag is unknown; otherwise 3."""
SCALED = (
    # KEDA would serve 115, because 115 // 9 is 12, and the HPA would make 13 replicas of it.
    Scaled("limited-to-partitions", 12, 9, commits={(ORDERS, 0): 5}),
    Scaled("idle-consumers-allowed", 13, 9, {"allowIdleConsumers": True}, {(ORDERS, 0): 5}),
    Scaled("never-committed-earliest", 4, 30),
    Scaled("never-committed-latest", 0, 30, offset_reset="latest"),
    Scaled("several-topics", 4, 40, topics=(ORDERS, REFUNDS)),
    Scaled("partitions-with-lag", 2, 5, {"limitToPartitionsWithLag": True}, read(10)),
    Scaled("even-distribution", 6, 25, {"ensureEvenDistributionOfPartitions": True}, read(1)),
    Scaled("some-partitions", 4, 5, {"partitions": "0-2, 5"}),
    Scaled("several-consumers", 3, 5, {"consumersPerReplica": 5}),
    Scaled("at-activation", 0, 30, {"activation": 120}),
    Scaled("above-activation", 4, 30, {"activation": 119}),
    FALLBACK,
    Scaled("the-last-partition", 12, 10, at_first=11),
)
"""Each reaches its number and stays there."""
WITHIN_TOLERANCE = Scaled("within-tolerance", 11, 10, at_first=11, tolerance=None)
"""Its number is 12, of which the HPA makes nothing."""
WAKING = Scaled("waking", 0, 40, {"activation": 20}, read(10))
"""Its lag is at its activation."""
STUCK = Scaled("stuck", 3, 4, {"excludePersistentLag": True}, {(ORDERS, 0): 0})
"""If only the first partition moves."""
ALL = (*SCALED, WITHIN_TOLERANCE, WAKING, STUCK)
RULES = [one.rule for one in ALL]


def prepare(cluster: Kafka) -> None:
    for topic, partitions in TOPICS.items():
        create_topic(cluster, topic, partitions)
        produce(cluster, topic, MESSAGES * partitions)
    for one in ALL:
        if one.commits:
            commit(cluster, one.group, one.commits)
