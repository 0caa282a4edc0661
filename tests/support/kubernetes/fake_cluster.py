"""A Kubernetes API server in miniature: reviews, the ConfigMap that says whom to believe, and HPAs, over plain HTTP."""

import json
import queue
import threading
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
Json = dict[str, Any]


class Objects:
    """Those of one kind, by name, and the watches of them."""

    def __init__(self, objects: Iterable[Json] = ()) -> None:
        self.version = 1
        self.is_forbidden = False
        self.are_old_versions_gone = False
        self._by_name = {each["metadata"]["name"]: each for each in objects}
        self._events: list[tuple[int, bytes]] = []
        self._watches: list[queue.SimpleQueue[bytes]] = []
        self._with_bookmarks: list[queue.SimpleQueue[bytes]] = []
        self._lock = threading.RLock()
        """Held for each change and each look, so that a watch gets every change once."""
        self.watches = 0
        """That have begun so far."""
        self.ends = 0
        """How often all watches were ended."""

    def put(self, changed: Json, event: str = "MODIFIED") -> None:
        with self._lock:
            self.version += 1
            changed = changed | {"metadata": {**changed["metadata"], "resourceVersion": str(self.version)}}
            self._by_name[changed["metadata"]["name"]] = changed
            if event == "DELETED":
                del self._by_name[changed["metadata"]["name"]]
            self._tell(event, changed)

    def move_on(self) -> None:
        """As if other objects had changed: the watches that allow it get a bookmark."""
        with self._lock:
            self.version += 1
            bookmark = _line("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})
            for watch in self._with_bookmarks:
                watch.put(bookmark)

    def page(self, query: Mapping[str, list[str]]) -> Json:
        first, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        with self._lock:
            objects = list(self._by_name.values())
            rest = str(first + limit) if len(objects) > first + limit else ""
            metadata = {"resourceVersion": str(self.version), "continue": rest}
        return {"metadata": metadata, "items": objects[first : first + limit]}

    def watch(self, query: Mapping[str, list[str]], ends_before: int) -> "queue.SimpleQueue[bytes]":
        """`ends_before`: `ends` when the request came; if all watches were ended since, this one has ended, too."""
        version, watch = int(query["resourceVersion"][0]), queue.SimpleQueue[bytes]()
        with self._lock:
            self._watches.append(watch)
            if query.get("allowWatchBookmarks") == ["true"]:
                self._with_bookmarks.append(watch)
            if self.are_old_versions_gone and version < self.version:
                watch.put(_line("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"}))
            for changed_at, event in self._events:
                if changed_at > version:
                    watch.put(event)
            if self.ends != ends_before:
                watch.put(b"")
            self.watches += 1
        return watch

    def end_watches(self) -> None:
        """As an API server does after some minutes."""
        with self._lock:
            self.ends += 1
            watches, self._watches, self._with_bookmarks = self._watches, [], []
            for watch in watches:
                watch.put(b"")

    def _tell(self, event: str, changed: Json) -> None:
        self._events.append((self.version, _line(event, changed)))
        for watch in self._watches:
            watch.put(self._events[-1][1])


def _line(event: str, changed: Json) -> bytes:
    return json.dumps({"type": event, "object": changed}).encode() + b"\n"


class FakeCluster:
    """Start and stop with `with`. `tokens`: token -> user name; `allowed`: user names that may do anything."""

    def __init__(self, data: dict[str, str] | None, tokens: dict[str, str], allowed: set[str]) -> None:
        self.tokens, self.allowed = tokens, allowed
        self.reviews: list[Json] = []
        self.paths: list[str] = []
        self.failing_with: int | None = None
        self.config_maps = Objects([] if data is None else [_config_map(data)])
        self.hpas = Objects()
        self.pods: dict[str, Objects] = {}
        """By namespace."""
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
        self.config_maps.put(_config_map(data))

    @property
    def all_objects(self) -> list[Objects]:
        return [self.config_maps, self.hpas, *self.pods.values()]

    def end_watches(self) -> None:
        for each in self.all_objects:
            each.end_watches()

    def review(self, review: dict[str, Any]) -> dict[str, Any]:
        self.reviews.append(review)
        spec = review["spec"]
        if review["kind"] == "SubjectAccessReview":
            return review | {"status": {"allowed": spec["user"] in self.allowed, "reason": "as the test says"}}
        user = self.tokens.get(spec["token"])
        return review | {"status": {"authenticated": user is not None, "user": {"username": user or ""}}}

    def objects_at(self, path: str, query: Mapping[str, list[str]]) -> Objects | None:
        """Returns None for what the shipped Roles do not allow."""
        if path == HPAS:
            return None if self.hpas.is_forbidden else self.hpas
        for namespace, pods in self.pods.items():
            if path == f"/api/v1/namespaces/{namespace}/pods":
                return None if pods.is_forbidden else pods
        is_allowed = query.get("fieldSelector") == ["metadata.name=extension-apiserver-authentication"]
        return self.config_maps if path == CONFIG_MAPS and is_allowed else None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
                cluster.paths.append(self.path)
                ends = {id(each): each.ends for each in cluster.all_objects}
                objects, failing_with = cluster.objects_at(path, query), cluster.failing_with
                if failing_with or objects is None:
                    self._answer({"message": "as the test says"}, failing_with or 403)
                elif "watch" in query:
                    self._follow(objects.watch(query, ends.get(id(objects), objects.ends)))
                else:
                    self._answer(objects.page(query))

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


def _config_map(data: dict[str, str]) -> Json:
    return {"kind": "ConfigMap", "metadata": {"name": "extension-apiserver-authentication"}, "data": data}


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
