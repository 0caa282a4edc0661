"""Every command of docs/install.md runs on a real kube-apiserver and prints what the page shows; nobody else's
APIService is changed.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from local.adapter import API_SERVICE
from local.downloads import command_line_tools
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.manifests import rendered
from local.manifests.check import MANIFESTS
from local.processes import RigError, wait_until
from tests.end_to_end.cluster.test_chart import VALUES

DOCS = MANIFESTS.parent / "docs"
PAGE = DOCS / "install.md"

FAULTY_SETTINGS = """
clusters: [{name: main, bootstrapServers: ['kafka:9092']}]
colection: {interval: 10s}
rules: [{group: billing, topics: [orders], offsetReset: newest}]
"""
"""The file that the page validates."""


class Command(NamedTuple):
    line: str
    shown: str
    """The lines below it on the page; empty: the page shows nothing of its output."""


def commands(page: Path = PAGE) -> list[Command]:
    blocks = re.findall(r"^ *```console\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL)
    texts = [text for block in blocks for text in re.split(r"^ *\$ ", block, flags=re.MULTILINE) if text]
    return [Command(*text.partition("\n")[::2]) for text in texts]


def helm(plane: ControlPlane, *arguments: str) -> str:
    return rendered.run("helm", *arguments, env={"KUBECONFIG": str(plane.admin_kubeconfig)})


def test_every_command_of_the_page_prints_what_it_shows(plane: ControlPlane, tmp_path: Path) -> None:
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    (values,) = re.findall(r"`lag-values.yaml`:\n\n```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "lag-values.yaml").write_text(values)
    (tmp_path / "settings.yaml").write_text(FAULTY_SETTINGS)
    for secret in ("password", "ca.crt"):
        (tmp_path / secret).write_text("of the page's Secrets")
    environment = {
        "PATH": f"{command_line_tools()}:{Path(sys.executable).parent}:/usr/bin:/bin",
        "KUBECONFIG": str(plane.admin_kubeconfig),
        "HOME": str(tmp_path),
    }

    assert len(commands()) > 15
    for line, shown in commands():
        shell = ["bash", "-o", "pipefail", "-c", line]
        ended = subprocess.run(
            shell,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert shown.strip() in ended.stdout, line
        assert (ended.returncode == 0) == (not shown.startswith(("Error", "kafka-lag-adapter: "))), ended.stdout

    kinds = "all,clusterroles,clusterrolebindings,rolebindings,apiservices"
    selector = "app.kubernetes.io/name=kafka-lag-adapter"
    asked = ("kubectl", "get", kinds, "--all-namespaces", "--selector", selector, "--output", "name")
    # Kubernetes collects the ReplicaSets and pods of a Deployment that is gone.
    wait_until(lambda: rendered.run(*asked, env=environment) == "", "nothing to be left", 180)


def test_helm_leaves_an_api_service_alone_that_somebody_else_holds(
    plane: ControlPlane, somebody_elses: Manifest
) -> None:
    install = ("upgrade", "--install", "lag", str(MANIFESTS), "--create-namespace", "-n", "releases")

    with pytest.raises(RigError, match="cannot be imported into the current release"):
        helm(plane, *install, f"--values={VALUES['api-service']}")
    assert plane.get(API_SERVICE)["spec"] == somebody_elses

    helm(plane, *install)
    helm(plane, "uninstall", "lag", "-n", "releases")
    assert plane.get(API_SERVICE)["spec"] == somebody_elses


@pytest.mark.usefixtures("somebody_elses")
def test_helm_takes_an_api_service_over_when_told_to_and_removes_it_with_the_release(plane: ControlPlane) -> None:
    install = ("upgrade", "--install", "taken", str(MANIFESTS), "--create-namespace", "-n", "releases")

    helm(plane, *install, f"--values={VALUES['api-service']}", "--take-ownership", "--force-conflicts")
    assert plane.get(API_SERVICE)["spec"]["service"]["name"] == "taken-kafka-lag-adapter"

    helm(plane, "uninstall", "taken", "-n", "releases")
    assert plane.request("GET", API_SERVICE)[0] == 404


def test_an_upgrade_with_other_values_keeps_the_selectors(plane: ControlPlane) -> None:
    """They cannot be changed: an upgrade that tried would be refused."""
    upgrade = ("upgrade", "--install", "kept", str(MANIFESTS), "--create-namespace", "-n", "releases")
    helm(plane, *upgrade)
    changed = ("several-clusters", "cert-manager", "volume", "monitoring", "host-network", "scheduling")
    helm(plane, *upgrade, *(f"--values={VALUES[name]}" for name in changed))

    assert '"deployed"' in helm(plane, "list", "-n", "releases", "--output", "json")
    helm(plane, "uninstall", "kept", "-n", "releases")
    assert plane.request("GET", API_SERVICE)[0] == 404


@pytest.mark.parametrize("file", VALUES.values(), ids=VALUES.keys())
def test_kube_apiserver_takes_the_rendering_of_the_chart(plane: ControlPlane, file: Path) -> None:
    """By server-side apply and with no field that it does not know, as Argo CD does it."""
    plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argo"}}])
    query = "fieldManager=test&force=true&dryRun=All&fieldValidation=Strict"

    for document in rendered.chart([file], release="lag", namespace="argo"):
        applied = plane.ask(
            "PATCH", f"{plane.path_of(document)}?{query}", document, content_type="application/apply-patch+yaml"
        )
        assert applied["metadata"]["labels"].items() >= document["metadata"]["labels"].items()
