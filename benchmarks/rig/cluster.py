"""What all tables are measured on: three brokers with a thousand groups, a control plane, and adapters.

Groups have 12 partitions each. Their names begin with a letter, so that a pattern selects the first 1, 100, 500 or
all."""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from kafka import KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata
from prometheus_client.parser import text_string_to_metric_families

from local.adapter import EXTERNAL_METRICS, Adapter
from local.kafka.admin import admin
from local.kafka.broker import Kafka, kafka
from local.kafka.tools import commit
from local.kubernetes.control_plane import ControlPlane, Manifest, control_plane
from local.processes import scratch, wait_until

BROKERS = 3
TOPICS = 100
PARTITIONS = 12
MESSAGES = 5
"""Messages in each partition; every group has read the first of them."""
LAG = (MESSAGES - 1) * PARTITIONS
PATTERNS = {1: "a-.*", 100: "[ab]-.*", 500: "[abc]-.*", 1000: "[abcd]-.*"}
"""Number of watched groups -> the pattern that selects them."""
GROUPS = max(PATTERNS)
COMMITTERS = 4
METRIC = "kafka_consumergroup_lag"
NAMESPACE = "benchmarks"
READER = "reader"
HPA_SYNC_SECONDS = 15  # as in real clusters
TIMEOUT_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Rig:
    home: Path
    kafka: Kafka
    plane: ControlPlane
    token: str
    """The token of a ServiceAccount that may read external metrics and Namespaces."""

    @property
    def ports(self) -> frozenset[int]:
        """The ports at which clients reach the brokers."""
        return frozenset(broker.port for broker in self.kafka.brokers)

    def settings(self, groups: int) -> dict[str, Any]:
        """Returns an adapter's settings: defaults, but for this number of groups."""
        cluster = {"name": "main", "bootstrapServers": self.kafka.bootstrap_servers.split(",")}
        return {"clusters": [cluster], "collection": {"groups": {"include": [PATTERNS[groups]]}}}


def say(line: str) -> None:
    """Shows progress on stderr; the tables go to stdout."""
    print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def rig() -> Iterator[Rig]:
    """Starts everything but an adapter, with topics, messages and commits; ends it with the block."""
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(scratch("benchmarks"))
        say(f"starting {BROKERS} brokers and a control plane")
        cluster = stack.enter_context(kafka(home / "kafka", brokers=BROKERS, heap_megabytes=512))
        plane = stack.enter_context(control_plane(home / "control-plane", hpa_sync_seconds=HPA_SYNC_SECONDS))
        say(f"making {TOPICS} topics of {PARTITIONS} partitions and {len(groups(GROUPS)):,} groups")
        _fill(cluster)
        yield Rig(home, cluster, plane, _reader_token(plane))


def groups(count: int) -> list[str]:
    """Returns the names of the first groups."""
    letters = ["a"] + ["b"] * 99 + ["c"] * 400 + ["d"] * 500
    return [f"{letter}-group-{number:03}" for number, letter in enumerate(letters[:count])]


def topic_of(group: str) -> str:
    """Returns the one topic that a group reads; ten groups share one."""
    return f"topic-{int(group[-3:]) % TOPICS:02}"


def selector_of(group: str) -> dict[str, str]:
    """Returns the labels that one group's HPA selects."""
    return {"cluster": "main", "group": group, "topic": topic_of(group)}


def read_path(group: str, metric: str = METRIC) -> str:
    """Returns the path that the HPA controller requests: its selector is sorted and escaped."""
    return path_with(selector_of(group), metric)


def group_path(group: str) -> str:
    """Returns the path for all topics of a group."""
    return path_with({"cluster": "main", "group": group})


def path_with(labels: Mapping[str, str], metric: str = METRIC) -> str:
    """Returns the path for these labels; without labels, for all groups."""
    text = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    query = f"?{urlencode({'labelSelector': text})}" if labels else ""
    return f"{EXTERNAL_METRICS}/namespaces/{NAMESPACE}/{metric}{query}"


def own_metric(running: Adapter, name: str, **labels: str) -> float:
    """Returns the sum over all samples of one of the adapter's own metrics with these labels."""
    status, body = running.get_plain("/metrics")
    assert status == 200, body
    samples = (sample for family in text_string_to_metric_families(body.decode()) for sample in family.samples)
    return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())


def cycles(running: Adapter, outcome: str = "complete") -> int:
    """Returns the number of collection cycles with that outcome."""
    return int(own_metric(running, "kafka_lag_adapter_cycles_total", outcome=outcome))


def wait_for_cycles(running: Adapter, count: int) -> None:
    """Returns just after a cycle has ended, `count` complete ones from now."""
    wanted = cycles(running) + count
    wait_until(
        lambda: cycles(running) >= wanted, f"{count} cycles", 15.0 * count + TIMEOUT_SECONDS, alive=[running.process]
    )


def wait_until_read(running: Adapter, watched: int) -> None:
    """Waits until every partition of this number of groups has a good value."""
    rows = watched * PARTITIONS
    wait_until(
        lambda: own_metric(running, "kafka_lag_adapter_partitions", state="ok") == rows,
        f"{rows} good rows",
        TIMEOUT_SECONDS,
        alive=[running.process],
    )


def _fill(cluster: Kafka) -> None:
    names = [f"topic-{number:02}" for number in range(TOPICS)]
    with admin(cluster.bootstrap_servers, request_timeout_ms=60_000) as client:
        client.create_topics([NewTopic(name, PARTITIONS, 1) for name in names])
        wait_until(
            lambda: all(_has_leaders(topic) for topic in client.describe_topics(names)), "the leaders", TIMEOUT_SECONDS
        )
        _produce(cluster, names)
    commit_all(
        cluster, {group: {(topic_of(group), index): 1 for index in range(PARTITIONS)} for group in groups(GROUPS)}
    )


def commit_all(cluster: Kafka, positions: Mapping[str, Mapping[tuple[str, int], int]]) -> None:
    """Commits group -> topic and partition -> offset, for very many groups."""
    first, *others = positions
    # The first commit makes the offsets topic, which takes its time.
    commit(cluster, first, positions[first])
    with ThreadPoolExecutor(COMMITTERS) as committers:
        shares = [{group: positions[group] for group in others[n::COMMITTERS]} for n in range(COMMITTERS)]
        for each in [committers.submit(_commit_share, cluster, share) for share in shares]:
            each.result()


def _commit_share(cluster: Kafka, positions: Mapping[str, Mapping[tuple[str, int], int]]) -> None:
    with admin(cluster.bootstrap_servers, request_timeout_ms=60_000) as client:
        for group, of_group in positions.items():
            as_sent = {TopicPartition(*key): OffsetAndMetadata(offset, "", -1) for key, offset in of_group.items()}
            client.alter_group_offsets(group, as_sent)


def _has_leaders(topic: dict[str, Any]) -> bool:
    leaders = [partition["leader_id"] for partition in topic["partitions"]]
    return len(leaders) == PARTITIONS and min(leaders) >= 0


def _produce(cluster: Kafka, topics: Sequence[str]) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers.split(","), acks="all", linger_ms=50)

    def send(topic: str) -> list[Any]:
        return [
            producer.send(topic, value=b"some bytes", partition=index)
            for index in range(PARTITIONS)
            for _ in range(MESSAGES)
        ]

    # Side by side, as the producer waits for each topic's metadata by itself.
    with contextlib.closing(producer), ThreadPoolExecutor(max_workers=25) as senders:
        sent = [message for messages in senders.map(send, topics) for message in messages]
        producer.flush(timeout=TIMEOUT_SECONDS)
        for message in sent:
            message.get(timeout=TIMEOUT_SECONDS)


def _reader_token(plane: ControlPlane) -> str:
    plane.apply(_reader_manifests())
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{READER}/token"
    document = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    return str(plane.ask("POST", path, document)["status"]["token"])


def _reader_manifests() -> list[Manifest]:
    name = {"name": f"{NAMESPACE}-{READER}"}
    anything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", **name}
    account = {"name": READER, "namespace": NAMESPACE}
    rbac = "rbac.authorization.k8s.io/v1"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {"apiVersion": rbac, "kind": "ClusterRole", "metadata": name, "rules": anything},
        {
            "apiVersion": rbac,
            "kind": "ClusterRoleBinding",
            "metadata": name,
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
    ]
