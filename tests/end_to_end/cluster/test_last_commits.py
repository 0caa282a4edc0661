"""Commits that expired on a real broker still count after a restart, by the shipped ConfigMap and its Role."""

import functools
from pathlib import Path
from urllib.parse import quote

import pytest

from apiservice.cluster_api.connection import connect
from apiservice.cluster_api.kept_text import KeptText
from local.adapter import EXTERNAL_METRICS, LAST_COMMITS, NAMESPACE, Adapter, items, own_kubeconfig, process
from local.certificates import Pair
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.processes import wait_until
from tests.end_to_end.cluster.test_control_plane import SLEEP, deployment
from tests.support.real.changes import WAIT_SECONDS, commit_and_expire
from tests.support.real.groups_to_read import LAG, UNREAD_TOPIC
from tests.support.real.in_process import in_process


def test_a_group_at_zero_wakes_up_though_the_adapter_restarted_after_its_commits_expired(
    control_plane: ControlPlane, one_broker: Kafka, administrator: Pair, tmp_path: Path
) -> None:
    """By its rule, and without one by an HPA that names group and topic."""
    topic, ruled, group = "expired-and-restarted", "expired-by-rule", "expired-by-selector"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 30)
    rules = [{"group": ruled, "topics": [topic]}]
    for name in (ruled, group):
        commit(one_broker, name, {(topic, 0): 30})
    kubeconfig = own_kubeconfig(control_plane)
    kept = KeptText(connect(kubeconfig), NAMESPACE, LAST_COMMITS)
    hpa = one_line_hpa("default", group=group, topic=topic)
    with in_process(one_broker, rules=rules, exchange=kept.exchange) as before:
        before.cycle.asked = {group: frozenset({topic})}
        before.run_once()
        for name in (ruled, group):
            commit_and_expire(one_broker, name, topic, 30)
        before.wait_for(lambda: before.uncommitted(ruled) == 1, "the commit of the group with a rule to expire")
        before.wait_for(
            lambda: before.value("uncommitted_partitions", group=group, topic=topic) == 1, "the other to expire"
        )
        assert before.is_unknown(group=group), "its total, which no selector for a topic changes"
        before.memory.stop(WAIT_SECONDS)
    produce(one_broker, topic, 5)

    main = {"name": "main", "bootstrapServers": one_broker.bootstrap_servers.split(",")}
    settings = {"clusters": [main], "collection": {"interval": "1s"}, "rules": rules}
    more = {"last-commits-config-map": f"{NAMESPACE}/{LAST_COMMITS}"}
    control_plane.apply([hpa])
    with process(tmp_path, settings, kubeconfig, more_flags=more) as after:
        wait_until(after.is_ready, "the adapter to be ready", WAIT_SECONDS)
        read = functools.partial(lags, after, administrator)
        by_topic = f"group={group},topic={topic}"
        wait_until(lambda: read(f"group={ruled}")[0] == 200, "a lag of the group with a rule", WAIT_SECONDS)
        wait_until(lambda: read(by_topic)[0] == 200, "a lag of the other", WAIT_SECONDS)

        assert read(f"group={ruled}") == (200, ["5"])
        assert read(by_topic) == (200, ["5"])
        assert read(f"group=no-{group},topic={topic}") == (404, [])
    control_plane.delete([hpa])


def test_two_replicas_that_write_at_once_lose_no_entry_of_each_other(
    control_plane: ControlPlane, namespace: str
) -> None:
    empty = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": namespace}}
    control_plane.apply([empty])
    first, second = (KeptText(connect(control_plane.admin_kubeconfig), namespace, "kept") for _ in range(2))

    def in_between(text: str) -> str:
        if "second" not in text:
            second.exchange(lambda found: f"{found} second")
        return f"{text} first"

    first.exchange(in_between)

    kept = control_plane.get(f"/api/v1/namespaces/{namespace}/configmaps/kept")["data"]
    assert kept == {"last-commits.json": " second first"}


def lags(adapter: Adapter, caller: Pair, selector: str) -> tuple[int, list[str]]:
    path = f"{EXTERNAL_METRICS}/namespaces/default/kafka_consumergroup_lag?labelSelector={quote(selector)}"
    status, body = adapter.get(path, shown=caller)
    return status, [item["value"] for item in items(body)] if status == 200 else []


@pytest.mark.usefixtures("adapter")
def test_an_hpa_without_a_rule_wakes_its_target_up_for_a_topic_that_the_group_never_committed(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str
) -> None:
    control_plane.apply([deployment(namespace, SLEEP), one_line_hpa(namespace, group="mail", topic=UNREAD_TOPIC)])
    worker = f"/apis/apps/v1/namespaces/{namespace}/deployments/consumer"
    wait_until(lambda: control_plane.get(worker)["spec"]["replicas"] == 0, "the HPA to scale to zero", WAIT_SECONDS)

    produce(one_broker, UNREAD_TOPIC, 5)

    wait_until(lambda: control_plane.get(worker)["spec"]["replicas"] == 2, "two replicas for 5 messages", WAIT_SECONDS)


def one_line_hpa(namespace: str, **labels: str) -> Manifest:
    metric = {"name": LAG, "selector": {"matchLabels": labels}}
    target = {"type": "AverageValue", "averageValue": "3"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "consumer", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "consumer"},
            "minReplicas": 0,
            "maxReplicas": 3,
            "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }
