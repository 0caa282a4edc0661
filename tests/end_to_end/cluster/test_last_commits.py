"""Commits that expired on a real broker still count after a restart, by the shipped ConfigMap and its Role."""

from pathlib import Path

from apiservice.cluster_api.connection import connect
from apiservice.cluster_api.kept_text import KeptText
from local.adapter import EXTERNAL_METRICS, LAST_COMMITS, NAMESPACE, Adapter, items, own_kubeconfig, process
from local.certificates import Pair
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane
from local.processes import wait_until
from tests.support.real.changes import WAIT_SECONDS, commit_and_expire
from tests.support.real.in_process import in_process


def test_a_group_at_zero_wakes_up_though_the_adapter_restarted_after_its_commits_expired(
    control_plane: ControlPlane, one_broker: Kafka, administrator: Pair, tmp_path: Path
) -> None:
    topic = group = "expired-and-restarted"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 30)
    commit(one_broker, group, {(topic, 0): 30})
    rules = [{"group": group, "topics": [topic]}]
    kubeconfig = own_kubeconfig(control_plane)
    kept = KeptText(connect(kubeconfig), NAMESPACE, LAST_COMMITS)
    with in_process(one_broker, rules=rules, exchange=kept.exchange) as before:
        before.run_once()
        before.last_commits.run_once()
        commit_and_expire(one_broker, group, topic, 30)
        before.wait_for(lambda: before.uncommitted(group) == 1, "the group's commit to expire")
        before.last_commits.run_once()
    produce(one_broker, topic, 5)

    main = {"name": "main", "bootstrapServers": one_broker.bootstrap_servers.split(",")}
    settings = {"clusters": [main], "collection": {"interval": "1s"}, "rules": rules}
    more = {"last-commits-config-map": f"{NAMESPACE}/{LAST_COMMITS}"}
    with process(tmp_path, settings, kubeconfig, more_flags=more) as after:
        wait_until(after.is_ready, "the adapter to be ready", WAIT_SECONDS)
        wait_until(lambda: lags(after, group, administrator) != [], "a lag of the group", WAIT_SECONDS)

        assert lags(after, group, administrator) == ["5"]


def lags(adapter: Adapter, group: str, caller: Pair) -> list[str]:
    path = f"{EXTERNAL_METRICS}/namespaces/default/kafka_consumergroup_lag?labelSelector=group%3D{group}"
    status, body = adapter.get(path, shown=caller)
    return [item["value"] for item in items(body)] if status == 200 else []
