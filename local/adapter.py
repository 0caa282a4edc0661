"""The real `kafka-lag-adapter serve` as a process, with or without a place in the local control plane.

`adapter` applies the shipped manifests and runs one process in place of the Deployment's pods, with a token of the
shipped ServiceAccount, so it has exactly the permissions of the manifests. Only what a machine without pods and
kube-proxy requires is changed: the Service is an ExternalName for localhost, the APIService has that process's port
and CA, and the Deployment has no replicas."""

import base64
import contextlib
import datetime
import json
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import urllib3
import yaml

from apiservice.api_group import CUSTOM, EXTERNAL, ApiGroup
from apiservice.tls.issuing import serving_manifests
from local.certificates import Pair
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.manifests.check import MANIFESTS, load, read
from local.manifests.shipped import NAME, placed
from local.processes import Process, free_port, start, wait_until

NAMESPACE = NAME
SERVER_NAME = f"{NAME}.{NAMESPACE}.svc"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
API_SERVICE = f"{API_SERVICES}/{EXTERNAL.api_service}"
EXTERNAL_METRICS = EXTERNAL.path
FILES = {
    EXTERNAL: "api-service/api-service-external.yaml",
    **{group: f"api-service-custom/api-service-custom-{group.version}.yaml" for group in CUSTOM},
}
"""Those of the APIServices."""
START_TIMEOUT_SECONDS = 180.0
ANSWER_SECONDS = 120.0
"""An adapter answers in milliseconds; a busy machine's disk and processor may stand still for half a minute."""
END_TIMEOUT_SECONDS = 60.0
"""As a kubelet, this waits for the process to finish its reads and to write what it keeps; it needs 10 s at most."""
IDENTITY_KINDS = {
    "Namespace",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
}
LAST_COMMITS = f"{NAME}-last-commits"
IMAGE_ENV = {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}
"""As in the image, so that benchmarks measure its memory."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The process's serving certificate, made as `kafka-lag-adapter certificates` makes it."""

    pair: Pair
    authority: Path
    ca_bundle: str
    """The same CA in base64 of PEM, as in an APIService."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """The running process."""

    process: Process
    port: int
    metrics_port: int
    settings: Path
    serving: Serving

    def get(
        self, path: str, *, shown: Pair | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Returns status and body of a request that bypasses kube-apiserver, with a client certificate if one is given.

        Raises urllib3's HTTPError if there is no answer."""
        context = ssl.create_default_context(cafile=str(self.serving.authority))
        if shown is not None:
            context.load_cert_chain(shown.certificate, shown.key)
        with urllib3.HTTPSConnectionPool(
            "127.0.0.1", self.port, ssl_context=context, server_hostname=SERVER_NAME, assert_hostname=SERVER_NAME
        ) as pool:
            response = pool.request("GET", path, headers=headers, timeout=ANSWER_SECONDS, retries=False)
        return response.status, response.data

    @contextlib.contextmanager
    def sent(self, path: str, headers: Mapping[str, str]) -> Iterator[Callable[[], tuple[int, bytes]]]:
        """Sends a request like `get` without waiting; returns a function that waits for status and body."""
        context = ssl.create_default_context(cafile=str(self.serving.authority))
        connection = urllib3.connection.HTTPSConnection(
            "127.0.0.1",
            self.port,
            ssl_context=context,
            server_hostname=SERVER_NAME,
            assert_hostname=SERVER_NAME,
            timeout=ANSWER_SECONDS,
        )

        def wait() -> tuple[int, bytes]:
            response = connection.getresponse()
            return response.status, response.data

        with contextlib.closing(connection):
            connection.request("GET", path, headers=headers)
            yield wait

    def get_plain(self, path: str) -> tuple[int, bytes]:
        """Returns status and body from the port for probes and the adapter's own metrics."""
        with urllib3.HTTPConnectionPool("127.0.0.1", self.metrics_port) as pool:
            response = pool.request("GET", path, timeout=ANSWER_SECONDS, retries=False)
        return response.status, response.data

    def is_live(self) -> bool:
        return self._says_ok("/livez")

    def is_ready(self) -> bool:
        return self._says_ok("/readyz")

    def _says_ok(self, path: str) -> bool:
        try:
            return self.get_plain(path)[0] == 200
        except urllib3.exceptions.HTTPError:
            return False  # not listening yet


@contextlib.contextmanager
def adapter(
    plane: ControlPlane,
    home: Path,
    settings: Mapping[str, Any],
    groups: Sequence[ApiGroup] = (EXTERNAL,),
    *,
    components: Sequence[str] = (),
    program: Sequence[str] = (),
) -> Iterator[Adapter]:
    """Runs an adapter whose metrics of these groups kube-apiserver serves; `settings` are as in the settings file.

    `components`: folders of the manifests whose objects are applied as well. `program` is that of `process`.
    Raises RigError if it does not become available."""
    serving = new_serving(home)
    port = free_port()
    documents = shipped(port, serving.ca_bundle, groups)
    api_services = [each for each in documents if each["kind"] == "APIService"]
    plane.apply([each for each in documents if each not in api_services])
    plane.apply([each for name in components for each in load(MANIFESTS / name)])
    more = {"last-commits-config-map": f"{NAMESPACE}/{LAST_COMMITS}"}
    with process(
        home, settings, own_kubeconfig(plane), serving=serving, port=port, program=program, more_flags=more
    ) as running:
        wait_until(running.is_ready, "the adapter to be ready", START_TIMEOUT_SECONDS, alive=[running.process])
        # Last, as kube-apiserver takes longer and longer pauses before it tries again whom it found absent.
        plane.apply(api_services)
        wait_until(
            lambda: all(is_available(plane, group) for group in groups),
            "kube-apiserver to find the adapter available",
            START_TIMEOUT_SECONDS,
            alive=[running.process],
        )
        yield running


@contextlib.contextmanager
def process(
    home: Path,
    settings: Mapping[str, Any],
    kubeconfig: Path,
    *,
    serving: Serving | None = None,
    port: int | None = None,
    service: str = "",
    program: Sequence[str] = (),
    more_flags: Mapping[str, object] | None = None,
) -> Iterator[Adapter]:
    """Runs an adapter without an APIService and waits until it is live; raises RigError if it ends.

    With `service` (the flag), it manages its certificate and the APIService itself. `program` is a command with the
    same arguments, in place of the installed one."""
    home.mkdir(parents=True, exist_ok=True)
    serving = serving or new_serving(home)
    port, metrics_port = port or free_port(), free_port()
    settings_file = home / "settings.yaml"
    settings_file.write_text(yaml.safe_dump(dict(settings), sort_keys=False))
    files = {"tls-cert-file": serving.pair.certificate, "tls-private-key-file": serving.pair.key}
    flags = {
        "config": settings_file,
        "kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "secure-port": port,
        **({"service": service} if service else files),
        "metrics-bind-address": "127.0.0.1",
        "metrics-port": metrics_port,
        **(more_flags or {}),
    }
    command = [*(program or [str(installed())]), "serve", *(f"--{flag}={value}" for flag, value in flags.items())]
    with start(NAME, command, log=home / "adapter.log", env=IMAGE_ENV) as running:
        started = Adapter(running, port, metrics_port, settings_file, serving)
        wait_until(started.is_live, "the adapter to be live", START_TIMEOUT_SECONDS, alive=[running])
        try:
            yield started
        finally:
            running.stop(END_TIMEOUT_SECONDS)


def installed() -> Path:
    """Returns the command that is installed beside this interpreter."""
    return Path(sys.executable).with_name(NAME)


def own_kubeconfig(plane: ControlPlane) -> Path:
    """Returns a kubeconfig with a token of the shipped ServiceAccount, after applying it and its permissions."""
    plane.apply([document for document in load() if document["kind"] in IDENTITY_KINDS])
    return plane.kubeconfig_for_service_account(NAMESPACE, NAME)


def shipped(port: int, ca_bundle: str, groups: Sequence[ApiGroup] = (EXTERNAL,)) -> list[Manifest]:
    """Returns the shipped manifests for a process at this local port; the APIServices of these groups are last."""
    documents: list[Manifest] = []
    for document in [*load(), *(placed(read(MANIFESTS / FILES[group]), NAMESPACE) for group in groups)]:
        match document["kind"], document["metadata"]["name"]:
            case "Service", name if name == NAME:
                documents.append({**document, "spec": external_name(port)})
            case "APIService", _:
                spec = document["spec"]
                service = {**spec["service"], "port": port}
                documents.append({**document, "spec": {**spec, "service": service, "caBundle": ca_bundle}})
            case "Deployment", _:
                documents.append({**document, "spec": {**document["spec"], "replicas": 0}})
            case _:
                documents.append(document)
    return documents


def new_serving(home: Path, *, namespace: str = NAMESPACE) -> Serving:
    """Creates certificates for a Service in that namespace in files of `home`; a second call renews the files."""
    home.mkdir(parents=True, exist_ok=True)
    made = serving_manifests(namespace, NAME, days=1, now=datetime.datetime.now(datetime.UTC))
    secret, api_service = yaml.safe_load_all(made)
    pair = Pair(home / "tls.crt", home / "tls.key")
    authority = home / "tls-ca.crt"
    pair.key.touch(mode=0o600)
    pair.key.write_bytes(base64.b64decode(secret["data"]["tls.key"]))
    pair.certificate.write_bytes(base64.b64decode(secret["data"]["tls.crt"]))
    ca_bundle = api_service["spec"]["caBundle"]
    authority.write_bytes(base64.b64decode(ca_bundle))
    return Serving(pair, authority, ca_bundle)


def is_available(plane: ControlPlane, group: ApiGroup = EXTERNAL) -> bool:
    """Whether kube-apiserver forwards requests for metrics of the group: a moment after it has found that it can."""
    conditions = plane.get(f"{API_SERVICES}/{group.api_service}").get("status", {}).get("conditions", [])
    is_found = any(each["type"] == "Available" and each["status"] == "True" for each in conditions)
    return is_found and plane.raw(group.path)[0] == HTTPStatus.OK


def items(body: bytes) -> list[dict[str, Any]]:
    """Returns the values in a reply of the metrics API."""
    found: list[dict[str, Any]] = json.loads(body)["items"]
    return found


def external_name(port: int) -> Manifest:
    """Without kube-proxy, only this kind of Service makes the aggregator connect to a local address."""
    return {"type": "ExternalName", "externalName": "localhost", "ports": [{"name": "https", "port": port}]}
