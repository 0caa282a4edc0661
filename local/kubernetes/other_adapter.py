"""Another server of external and custom metrics, as KEDA, Datadog or prometheus-adapter are: it knows neither Kafka nor
this project's adapter.

It believes the front proxy and bearer tokens, and asks kube-apiserver whether the caller may read: `python -m
local.kubernetes.other_adapter --help`"""

import argparse
import base64
import contextlib
import json
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import urllib3
import yaml

from local.certificates import Authority, Pair, new_authority
from local.kubernetes.control_plane import ControlPlane, Manifest
from local.processes import Process, free_port, start, wait_until

GROUP, VERSION = "external.metrics.k8s.io", "v1beta1"
METRICS = f"/apis/{GROUP}/{VERSION}"
CUSTOM_GROUP, CUSTOM_VERSION = "custom.metrics.k8s.io", "v1beta2"
CUSTOM_METRICS = f"/apis/{CUSTOM_GROUP}/{CUSTOM_VERSION}"
REQUESTS = "http-requests"
"""A custom metric of pods."""
NAME = "other-adapter"
QUEUE, PAGE, OURS = "queue-depth@others:jobs", "page", "kafka_consumergroup_lag"
"""A metric with a value; one that is answered with a page for people; and one that the lag adapter has too."""


@dataclass(slots=True)
class OtherAdapter:
    port: int
    authority: Authority
    namespace: str
    log: Path
    command: Sequence[str]
    process: Process = field(init=False)

    def start(self) -> None:
        """Starts it, also again, and waits until it listens."""
        starts = self._starts()
        self.process = start("other adapter", self.command, log=self.log)
        wait_until(lambda: self._starts() > starts, "the other adapter", 180, alive=[self.process])

    def _starts(self) -> int:
        return self.log.read_text().count("listening\n") if self.log.exists() else 0

    @property
    def ca_bundle(self) -> str:
        """Its authority as in an APIService."""
        return base64.b64encode(self.authority.pair.certificate.read_bytes()).decode()

    @property
    def seen(self) -> list[dict[str, Any]]:
        """The reads so far: path, user, and the names of the headers."""
        lines = self.log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


@contextlib.contextmanager
def other_adapter(plane: ControlPlane, home: Path, namespace: str) -> Iterator[OtherAdapter]:
    """Runs it with a ServiceAccount of its own in a namespace that exists, without an APIService."""
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}
    plane.apply(
        [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": namespace}},
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{NAME}-{namespace}"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "system:auth-delegator",
                },
                "subjects": [account],
            },
        ]
    )
    authority = new_authority(home / "authority", "other-ca")
    pair = authority.issue("other", dns_names=[f"{NAME}.{namespace}.svc"])
    port, log = free_port(), home / "other-adapter.log"
    flags = {
        "port": port,
        "certificate": pair.certificate,
        "key": pair.key,
        "front-proxy-ca": plane.front_proxy_ca,
        "kubeconfig": plane.kubeconfig_for_service_account(namespace, NAME),
    }
    command = [sys.executable, "-m", "local.kubernetes.other_adapter", *(f"--{key}={flags[key]}" for key in flags)]
    other = OtherAdapter(port, authority, namespace, log, command)
    other.start()
    try:
        yield other
    finally:
        other.process.stop()


class _Reviews:
    """kube-apiserver, as the ServiceAccount of the kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster = document["clusters"][0]["cluster"]
        self._url = cluster["server"]
        self._headers = {"Authorization": f"Bearer {document['users'][0]['user']['token']}"}
        self._pool = urllib3.PoolManager(ca_certs=cluster["certificate-authority"])

    def user_of(self, token: str) -> Mapping[str, Any] | None:
        status = self._asked("authentication.k8s.io", "TokenReview", {"token": token})
        return status["user"] if status.get("authenticated") else None

    def may(self, user: Mapping[str, Any], wish: Mapping[str, str]) -> bool:
        spec = {"user": user["username"], "groups": user["groups"], "resourceAttributes": wish}
        return bool(self._asked("authorization.k8s.io", "SubjectAccessReview", spec)["allowed"])

    def _asked(self, group: str, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        review: Manifest = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        path = f"{self._url}/apis/{group}/v1/{kind.lower()}s"
        reply = self._pool.request("POST", path, json=review, headers=self._headers)
        found: dict[str, Any] = json.loads(reply.data)["status"]
        return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    reviews: _Reviews

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        user = self._user()
        if user is None:
            self._refuse(401, "Unauthorized", "Unauthorized")
        elif parts.path == METRICS:
            self._list(f"{GROUP}/{VERSION}", "ExternalMetricValueList", [QUEUE, PAGE, OURS])
        elif parts.path.startswith(f"{METRICS}/namespaces/"):
            namespace, _, metric = parts.path.removeprefix(f"{METRICS}/namespaces/").partition("/")
            selector = parse_qs(parts.query).get("labelSelector", [""])[0]
            self._read(user, unquote(namespace), unquote(metric), selector)
        elif parts.path == CUSTOM_METRICS:
            self._list(f"{CUSTOM_GROUP}/{CUSTOM_VERSION}", "MetricValueList", [f"pods/{REQUESTS}"])
        elif parts.path.startswith(f"{CUSTOM_METRICS}/namespaces/"):
            self._read_pods(user, *map(unquote, parts.path.removeprefix(f"{CUSTOM_METRICS}/namespaces/").split("/")))
        else:
            self._refuse(404, "NotFound", "nothing is here")

    def _list(self, version: str, kind: str, names: Sequence[str]) -> None:
        rest = {"singularName": "", "namespaced": True, "kind": kind, "verbs": ["get"]}
        resources = [{"name": name, **rest} for name in names]
        self._reply(200, {"kind": "APIResourceList", "groupVersion": version, "resources": resources})

    def _read_pods(self, user: Mapping[str, Any], namespace: str, resource: str, name: str, metric: str) -> None:
        self._note(user)
        group = {"group": CUSTOM_GROUP, "version": CUSTOM_VERSION}
        wish = {
            **group,
            "verb": "get",
            "namespace": namespace,
            "resource": resource,
            "name": name,
            "subresource": metric,
        }
        if not self.reviews.may(user, wish):
            self._refuse(403, "Forbidden", f"other: {user['username']} may not get {resource}/{metric} in {namespace}")
            return
        pod = {"kind": "Pod", "namespace": namespace, "name": "any-0", "apiVersion": "v1"}
        item = {
            "describedObject": pod,
            "metric": {"name": metric},
            "timestamp": "2026-11-21T11:48:29Z",
            "value": "7500m",
        }
        version = f"{CUSTOM_GROUP}/{CUSTOM_VERSION}"
        self._reply(200, {"kind": "MetricValueList", "apiVersion": version, "metadata": {}, "items": [item]})

    def _note(self, user: Mapping[str, Any]) -> None:
        seen = {"path": self.path, "user": user["username"], "headers": sorted(name.lower() for name in self.headers)}
        sys.stdout.write(json.dumps(seen) + "\n")
        sys.stdout.flush()

    def _read(self, user: Mapping[str, Any], namespace: str, metric: str, selector: str) -> None:
        self._note(user)
        wish = {"namespace": namespace, "verb": "list", "group": GROUP, "version": VERSION, "resource": metric}
        if not self.reviews.may(user, wish):
            self._refuse(403, "Forbidden", f"other: {user['username']} may not list {metric} in {namespace}")
        elif metric == QUEUE:
            labels = {"selector": selector}
            item = {"metricName": metric, "metricLabels": labels, "timestamp": "2026-11-21T11:48:29Z", "value": "7500m"}
            self._reply(200, {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "items": [item]})
        elif metric == PAGE:
            self._send(200, b"<html>a page for people</html>", "text/html")
        else:
            self._refuse(404, "NotFound", f"other: there is no {metric}")

    def _user(self) -> Mapping[str, Any] | None:
        assert isinstance(self.connection, ssl.SSLSocket)
        if self.connection.getpeercert():  # verified, and only the front proxy's authority is trusted
            return {"username": self.headers["X-Remote-User"], "groups": self.headers.get_all("X-Remote-Group") or []}
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        return self.reviews.user_of(token) if scheme.lower() == "bearer" else None

    def _refuse(self, code: int, reason: str, message: str) -> None:
        self._reply(code, {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code})

    def _reply(self, code: int, document: Mapping[str, Any]) -> None:
        self._send(code, json.dumps({"apiVersion": "v1", **document}, indent=1).encode(), "application/json")

    def _send(self, code: int, body: bytes, content_type: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, pair: Pair, front_proxy_ca: Path, handler: type[_Handler]) -> None:
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(front_proxy_ca))
        self._tls.verify_mode = ssl.CERT_OPTIONAL
        self._tls.load_cert_chain(*pair)
        super().__init__(("127.0.0.1", port), handler)

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        # The handshake is for the connection's own thread.
        return self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_: object) -> None:
        """A peer that leaves is no error."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    for name in ("certificate", "key", "front-proxy-ca", "kubeconfig"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    arguments = parser.parse_args()
    handler = type("Handler", (_Handler,), {"reviews": _Reviews(arguments.kubeconfig)})
    pair = Pair(arguments.certificate, arguments.key)
    with _Server(arguments.port, pair, arguments.front_proxy_ca, handler) as server:
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


if __name__ == "__main__":
    main()
