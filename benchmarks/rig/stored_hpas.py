"""A fake kube-apiserver that lists HPAs in pages and reports status updates of them, and knows nothing else."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from apiservice.autoscalers.followed import PATH

UPDATES_PER_SECOND = 333
"""As if 5,000 HPAs had another value at each of their looks, 15 s apart."""
_GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}


class StoredHpas:
    def __init__(self) -> None:
        self.hpas: list[bytes] = []
        self.is_updating = False
        self.watches = 0
        """Watches that began; each follows a list, because the one before was ended as too old."""
        self.is_list_due = threading.Event()

    def replace(self, hpas: list[bytes]) -> None:
        """Makes the client list again."""
        self.hpas = hpas
        self.is_list_due.set()

    def page(self, first: int, limit: int) -> bytes:
        rest = str(first + limit) if first + limit < len(self.hpas) else ""
        metadata = json.dumps({"resourceVersion": "1", "continue": rest}).encode()
        return b'{"metadata":%s,"items":[%s]}' % (metadata, b",".join(self.hpas[first : first + limit]))

    def events(self) -> Iterator[bytes]:
        self.watches += 1
        number = 0
        while not self.is_list_due.is_set():
            time.sleep(1 / UPDATES_PER_SECOND)
            if self.is_updating and self.hpas:
                yield b'{"type":"MODIFIED","object":%s}\n' % self.hpas[number % len(self.hpas)]
                number += 1
        self.is_list_due.clear()
        yield json.dumps(_GONE).encode() + b"\n"


def hpa(number: int, metric: str) -> bytes:
    """About 3.6 KB, as those that kubectl applied and the HPA controller updates."""
    selector = {"matchLabels": {"group": f"group-{number}", "topic": f"orders-{number}"}}
    external = {
        "metric": {"name": metric, "selector": selector},
        "target": {"type": "AverageValue", "averageValue": "1k"},
    }
    policies = [{"type": kind, "value": 100, "periodSeconds": 15} for kind in ("Pods", "Percent")]
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"consumer-{number}"},
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [{"type": "External", "external": external}],
        "behavior": {"scaleUp": {"policies": policies}, "scaleDown": {"policies": policies}},
    }
    fields: dict[str, object] = {f"f:{name}-{at}": {} for name in ("spec", "status") for at in range(50)}
    metadata = {
        "name": f"consumer-{number}",
        "namespace": f"team-{number % 100}",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": spec})},
        "managedFields": [{"manager": "kube-controller-manager", "fieldsType": "FieldsV1", "fieldsV1": fields}],
    }
    conditions = [
        {"type": kind, "status": "True", "reason": "ValidMetricFound", "message": f"as if {kind} had been computed"}
        for kind in ("AbleToScale", "ScalingActive", "ScalingLimited")
    ]
    status = {"lastScaleTime": "2026-11-23T00:00:00Z", "currentReplicas": 1, "desiredReplicas": 1}
    return json.dumps({"metadata": metadata, "spec": spec, "status": {**status, "conditions": conditions}}).encode()


@contextlib.contextmanager
def stored_hpas() -> Iterator[tuple[StoredHpas, str]]:
    """Yields the HPAs and the text of a kubeconfig that leads to them."""
    stored = StoredHpas()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(stored))
    thread = threading.Thread(target=server.serve_forever, name="stored-hpas", daemon=True)
    thread.start()
    try:
        yield stored, _kubeconfig(server.server_port)
    finally:
        stored.is_list_due.set()
        server.shutdown()
        server.server_close()


def _handler(stored: StoredHpas) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url, query = urlsplit(self.path), parse_qs(urlsplit(self.path).query)
            if url.path != PATH:
                self._answer(404, b"{}")
            elif "watch" in query:
                self._follow()
            else:
                self._answer(200, stored.page(int(query.get("continue", ["0"])[0]), int(query["limit"][0])))

        def do_POST(self) -> None:
            self._answer(404, b"{}")

        def _answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _follow(self) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            with contextlib.suppress(ConnectionError):  # the client has ended
                for event in stored.events():
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Only the tables are shown."""

    return Handler


def _kubeconfig(port: int) -> str:
    cluster, user = {"server": f"http://127.0.0.1:{port}"}, {"token": "none"}
    context = {"cluster": "stored", "user": "stored"}
    named = {"clusters": ("cluster", cluster), "users": ("user", user), "contexts": ("context", context)}
    parts = {kind: [{"name": "stored", key: value}] for kind, (key, value) in named.items()}
    return json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "stored", **parts})
