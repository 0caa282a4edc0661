"""The adapter's image in its pod, between a real broker and a real kube-apiserver."""

import http.client
import signal
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.settings.types import seconds_of
from local.adapter import API_SERVICE, Adapter, items
from local.images.built import Image, Images
from local.images.container import User, user_of
from local.kafka.broker import Kafka
from local.kubernetes.control_plane import ControlPlane
from local.manifests.check import MANIFESTS
from local.manifests.shipped import NAME
from local.processes import wait_until
from tests.end_to_end.cluster.conftest import VALID
from tests.end_to_end.cluster.test_walk import helm, wait_until_removed
from tests.support.kubernetes.authorities import Authority
from tests.support.real import groups_to_read
from tests.support.real.applied import pod_of
from tests.support.real.in_image import Reached, in_image

GROUP = "ledger"
ENDS_WITHIN_SECONDS = 15.0
"""After the shutdown delay."""
BUSY_SECONDS = 30.0
"""What a busy machine may add."""


@dataclass(frozen=True, slots=True)
class Deployed:
    plane: ControlPlane
    pod: Mapping[str, Any]

    @property
    def container(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.pod["containers"][0]
        return found

    def running(
        self, image: Image, user: User, home: Path, reached: Reached | None = None
    ) -> AbstractContextManager[Adapter]:
        return pod_of(self.plane, home, NAME, NAME, in_image(image, user, reached=reached))


@pytest.fixture(scope="module")
def deployed(plane: ControlPlane, groups: Kafka, rig_home: Path) -> Iterator[Deployed]:
    """What the chart makes."""
    values = rig_home / "image-values.yaml"
    values.write_text(yaml.safe_dump(groups_to_read.settings(groups)))
    arguments = ("--namespace", NAME, "--create-namespace", "--values", str(values))
    helm(plane, "upgrade", "--install", NAME, str(MANIFESTS), *arguments)
    found = plane.get(f"/apis/apps/v1/namespaces/{NAME}/deployments/{NAME}")
    yield Deployed(plane, found["spec"]["template"]["spec"])
    helm(plane, "uninstall", NAME, "--namespace", NAME)
    wait_until_removed(plane, NAME)


@pytest.fixture(scope="module")
def adapter(
    deployed: Deployed, images: Images, user: User, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Adapter]:
    with deployed.running(images.adapter, user, tmp_path_factory.mktemp("pod")) as running:
        yield running
    # kube-apiserver takes longer and longer pauses before it looks for the next one at the place of an absent adapter.
    deployed.plane.request("DELETE", API_SERVICE)


@pytest.fixture
def reader(plane: ControlPlane) -> Iterator[str]:
    """The token of a service account that may read everything."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "default"}}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    }
    plane.apply([account, binding])
    yield plane.token_of("default", "reader")
    plane.delete([binding, account])


def ask(adapter: Adapter, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    """Over HTTPS as kubelets do: without a client certificate, and without a look at the server's."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", adapter.port, timeout=30, context=context)
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_each_probe_of_the_manifests_succeeds(deployed: Deployed, adapter: Adapter) -> None:
    probes = {key: probe for key, probe in deployed.container.items() if key.endswith("Probe")}
    answers = {key: ask(adapter, probe["httpGet"]["path"]) for key, probe in probes.items()}

    assert answers == dict.fromkeys(("startupProbe", "livenessProbe", "readinessProbe"), (200, b"ok"))


def test_kube_apiserver_serves_the_values_from_it(adapter: Adapter, plane: ControlPlane) -> None:
    groups_to_read.wait_until_read(plane)
    status, body = plane.raw(groups_to_read.path("default", groups_to_read.LAG, f"group%3D{GROUP}"))
    commits = groups_to_read.COMMITS[GROUP]
    lag = sum(groups_to_read.MESSAGES.get(partition, 0) - offset for partition, offset in commits.items())

    assert (status, adapter.process.is_running()) == (200, True)
    assert sum(int(item["value"]) for item in items(body)) == lag


def test_a_bearer_token_is_reviewed(adapter: Adapter, plane: ControlPlane, reader: str) -> None:
    path = groups_to_read.path("default", groups_to_read.LAG, f"group%3D{GROUP}")

    def status_for(token: str) -> int:
        return ask(adapter, path, {"Authorization": f"Bearer {token}"})[0]

    # A binding counts a moment after it was written, and the adapter keeps a refusal for 10 s.
    wait_until(lambda: status_for(reader) == HTTPStatus.OK, "the reader's right to count", 180)
    assert status_for(plane.token_of("default", "default")) == HTTPStatus.FORBIDDEN


def test_a_kube_apiserver_whose_ca_has_no_key_identifiers_is_reached(
    deployed: Deployed, images: Images, old_authority: Authority, tmp_path: Path
) -> None:
    reached = Reached(VALID, old_authority.pem)
    with deployed.running(images.adapter, user_of(deployed.pod), tmp_path / "pod", reached) as adapter:
        readiness = adapter.get_plain("/readyz?verbose")[1].decode()

    assert "[+]authentication-settings ok" in readiness


def test_sigterm_ends_it_in_time(deployed: Deployed, images: Images, user: User, tmp_path: Path) -> None:
    with deployed.running(images.adapter, user, tmp_path / "pod") as ending:
        began = time.monotonic()
        ending.process.send(signal.SIGTERM)
        status = ending.process.wait(deployed.pod["terminationGracePeriodSeconds"] + BUSY_SECONDS)
        took = time.monotonic() - began
    (delay,) = (flag.partition("=")[2] for flag in deployed.container["args"] if "shutdown-delay" in flag)

    assert status == 0
    assert took < seconds_of(delay) + ENDS_WITHIN_SECONDS + BUSY_SECONDS
