"""The adapter as a pod runs it: a user without a passwd entry, no HOME, a read-only root, and the kubelet's probes.

The images themselves are tested by `make test-images`."""

import contextlib
import http.client
import subprocess
import sys
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from local.adapter import Adapter, installed, items, process
from local.kafka.broker import Kafka
from local.kubernetes.control_plane import ControlPlane
from local.manifests.check import load
from local.processes import wait_until
from tests.support.kubernetes.authorities import client_context
from tests.support.real.groups_to_read import LAG, path

USER = 65532
# In namespaces, which need no rights on this machine: `$0` stays writable, the root does not, and then the user
# changes.
CONFINED = (
    'mount --bind "$0" "$0" && mount -o remount,bind,ro / && '
    f'exec unshare --user --map-user={USER} --map-group={USER} env -i "$@"'
)


def confined(writable: Path) -> list[str]:
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", CONFINED, str(writable)]


@pytest.fixture(scope="module")
def pod(plane: ControlPlane, guarded: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adapter]:
    home = tmp_path_factory.mktemp("pod")
    settings = {"clusters": [{"name": "main", "bootstrapServers": guarded.bootstrap_servers.split(",")}]}
    program = [*confined(home), str(installed())]
    with process(home, settings, plane.admin_kubeconfig, program=program) as running:
        wait_until(running.is_ready, "the adapter to be ready", 180, alive=[running.process])
        yield running


def test_the_user_has_no_passwd_entry_no_home_and_a_read_only_root(tmp_path: Path) -> None:
    code = """
import os, pwd
try:
    pwd.getpwuid(os.getuid())
except KeyError as error:
    print(error, "HOME" in os.environ, bool(os.statvfs("/").f_flag & os.ST_RDONLY))
"""
    confined_python = [*confined(tmp_path), sys.executable, "-c", code]
    printed = subprocess.run(confined_python, check=True, capture_output=True, text=True).stdout

    assert printed == f"'getpwuid(): uid not found: {USER}' False True\n"


def test_a_pods_process_serves_lag(plane: ControlPlane, pod: Adapter) -> None:
    """It is ready before it has read anything."""
    reader = plane.issue("reader", ["system:masters"])

    def has_lag() -> bool:
        status, body = pod.get(path("default", LAG), shown=reader)
        return status == HTTPStatus.OK and len(items(body)) > 0

    wait_until(has_lag, "the lag of a group", 180, alive=[pod.process])


@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe", "readinessProbe"])
def test_every_probe_of_the_manifests_succeeds(pod: Adapter, tmp_path: Path, probe: str) -> None:
    """The kubelet shows no certificate and verifies none."""
    (deployment,) = (document for document in load() if document["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    request = container[probe]["httpGet"]
    assert request["scheme"] == "HTTPS"
    port = {"https": pod.port, "metrics": pod.metrics_port}[request["port"]]
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=client_context(tmp_path))
    with contextlib.closing(connection):
        connection.request("GET", request["path"])

        assert connection.getresponse().status == 200
