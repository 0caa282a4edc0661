"""Commits that expired on a real broker still count after a restart, by the shipped ConfigMap and its Role."""

import functools
from pathlib import Path
from urllib.parse import quote

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
    """By its rule, and without one by a selector that names group and topic."""
    topic, ruled, group = "expired-and-restarted", "expired-by-rule", "expired-by-selector"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 30)
    rules = [{"group": ruled, "topics": [topic]}]
    for name in (ruled, group):
        commit(one_broker, name, {(topic, 0): 30})
    kubeconfig = own_kubeconfig(control_plane)
    kept = KeptText(connect(kubeconfig), NAMESPACE, LAST_COMMITS)
    with in_process(one_broker, rules=rules, exchange=kept.exchange) as before:
        before.run_once()
        before.last_commits.run_once()
        for name in (ruled, group):
            commit_and_expire(one_broker, name, topic, 30)
        before.wait_for(lambda: before.uncommitted(ruled) == 1, "the commit of the group with a rule to expire")
        before.wait_for(
            lambda: before.value("uncommitted_partitions", group=group, topic=topic) == 1, "the other to expire"
        )
        assert before.is_unknown(group=group), "its total, which no selector for a topic changes"
        before.last_commits.run_once()
    produce(one_broker, topic, 5)

    main = {"name": "main", "bootstrapServers": one_broker.bootstrap_servers.split(",")}
    settings = {"clusters": [main], "collection": {"interval": "1s"}, "rules": rules}
    more = {"last-commits-config-map": f"{NAMESPACE}/{LAST_COMMITS}"}
    with process(tmp_path, settings, kubeconfig, more_flags=more) as after:
        wait_until(after.is_ready, "the adapter to be ready", WAIT_SECONDS)
        read = functools.partial(lags, after, administrator)
        by_topic = f"group={group},topic={topic}"
        wait_until(lambda: read(f"group={ruled}")[0] == 200, "a lag of the group with a rule", WAIT_SECONDS)
        wait_until(lambda: read(by_topic)[0] == 200, "a lag of the other", WAIT_SECONDS)

        assert read(f"group={ruled}") == (200, ["5"])
        assert read(by_topic) == (200, ["5"])
        assert read(f"group=no-{group},topic={topic}") == (404, [])


def lags(adapter: Adapter, caller: Pair, selector: str) -> tuple[int, list[str]]:
    path = f"{EXTERNAL_METRICS}/namespaces/default/kafka_consumergroup_lag?labelSelector={quote(selector)}"
    status, body = adapter.get(path, shown=caller)
    return status, [item["value"] for item in items(body)] if status == 200 else []
