"""`explain` on real parts: through kube-apiserver, and as a command that reads Kafka and HPAs itself."""

import json
import subprocess
from typing import Any

import pytest

from local.adapter import EXTERNAL_METRICS, installed
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic, produce
from local.kubernetes.control_plane import ControlPlane
from local.processes import wait_until
from tests.support.real.groups_to_read import COMMITS, LAG, MESSAGES

GROUP = "ledger"
pytestmark = pytest.mark.usefixtures("adapter")
LAGS = {place: MESSAGES.get(place, 0) - committed for place, committed in COMMITS[GROUP].items()}


@pytest.fixture
def scaled(control_plane: ControlPlane, namespace: str) -> str:
    """A namespace with an HPA on the group; the node has no part in it, so the Deployment keeps its replicas."""
    selector = {"matchLabels": {"app": "ledger"}}
    template = {"metadata": {"labels": selector["matchLabels"]}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
    deployment: dict[str, Any] = {"replicas": 2, "selector": selector, "template": template}
    source = {
        "metric": {"name": LAG, "selector": {"matchLabels": {"group": GROUP}}},
        "target": {"type": "AverageValue", "averageValue": "4k"},
    }
    spec: dict[str, Any] = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "ledger"},
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [{"type": "External", "external": source}],
    }
    metadata = {"name": "ledger", "namespace": namespace}
    control_plane.apply(
        [
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": deployment},
            {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec},
        ]
    )
    return namespace


def explained(plane: ControlPlane, namespace: str) -> dict[str, Any]:
    status, body = plane.raw(f"{EXTERNAL_METRICS}/namespaces/{namespace}/{LAG}/{GROUP}?output=json")
    assert status == 200, body
    document: dict[str, Any] = json.loads(body)
    return document


def test_through_kube_apiserver_a_group_is_explained_with_the_hpa_that_asks_for_it(
    control_plane: ControlPlane, scaled: str
) -> None:
    def hpa() -> dict[str, Any]:
        return next(iter(explained(control_plane, scaled)["hpas"]), {})

    wait_until(lambda: hpa().get("desired") == 3, "the HPA controller to decide, and the adapter to see it", 120)
    (group,) = explained(control_plane, scaled)["groups"]
    found = {(line["topic"], line["partition"]): line["lag"] for line in group["partitions"]}
    assert found == LAGS
    # The HPA controller went from 2 replicas to 3, and so does the arithmetic from either.
    assert (hpa()["arithmetic"]["asked"], hpa()["arithmetic"]["desired"]) == (5, 3)


def test_the_command_shows_the_same_without_the_adapter(
    control_plane: ControlPlane, one_broker: Kafka, scaled: str
) -> None:
    flags = ["--bootstrap-servers", one_broker.bootstrap_servers, "--kubeconfig", str(control_plane.admin_kubeconfig)]
    ended = subprocess.run(
        [str(installed()), "explain", GROUP, *flags], capture_output=True, text=True, timeout=180, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"Group {GROUP} in cluster main has a lag of {sum(LAGS.values())} messages." in ended.stdout
    assert f"HPA {scaled}/ledger scales Deployment/ledger from 1 to 3 replicas" in ended.stdout
    assert f"  reads {LAG}: {sum(LAGS.values())} (target AverageValue 4k)" in ended.stdout


def test_a_topic_that_only_an_hpa_names_for_the_group_is_explained_by_both(
    control_plane: ControlPlane, one_broker: Kafka, namespace: str
) -> None:
    group, topic = f"reader-{namespace}", f"next-{namespace}"
    for name in (group, topic):
        create_topic(one_broker, name)
    commit(one_broker, group, {(group, 0): 0})
    produce(one_broker, topic, 3)
    source = {
        "metric": {"name": LAG, "selector": {"matchLabels": {"group": group, "topic": topic}}},
        "target": {"type": "AverageValue", "averageValue": "1"},
    }
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"},
        "maxReplicas": 3,
        "metrics": [{"type": "External", "external": source}],
    }
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    control_plane.apply([{**kind, "metadata": {"name": "early", "namespace": namespace}, "spec": spec}])
    lines = (
        "counted only for the HPAs whose selector names the group and this topic: 3",
        f"  reads {LAG}: 3 (target AverageValue 1)",
    )

    def is_explained() -> bool:
        status, body = control_plane.raw(f"{EXTERNAL_METRICS}/namespaces/{namespace}/{LAG}/{group}")
        return status == 200 and all(line in body.decode() for line in lines)

    wait_until(is_explained, "the adapter to read what the HPA asks for", 120)
    flags = ["--bootstrap-servers", one_broker.bootstrap_servers, "--kubeconfig", str(control_plane.admin_kubeconfig)]
    ended = subprocess.run(
        [str(installed()), "explain", group, *flags], capture_output=True, text=True, timeout=180, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert all(line in ended.stdout for line in lines)


def test_a_group_that_nobody_knows_is_one_sentence(one_broker: Kafka) -> None:
    command = [str(installed()), "explain", "ledgre", "--bootstrap-servers", one_broker.bootstrap_servers]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("kafka-lag-adapter: no group 'ledgre' is known; known groups are ledger")
