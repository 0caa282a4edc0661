"""The adapter goes in the order of docs/scale-to-zero.md while a target sleeps: real chart, broker, control plane."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from local.adapter import API_SERVICE, EXTERNAL_METRICS
from local.downloads import command_line_tools
from local.kafka.broker import Kafka
from local.kafka.tools import commit, create_topic
from local.kubernetes.control_plane import ControlPlane
from local.manifests import rendered
from local.manifests.check import MANIFESTS
from local.manifests.shipped import NAME
from local.processes import wait_until
from tests.support.real.applied import MERGE, pod_of, remount
from tests.support.real.asleep import WAIT_SECONDS, Consumer, hpa, target

ROOT = MANIFESTS.parent
INSTALL = ("upgrade", "--install", NAME, str(MANIFESTS), "--namespace", NAME, "--create-namespace")
SERVICE = f"/api/v1/namespaces/{NAME}/services/{NAME}"
LEFT = (
    "all,apiservices,clusterroles,clusterrolebindings,configmaps,leases,networkpolicies,poddisruptionbudgets,"
    "rolebindings,roles,secrets,serviceaccounts"
)


@pytest.fixture
def sleeper(plane: ControlPlane, guarded: Kafka) -> Iterator[Consumer]:
    create_topic(guarded, "leaving")
    commit(guarded, "leaving", {("leaving", 0): 0})
    documents = [target("leaving"), hpa("leaving")]
    plane.apply(documents)
    yield Consumer(plane, guarded, "leaving")
    plane.delete(documents)


@pytest.fixture
def values(guarded: Kafka, tmp_path: Path) -> Path:
    file = tmp_path / "values.yaml"
    clusters = [{"name": "main", "bootstrapServers": guarded.bootstrap_servers.split(",")}]
    settings = {"clusters": clusters, "collection": {"interval": "1s"}, "autoscalers": {"scaleToZero": True}}
    file.write_text(yaml.safe_dump(settings))
    return file


def documented_commands() -> list[str]:
    """Those under "Remove it", in their order."""
    section = (ROOT / "docs/scale-to-zero.md").read_text().partition("\n## Remove it\n")[2]
    return re.findall(r"^   ((?:helm|kubectl) .*)$", section, re.MULTILINE)


def run(plane: ControlPlane, command: str) -> str:
    environment = {
        "PATH": f"{command_line_tools()}:/usr/bin:/bin",
        "KUBECONFIG": str(plane.admin_kubeconfig),
        "HOME": str(plane.home),
    }
    ended = subprocess.run(
        ["bash", "-ec", command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def labelled(plane: ControlPlane) -> frozenset[str]:
    """Namespaces and names of the objects with our label. The control plane is shared with other tests."""
    name = "custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name"
    options = ("--all-namespaces", "--no-headers", "--selector", f"app.kubernetes.io/name={NAME}", "--output", name)
    found = rendered.run("kubectl", "get", LEFT, *options, env={"KUBECONFIG": str(plane.admin_kubeconfig)})
    return frozenset(found.splitlines())


def test_in_the_documented_order_what_sleeps_is_awake_and_nothing_of_ours_is_left(
    plane: ControlPlane, sleeper: Consumer, values: Path, tmp_path: Path
) -> None:
    forbid, sleeping, uninstall = documented_commands()
    before = labelled(plane)
    rendered.run("helm", *INSTALL, f"--values={values}", env={"KUBECONFIG": str(plane.admin_kubeconfig)})
    with pod_of(plane, tmp_path / "pod", NAME, NAME) as adapter:
        wait_until(lambda: plane.raw(EXTERNAL_METRICS)[0] == 200, "a read", WAIT_SECONDS, alive=[adapter.process])
        # The Service as Helm knows it; kube-apiserver goes by the APIService's port.
        ports = [{"name": "https", "port": 443, "targetPort": "https"}]
        plane.ask("PATCH", SERVICE, {"spec": {"ports": ports}}, content_type=MERGE)
        sleeper.wait_for(0, is_marked=True)
        assert run(plane, sleeping) == "default/leaving\n"

        run(plane, forbid)
        remount(plane, tmp_path / "pod", NAME, NAME)
        wait_until(lambda: run(plane, sleeping) == "", "nothing to sleep any more", WAIT_SECONDS)
        run(plane, uninstall)

    assert sleeper.state == (1, False)
    wait_until(lambda: plane.raw(API_SERVICE)[0] == 404, "the APIService to be deleted", WAIT_SECONDS)
    wait_until(lambda: labelled(plane) <= before, "nothing left", WAIT_SECONDS)
