"""Groups of which Kafka reports no commit: HPAs of a real API server name their topics, and a ConfigMap keeps their
last commits over restarts."""

import contextlib
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from apiservice.cluster_api.connection import connect
from apiservice.cluster_api.kept_text import exchange
from local.adapter import LAST_COMMITS, NAMESPACE, Adapter, items, own_kubeconfig, process
from local.certificates import Pair
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.processes import wait_until
from tests.support.real.changes import WAIT_SECONDS, commit_and_expire
from tests.support.real.groups_to_read import LAG, UNREAD_TOPIC, path
from tests.support.real.programs import MAIN, PATIENT_CALLS

UNCOMMITTED = "kafka_consumergroup_uncommitted_partitions"
PATIENT = f"{PATIENT_CALLS}from apiservice import serving; serving.FIRST_LIST_SECONDS = 60.0; {MAIN}"
"""The installed command, whose first cycle waits longer for HPAs than a busy kube-apiserver takes to list them."""
RBAC = "rbac.authorization.k8s.io"


def sleeping(namespace: str) -> Manifest:
    """A Deployment named `consumer`."""
    labels = {"app": "consumer"}
    worker = {"name": "worker", "image": "none", "command": [sys.executable, "-c", "import time; time.sleep(600)"]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [worker]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "consumer", "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


@contextlib.contextmanager
def ready(home: Path, cluster: Kafka, kubeconfig: Path, **settings: object) -> Iterator[Adapter]:
    """An adapter whose first cycle has ended; `settings` are those of the file."""
    main = {"name": "main", "bootstrapServers": cluster.bootstrap_servers.split(",")}
    more = {"last-commits-config-map": f"{NAMESPACE}/{LAST_COMMITS}"}
    often = {"clusters": [main], "collection": {"interval": "1s"}}
    program = (sys.executable, "-c", PATIENT)
    with process(home, {**often, **settings}, kubeconfig, program=program, more_flags=more) as adapter:
        wait_until(adapter.is_ready, "the adapter to be ready", WAIT_SECONDS)
        yield adapter


def test_first_reads_after_commits_expired_and_adapters_restarted_are_right_on_every_replica(
    control_plane: ControlPlane, one_broker: Kafka, administrator: Pair, namespace: str, tmp_path: Path
) -> None:
    """By a rule, and by an HPA that names group and topic."""
    topic, ruled, asked = "expired-and-restarted", "expired-by-rule", "expired-by-hpa"
    create_topic(one_broker, topic)
    produce(one_broker, topic, 30)
    for name in (ruled, asked):
        commit(one_broker, name, {(topic, 0): 30})
    control_plane.apply([one_line_hpa(namespace, group=asked, topic=topic)])
    start = functools.partial(
        ready, cluster=one_broker, kubeconfig=own_kubeconfig(control_plane), rules=[{"group": ruled, "topics": [topic]}]
    )
    with start(tmp_path / "before") as before:

        def uncommitted() -> list[tuple[int, list[str]]]:
            selectors = [f"group={name},topic={topic}" for name in (ruled, asked)]
            return [values(before, administrator, selector, UNCOMMITTED) for selector in selectors]

        # It counts from the last commit that it has seen, and it is ready after a cycle that read nothing, too.
        wait_until(lambda: uncommitted() == [(200, ["0"])] * 2, "the commits to be seen", WAIT_SECONDS)
        for name in (ruled, asked):
            commit_and_expire(one_broker, name, topic, 30)
        wait_until(lambda: uncommitted() == [(200, ["1"])] * 2, "the commits to expire", WAIT_SECONDS)
    produce(one_broker, topic, 5)

    with start(tmp_path / "after") as after, start(tmp_path / "other") as other:
        for replica in (after, other):
            read = functools.partial(known, replica, administrator)
            assert read(f"group={ruled}") == (200, ["5"])
            assert read(f"group={asked},topic={topic}") == (200, ["5"])
            assert read(f"group={asked}") == (404, []), "its total, which no HPA for a topic changes"
            assert read(f"group=no-{asked},topic={topic}") == (404, [])


def test_what_a_new_hpa_asks_for_is_read_at_once_and_a_typo_is_not_found(
    control_plane: ControlPlane, one_broker: Kafka, administrator: Pair, namespace: str, tmp_path: Path
) -> None:
    group, committed, topic = "new-hpa-reader", "new-hpa-committed", "new-hpa-asked"
    for name in (committed, topic):
        create_topic(one_broker, name)
    commit(one_broker, group, {(committed, 0): 0})
    produce(one_broker, topic, 5)
    seldom = {"interval": "10m", "maxAge": "1h"}
    with ready(tmp_path, one_broker, own_kubeconfig(control_plane), collection=seldom) as adapter:
        read = functools.partial(values, adapter, administrator)
        assert known(adapter, administrator, f"group={group},topic={topic}") == (404, [])

        unusable = one_line_hpa(namespace, "unusable", group=group)
        expression = {"key": "topic", "operator": "Near", "values": [topic]}
        unusable["spec"]["metrics"][0]["external"]["metric"]["selector"]["matchExpressions"] = [expression]
        control_plane.apply([unusable, one_line_hpa(namespace, "typo", group=f"{group}s", topic=topic)])
        control_plane.apply([one_line_hpa(namespace, "right", group=group, topic=topic)])

        # Far less than the interval; 2 s are promised where the machine is not loaded.
        wait_until(lambda: read(f"group={group},topic={topic}") == (200, ["5"]), "the topic to be read", WAIT_SECONDS)
        status, body = answer(adapter, administrator, f"group={group}s,topic={topic}")
        assert status == 404
        assert f"known groups are {group}".encode() in body


def test_without_the_right_to_list_hpas_all_else_works_until_it_is_granted(
    control_plane: ControlPlane, one_broker: Kafka, administrator: Pair, namespace: str, tmp_path: Path
) -> None:
    group, committed, topic = "no-right-reader", "no-right-committed", "no-right-asked"
    for name in (committed, topic):
        create_topic(one_broker, name)
    commit(one_broker, group, {(committed, 0): 0})
    control_plane.apply([one_line_hpa(namespace, group=group, topic=topic)])
    with ready(tmp_path, one_broker, without_right_to_list_hpas(control_plane, namespace)) as adapter:
        read = functools.partial(known, adapter, administrator)
        assert read(f"group={group},topic={committed}") == (200, ["0"])
        assert read(f"group={group},topic={topic}") == (404, [])
        missing = (
            b"they cannot be read: the right to list and watch them is missing; meanwhile, a group without commits"
        )
        wait_until(lambda: missing in adapter.get_plain("/readyz?verbose")[1], "the line", WAIT_SECONDS)

        control_plane.apply([bound("reads-hpas", namespace, "ClusterRole", "kafka-lag-adapter-reads-hpas")])

        wait_until(lambda: read(f"group={group},topic={topic}") == (200, ["0"]), "the topic to be read", WAIT_SECONDS)
        wait_until(lambda: missing not in adapter.get_plain("/readyz?verbose")[1], "no such line", WAIT_SECONDS)
        assert adapter.process.log.read_text().count("autoscalers: Forbidden: ") == 1


def test_two_replicas_that_write_at_once_lose_no_entry_of_each_other(
    control_plane: ControlPlane, namespace: str
) -> None:
    empty = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": namespace}}
    control_plane.apply([empty])
    first, second = (connect(control_plane.admin_kubeconfig) for _ in range(2))

    def in_between(text: str) -> str:
        if "second" not in text:
            exchange(second, namespace, "kept", lambda found: f"{found} second")
        return f"{text} first"

    exchange(first, namespace, "kept", in_between)

    kept = control_plane.get(f"/api/v1/namespaces/{namespace}/configmaps/kept")["data"]
    assert kept == {"last-commits.json": " second first"}


@pytest.mark.usefixtures("adapter")
def test_an_hpa_without_a_rule_wakes_its_target_up_for_a_topic_that_the_group_never_committed(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str
) -> None:
    control_plane.apply([one_line_hpa(namespace, group="mail", topic=UNREAD_TOPIC)])
    asked = path(namespace, LAG, f"group%3Dmail,topic%3D{UNREAD_TOPIC}")
    # The controller reads no metric without a target. Here it looks every 2 s, in which a busy adapter may have read
    # nothing yet; by default it looks every 15 s.
    wait_until(lambda: control_plane.raw(asked)[0] == 200, "the topic to be read", WAIT_SECONDS)
    control_plane.apply([sleeping(namespace)])
    worker = f"/apis/apps/v1/namespaces/{namespace}/deployments/consumer"
    wait_until(lambda: control_plane.get(worker)["spec"]["replicas"] == 0, "the HPA to scale to zero", WAIT_SECONDS)

    produce(one_broker, UNREAD_TOPIC, 5)

    wait_until(lambda: control_plane.get(worker)["spec"]["replicas"] == 2, "two replicas for 5 messages", WAIT_SECONDS)
    assert control_plane.raw(path(namespace, LAG, f"group%3Dmial,topic%3D{UNREAD_TOPIC}"))[0] == 404
    events = control_plane.get(f"/api/v1/namespaces/{namespace}/events")["items"]
    assert "FailedGetExternalMetric" not in {event["reason"] for event in events}, "the first read has a value"


def known(adapter: Adapter, caller: Pair, selector: str) -> tuple[int, list[str]]:
    """The first answer but 503: on a busy machine, the first cycle may have read nothing in time."""
    found: list[tuple[int, list[str]]] = []

    def is_known() -> bool:
        found[:] = [values(adapter, caller, selector)]
        return found[0][0] != 503

    wait_until(is_known, f"an answer to {selector}", WAIT_SECONDS)
    return found[0]


def values(adapter: Adapter, caller: Pair, selector: str, metric: str = LAG) -> tuple[int, list[str]]:
    status, body = answer(adapter, caller, selector, metric)
    return status, [item["value"] for item in items(body)] if status == 200 else []


def answer(adapter: Adapter, caller: Pair, selector: str, metric: str = LAG) -> tuple[int, bytes]:
    return adapter.get(path("default", metric, quote(selector)), shown=caller)


def without_right_to_list_hpas(plane: ControlPlane, namespace: str) -> Path:
    """Returns the kubeconfig of a ServiceAccount with the other rights that every adapter needs."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "adapter", "namespace": namespace}}
    reader = bound("reader", namespace, "Role", "extension-apiserver-authentication-reader", within="kube-system")
    plane.apply([account, reader, bound("delegator", namespace, "ClusterRole", "system:auth-delegator")])
    return plane.kubeconfig_for_service_account(namespace, "adapter")


def bound(name: str, namespace: str, kind: str, role: str, within: str = "") -> Manifest:
    """Binds the ServiceAccount `adapter` of the namespace to a role, in the whole cluster or in one namespace."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding" if within else "ClusterRoleBinding",
        "metadata": {"name": f"{namespace}-{name}", **({"namespace": within} if within else {})},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "adapter", "namespace": namespace}],
    }


def one_line_hpa(namespace: str, name: str = "consumer", **labels: str) -> Manifest:
    metric = {"name": LAG, "selector": {"matchLabels": labels}}
    target = {"type": "AverageValue", "averageValue": "3"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 0,
            "maxReplicas": 3,
            "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }
