"""HPAs of a real API server in the files of a real adapter."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from adapter.verdicts.hpa import hpa_of
from local.adapter import own_kubeconfig, process
from local.kubernetes.control_plane import ControlPlane
from local.processes import wait_until
from spark.storage.local import LocalFiles
from spark.tables.seen_hpas import SeenHpa, seen_hpas
from tests.support.real.groups_to_read import LAG

WAIT_SECONDS = 120.0
PROMISED = {
    "name": "seen-replicas",
    "value": "required_replicas",
    "group": "seen",
    "topics": ["orders"],
    "replicas": {"maxWait": "45s", "capacityHint": 60},
}
SETTINGS = {"clusters": [{"name": "main", "bootstrapServers": ["127.0.0.1:1"]}], "metrics": [PROMISED]}
LABELS = {"group": "seen", "topic": "orders"}


def hpa(namespace: str, most: int, name: str = LAG, labels: Mapping[str, str] = LABELS) -> dict[str, Any]:
    metric = {"name": name, "selector": {"matchLabels": dict(labels)}}
    target = {"type": "AverageValue", "averageValue": "500"}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "consumer"},
        "maxReplicas": most,
        "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
        "behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}},
    }
    metadata = {"name": "consumer", "namespace": namespace}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def newest(location: Path, namespace: str) -> dict[str, Any] | None:
    """The HPA of the namespace in the newest document."""
    files = sorted(location.glob("autoscalers/*/*.json"), key=lambda path: path.name.rpartition("-")[2])
    entries = json.loads(files[-1].read_text())["autoscalers"] if files else []
    return next((entry for entry in entries if entry["namespace"] == namespace), None)


def test_an_hpa_that_is_created_and_edited_is_in_the_history_as_the_server_has_it(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    location = tmp_path / "history"
    settings = {**SETTINGS, "history": {"location": str(location), "flushInterval": "10s"}}
    control_plane.apply([hpa(namespace, 12)])

    def maximum() -> int | None:
        entry = newest(location, namespace)
        return None if entry is None else int(entry["spec"]["maxReplicas"])

    with process(tmp_path / "adapter", settings, own_kubeconfig(control_plane)):
        wait_until(lambda: maximum() == 12, "the HPA to be written", WAIT_SECONDS)
        control_plane.apply([hpa(namespace, 24)])
        wait_until(lambda: maximum() == 24, "the change to be written", WAIT_SECONDS)

    entry = newest(location, namespace)
    assert entry is not None
    assert (entry["group"], entry["topics"], entry["values"]) == ("seen", ["orders"], ["lag"])
    stored = control_plane.get(f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/consumer")
    kinds = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    assert hpa_of({**kinds, "spec": entry["spec"]}) == hpa_of({**kinds, "spec": stored["spec"]})


def test_the_report_reads_the_promise_that_the_settings_gave_the_metric_of_an_hpa(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    location = tmp_path / "history"
    settings = {**SETTINGS, "history": {"location": str(location), "flushInterval": "10s"}}
    control_plane.apply([hpa(namespace, 12, str(PROMISED["name"]), {})])

    def found() -> list[SeenHpa]:
        now = datetime.now(UTC)
        seen = seen_hpas(LocalFiles(location), now - timedelta(days=1), now + timedelta(days=1), ["main"])
        return [each for each in seen if each.namespace == namespace]

    with process(tmp_path / "adapter", settings, own_kubeconfig(control_plane)):
        wait_until(lambda: bool(found()), "the HPA to be in the history", WAIT_SECONDS)

    (only,) = found()
    assert (only.group, only.is_replayable, only.max_wait_seconds) == ("seen", True, 45.0)
