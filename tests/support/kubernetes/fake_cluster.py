"""A Kubernetes API server in miniature: reviews, and the ConfigMap that says whom to believe, over plain HTTP."""

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"


class FakeCluster:
    """Start and stop with `with`. `tokens`: token -> user name; `allowed`: user names that may do anything."""

    def __init__(self, data: dict[str, str] | None, tokens: dict[str, str], allowed: set[str]) -> None:
        self.tokens, self.allowed = tokens, allowed
        self.reviews: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.failing_with: int | None = None
        self._data = data
        self._version = 1
        self._watches: list[queue.SimpleQueue[bytes]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="fake-cluster")

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> "FakeCluster":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_watches()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def kubeconfig(self, folder: Path) -> Path:
        """A file that leads here."""
        path = folder / "kubeconfig.yaml"
        path.write_text(kubeconfig_text(self.port))
        return path

    def replace(self, data: dict[str, str]) -> None:
        """Change the ConfigMap and tell those who watch it."""
        self._data = data
        self._version += 1
        for watch in self._watches:
            watch.put(self._event())

    def end_watches(self) -> None:
        """As an API server does after some minutes."""
        watches, self._watches = self._watches, []
        for watch in watches:
            watch.put(b"")

    def listing(self) -> dict[str, Any]:
        items = [self._config_map()] if self._data is not None else []
        return {"kind": "ConfigMapList", "metadata": {"resourceVersion": str(self._version)}, "items": items}

    def review(self, review: dict[str, Any]) -> dict[str, Any]:
        self.reviews.append(review)
        spec = review["spec"]
        if review["kind"] == "SubjectAccessReview":
            return review | {"status": {"allowed": spec["user"] in self.allowed, "reason": "as the test says"}}
        user = self.tokens.get(spec["token"])
        return review | {"status": {"authenticated": user is not None, "user": {"username": user or ""}}}

    def watch(self, version: int) -> "queue.SimpleQueue[bytes]":
        watch: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._watches.append(watch)
        if version < self._version:
            watch.put(self._event())
        return watch

    def _event(self) -> bytes:
        return json.dumps({"type": "MODIFIED", "object": self._config_map()}).encode() + b"\n"

    def _config_map(self) -> dict[str, Any]:
        metadata = {"name": "extension-apiserver-authentication", "resourceVersion": str(self._version)}
        return {"kind": "ConfigMap", "metadata": metadata, "data": self._data}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                cluster.paths.append(self.path)
                # What the Role extension-apiserver-authentication-reader allows, and nothing else.
                is_allowed = query.get("fieldSelector") == ["metadata.name=extension-apiserver-authentication"]
                if cluster.failing_with or not is_allowed or urlsplit(self.path).path != CONFIG_MAPS:
                    self._answer({"message": "as the test says"}, cluster.failing_with or 403)
                elif "watch" in query:
                    self._follow(cluster.watch(int(query["resourceVersion"][0])))
                else:
                    self._answer(cluster.listing())

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if cluster.failing_with:
                    self._answer({"message": "as the test says"}, cluster.failing_with)
                else:
                    self._answer(cluster.review(body), 201)

            def _answer(self, body: dict[str, Any], code: int = 200) -> None:
                content = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def _follow(self, events: "queue.SimpleQueue[bytes]") -> None:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while event := events.get():
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
                self.wfile.write(b"0\r\n\r\n")
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
                """Tests are quiet."""

        return Handler


def kubeconfig_text(port: int) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "test", "user": {"token": "adapter"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
    )
