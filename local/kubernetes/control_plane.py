"""A real Kubernetes control plane on 127.0.0.1: etcd, kube-apiserver and kube-controller-manager, with the native HPA.

It keeps its state in a folder. Through a `ControlPlane`, tests and the demo act as its administrator, issue
certificates and tokens, and apply manifests. There is no scheduler and no kubelet; `local.kubernetes.node` replaces
both."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
import yaml

from local.certificates import Authority, Pair, new_authority, new_key
from local.downloads import control_plane_binary
from local.processes import Process, RigError, free_port, start, wait_until

START_TIMEOUT_SECONDS = 120.0
SERVICE_RANGE = "10.0.0.0/24"
FIRST_SERVICE_ADDRESS = "10.0.0.1"
ISSUER = "https://kubernetes.default.svc"
FRONT_PROXY = "front-proxy-client"
CONTROLLER_MANAGER = "kube-controller-manager"
TOKEN_SECONDS = 24 * 3600
ACCOUNT_SECONDS = 180.0

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The running control plane, as its administrator sees it."""

    home: Path
    port: int
    url: str
    admin_kubeconfig: Path
    authority: Authority
    front_proxy_authority: Authority
    front_proxy: Pair
    apiserver: Process
    pool: urllib3.PoolManager

    @property
    def cluster_ca(self) -> Path:
        return self.authority.pair.certificate

    @property
    def controller_manager_log(self) -> Path:
        return self.home / "logs" / f"{CONTROLLER_MANAGER}.log"

    @property
    def front_proxy_ca(self) -> Path:
        return self.front_proxy_authority.pair.certificate

    def issue(self, common_name: str, organizations: Sequence[str] = ()) -> Pair:
        """Returns a client certificate that kube-apiserver trusts, for a user of that name in these groups."""
        return self.authority.issue(common_name, organizations)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 30.0,
    ) -> tuple[int, bytes]:
        """Sends one request to kube-apiserver as administrator, with `body` as JSON; returns status and body.

        Raises urllib3's HTTPError if there is no answer."""
        response = self.pool.request(
            method,
            self.url + path,
            body=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": content_type, **(headers or {})},
            timeout=timeout_seconds,
            retries=False,
        )
        return response.status, response.data

    def raw(self, path: str) -> tuple[int, bytes]:
        """Returns status and body of a GET, like `kubectl get --raw`."""
        return self.request("GET", path)

    def get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Returns the JSON at a path. Raises RigError for any status but 2xx."""
        return self.ask("GET", path)

    def ask(self, method: str, path: str, body: object = None, **options: Any) -> Any:  # noqa: ANN401 - JSON
        """Returns the JSON reply to one request. Raises RigError for any status but 2xx."""
        status, answer = self.request(method, path, body, **options)
        if not 200 <= status < 300:
            raise RigError(f"{method} {path}: {status} {answer.decode(errors='replace').strip()}")
        return json.loads(answer)

    def apply(self, documents: Sequence[Manifest]) -> None:
        """Creates or changes objects to match the manifests, in their order (server-side apply)."""
        query = urlencode({"fieldManager": "local", "force": "true"})
        for document in documents:
            self.ask(
                "PATCH", f"{self.path_of(document)}?{query}", document, content_type="application/apply-patch+yaml"
            )

    def delete(self, documents: Sequence[Manifest]) -> None:
        """Deletes what `apply` created from these manifests; ignores objects that do not exist."""
        for document in documents:
            status, answer = self.request("DELETE", self.path_of(document))
            if status not in {200, 202, 404}:
                raise RigError(f"DELETE {self.path_of(document)}: {status} {answer.decode(errors='replace').strip()}")

    def kubeconfig(self, name: str, user: Mapping[str, str]) -> Path:
        """Returns a kubeconfig file for this cluster; `user` as in such a file, for example {"token": "..."}."""
        file = self.home / f"{name}.kubeconfig"
        return _write_kubeconfig(file, self.url, self.cluster_ca, user)

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        """Returns a kubeconfig with `token_of` that service account."""
        return self.kubeconfig(f"service-account-{namespace}-{name}", {"token": self.token_of(namespace, name)})

    def token_of(self, namespace: str, name: str) -> str:
        """Returns a token of that service account, valid for a day.

        kube-controller-manager makes the account `default` some time after its namespace, so this waits for the
        account. Raises RigError if it does not appear."""
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        wait_until(lambda: self.raw(account)[0] == HTTPStatus.OK, f"the account {namespace}/{name}", ACCOUNT_SECONDS)
        spec = {"audiences": [ISSUER], "expirationSeconds": TOKEN_SECONDS}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.ask("POST", f"{account}/token", request)["status"]["token"])

    def path_of(self, document: Manifest) -> str:
        """Returns the path of this manifest's object at kube-apiserver; raises RigError for an unknown kind."""
        version, kind, metadata = document["apiVersion"], document["kind"], document["metadata"]
        prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for resource in self.get(prefix)["resources"]:
            if resource["kind"] == kind and "/" not in resource["name"]:
                namespace = f"/namespaces/{metadata.get('namespace', 'default')}" if resource["namespaced"] else ""
                return f"{prefix}{namespace}/{resource['name']}/{metadata['name']}"
        raise RigError(f"kube-apiserver has no {kind} in {version}")


@contextlib.contextmanager
def control_plane(
    home: Path,
    *,
    hpa_sync_seconds: int = 2,
    downscale_stabilization_seconds: int = 5,
    more_serving: Sequence[tuple[Path, Path]] = (),
    has_scale_to_zero: bool = True,
    names_front_proxy: bool = True,
) -> Iterator[ControlPlane]:
    """Starts the control plane with its state in `home`, and ends it: kube-controller-manager first, etcd last.

    `has_scale_to_zero`: the feature gate HPAScaleToZero, which is on by default from Kubernetes 1.37.
    `names_front_proxy`: whether kube-apiserver publishes the CA of its front proxy. kube-controller-manager does not
    start without that CA, so there is none then.
    `more_serving`: certificates and keys that kube-apiserver shows to clients that ask for another name than its own.
    In real clusters the HPA reads every 15 s and waits 300 s before it scales down, unless its own `behavior` says
    otherwise. Raises RigError if a part does not start."""
    binary = control_plane_binary()
    logs = home / "logs"
    authority = new_authority(home / "cluster-ca", "local-cluster-ca")
    features = f"HPAScaleToZero={str(has_scale_to_zero).lower()}"
    with contextlib.ExitStack() as running:
        etcd_url, etcd = _start_etcd(binary, home, logs)
        running.enter_context(etcd)
        left_out = () if names_front_proxy else ("requestheader-",)
        plane = running.enter_context(
            _apiserver(binary, home, logs, authority, etcd_url, more_serving, features, left_out)
        )
        _wait_for_apiserver(plane, etcd)
        if not names_front_proxy:
            yield plane
            return
        periods = (hpa_sync_seconds, downscale_stabilization_seconds)
        url, controller_manager = _start_controller_manager(binary, plane, *periods, features)
        running.enter_context(controller_manager)
        _wait_for_controller_manager(plane, url, controller_manager)
        yield plane


def _start_etcd(binary: Path, home: Path, logs: Path) -> tuple[str, Process]:
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    flags = {
        "data-dir": home / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "unsafe-no-fsync": "true",  # the state need not outlive the process
        "log-level": "warn",
    }
    return client, start("etcd", _command(binary, "etcd", flags), log=logs / "etcd.log")


@contextlib.contextmanager
def _apiserver(
    binary: Path,
    home: Path,
    logs: Path,
    authority: Authority,
    etcd_url: str,
    more_serving: Sequence[tuple[Path, Path]],
    features: str,
    left_out: tuple[str, ...],
) -> Iterator[ControlPlane]:
    """Starts kube-apiserver without the flags that begin so; the caller has to wait until it is ready."""
    front_proxy_authority = new_authority(home / "front-proxy-ca", "local-front-proxy-ca")
    front_proxy = front_proxy_authority.issue(FRONT_PROXY)
    serving = authority.issue(
        "kube-apiserver",
        dns_names=["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"],
        addresses=["127.0.0.1", FIRST_SERVICE_ADDRESS],
    )
    admin = authority.issue("admin", ["system:masters"])
    account_key = new_key(home / "service-accounts.key")
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    flags = {
        "etcd-servers": etcd_url,
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "secure-port": port,
        "service-cluster-ip-range": SERVICE_RANGE,
        "authorization-mode": "RBAC",
        "client-ca-file": authority.pair.certificate,
        "tls-cert-file": serving.certificate,
        "tls-private-key-file": serving.key,
        "service-account-key-file": account_key,
        "service-account-signing-key-file": account_key,
        "service-account-issuer": ISSUER,
        "requestheader-client-ca-file": front_proxy_authority.pair.certificate,
        "requestheader-allowed-names": FRONT_PROXY,
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": front_proxy.certificate,
        "proxy-client-key-file": front_proxy.key,
        "endpoint-reconciler-type": "none",
        "disable-admission-plugins": "ServiceAccount",  # it would refuse pods until their account's token is mounted
        "feature-gates": features,
    }
    pool = urllib3.PoolManager(
        maxsize=8, ca_certs=str(authority.pair.certificate), cert_file=str(admin.certificate), key_file=str(admin.key)
    )
    user = {"client-certificate": str(admin.certificate), "client-key": str(admin.key)}
    kubeconfig = _write_kubeconfig(home / "admin.kubeconfig", url, authority.pair.certificate, user)
    more = [f"--tls-sni-cert-key={certificate},{key}" for certificate, key in more_serving]
    given = {name: value for name, value in flags.items() if not name.startswith(left_out)}
    command = [*_command(binary, "kube-apiserver", given), *more]
    process = start("kube-apiserver", command, log=logs / "kube-apiserver.log")
    with process:
        try:
            yield ControlPlane(
                home, port, url, kubeconfig, authority, front_proxy_authority, front_proxy, process, pool
            )
        finally:
            pool.clear()


def _wait_for_apiserver(plane: ControlPlane, etcd: Process) -> None:
    """Waits until it is ready and has the objects that kube-controller-manager and the node need to start."""
    paths = [
        "/readyz",
        "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/kube-node-lease",
    ]
    alive = [etcd, plane.apiserver]
    wait_until(
        lambda: all(_answers(plane, plane.url + path) for path in paths),
        "kube-apiserver",
        START_TIMEOUT_SECONDS,
        alive=alive,
    )


def _start_controller_manager(
    binary: Path,
    plane: ControlPlane,
    hpa_sync_seconds: int,
    downscale_stabilization_seconds: int,
    features: str,
) -> tuple[str, Process]:
    user = plane.issue("system:kube-controller-manager")
    kubeconfig = plane.kubeconfig(
        "controller-manager", {"client-certificate": str(user.certificate), "client-key": str(user.key)}
    )
    serving = plane.authority.issue("kube-controller-manager", addresses=["127.0.0.1"])
    port = free_port()
    flags = {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "service-account-private-key-file": plane.home / "service-accounts.key",
        "root-ca-file": plane.cluster_ca,
        "tls-cert-file": serving.certificate,
        "tls-private-key-file": serving.key,
        "use-service-account-credentials": "true",
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "horizontal-pod-autoscaler-sync-period": f"{hpa_sync_seconds}s",
        "horizontal-pod-autoscaler-downscale-stabilization": f"{downscale_stabilization_seconds}s",
        "kube-api-qps": 100,  # all HPAs of a namespace decide within two seconds here, not fifteen
        "kube-api-burst": 200,
        "vmodule": "horizontal=4",  # logs each decision of the HPA controller, and when it was made
        "feature-gates": features,
    }
    command = _command(binary, CONTROLLER_MANAGER, flags)
    return f"https://127.0.0.1:{port}", start(CONTROLLER_MANAGER, command, log=plane.controller_manager_log)


def _wait_for_controller_manager(plane: ControlPlane, url: str, process: Process) -> None:
    alive = [plane.apiserver, process]
    wait_until(lambda: _answers(plane, f"{url}/healthz"), process.name, START_TIMEOUT_SECONDS, alive=alive)


def _answers(plane: ControlPlane, url: str) -> bool:
    try:
        return plane.pool.request("GET", url, timeout=5.0, retries=False).status == 200
    except urllib3.exceptions.HTTPError:
        return False  # not listening yet


def _command(binary: Path, part: str, flags: Mapping[str, object]) -> list[str]:
    return [str(binary), part, *(f"--{flag}={value}" for flag, value in flags.items())]


def _write_kubeconfig(file: Path, url: str, ca: Path, user: Mapping[str, str]) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": url, "certificate-authority": str(ca)}}],
        "users": [{"name": "local", "user": dict(user)}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
        "current-context": "local",
    }
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(document))
    return file
