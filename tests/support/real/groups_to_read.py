"""Topics, messages and commits that the shared adapter reads: all at rest, so that every reader sees the same numbers.

Made before the adapter starts, because a new group is seen within 30 s only.
"""

from typing import Any

from local.adapter import EXTERNAL_METRICS
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane
from local.processes import wait_until
from tests.support.real import promised_group, scaled_groups

LAG = "kafka_consumergroup_lag"
UNREAD_TOPIC = "read-by-nobody"
"""Empty, and no group has committed for it."""
TOPICS = {"read-orders": 3, "read-invoices": 2, UNREAD_TOPIC: 1, "read-idle": 1}
MESSAGES = {("read-orders", 0): 1200, ("read-orders", 1): 7, ("read-orders", 2): 64, ("read-invoices", 1): 15_000}
COMMITS = {
    "ledger": {
        ("read-orders", 0): 200,
        ("read-orders", 1): 7,
        ("read-orders", 2): 0,
        ("read-invoices", 0): 0,
        ("read-invoices", 1): 1,
    },
    "mail": {("read-orders", 0): 1199, ("read-orders", 2): 63},
}
IDLE_GROUP, IDLE_TOPIC = "idle", "read-idle"
"""It has read all of an empty topic."""
UNLABELLED_GROUP = "Mail Service/eu"
"""No legal label value: it has a metric of its own name."""
UNLABELLED_METRIC = "mail-service-backlog"
UNLABELLED_COMMITS = {("read-invoices", 1): 14_900, ("read-invoices", 0): 0}


def prepare(cluster: Kafka) -> None:
    for topic, partitions in TOPICS.items():
        create_topic(cluster, topic, partitions)
    for (topic, partition), count in MESSAGES.items():
        produce(cluster, topic, count, partition)
    for group, offsets in COMMITS.items():
        commit(cluster, group, offsets)
    commit(cluster, UNLABELLED_GROUP, UNLABELLED_COMMITS)
    commit(cluster, IDLE_GROUP, {(IDLE_TOPIC, 0): 0})
    scaled_groups.prepare(cluster)
    promised_group.prepare(cluster)


def settings(cluster: Kafka) -> dict[str, Any]:
    return {
        "clusters": [{"name": "main", "bootstrapServers": cluster.bootstrap_servers.split(",")}],
        "collection": {"interval": "1s", "maxAge": "60s"},  # a busy machine is no reason to refuse
        "rules": [*scaled_groups.RULES, promised_group.RULE],
        "metrics": [{"name": UNLABELLED_METRIC, "value": "lag", "group": UNLABELLED_GROUP}],
        "customMetrics": {"register": True},
    }


def path(namespace: str, metric: str, selector: str = "") -> str:
    query = f"?labelSelector={selector}" if selector else ""
    return f"{EXTERNAL_METRICS}/namespaces/{namespace}/{metric}{query}"


def wait_until_read(plane: ControlPlane) -> None:
    """Wait until all of it is served."""
    asked = [path("default", LAG, f"group%3D{group}") for group in (*COMMITS, IDLE_GROUP)]
    asked.append(path("default", UNLABELLED_METRIC))
    wait_until(lambda: all(plane.raw(each)[0] == 200 for each in asked), "the groups to be read", 180)
