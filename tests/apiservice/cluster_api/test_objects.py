"""Single objects are read and written as the API server expects it."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from apiservice.auth.cluster_settings import ClusterUnreachable
from apiservice.cluster_api.connection import connect
from apiservice.cluster_api.objects import ClusterObjects
from tests.support.kubernetes.fake_cluster import kubeconfig_text


class Server(ThreadingHTTPServer):
    """Answers with `code` and keeps what it was asked."""

    code = 200
    asked: tuple[str, str, str, Any] | None = None
    connections = 0
    date = "Wed, 18 Nov 2026 12:00:00 GMT"


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_GET(self) -> None:
        self._answer(None)

    def do_PUT(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    do_PATCH = do_PUT  # noqa: N815 - as the library calls it

    def _answer(self, body: object) -> None:
        self.server.asked = (self.command, self.path, self.headers["Content-Type"], body)
        content = json.dumps({"kind": "Secret", "message": "as the test says"}).encode()
        self.send_response(self.server.code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def date_time_string(self, _timestamp: float | None = None) -> str:
        return self.server.date

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Tests are quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.05,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def objects(server: Server, tmp_path: Path) -> ClusterObjects:
    (tmp_path / "kubeconfig").write_text(kubeconfig_text(server.server_address[1]))
    return ClusterObjects(connect(tmp_path / "kubeconfig"))


def test_an_object_is_read_or_absent(objects: ClusterObjects, server: Server) -> None:
    assert objects.read("/api/v1/x") == {"kind": "Secret", "message": "as the test says"}
    server.code = 404
    assert objects.read("/api/v1/x") is None
    server.code = 403
    with pytest.raises(ClusterUnreachable, match="403: as the test says"):
        objects.read("/api/v1/x")


def test_the_time_is_the_api_servers_and_the_machines_own_where_it_sends_none(
    objects: ClusterObjects, server: Server
) -> None:
    objects.read("/api/v1/x")
    assert objects.answered_at == datetime(2026, 11, 18, 12, tzinfo=UTC)

    server.date = "no date"
    before = datetime.now(UTC)
    objects.read("/api/v1/x")
    assert before <= objects.answered_at <= datetime.now(UTC)


def test_each_kind_of_write_sends_the_object_once_encoded(objects: ClusterObjects, server: Server) -> None:
    document = {"spec": {"caBundle": "eA=="}}

    assert objects.replace("/x", document)
    assert server.asked == ("PUT", "/x?fieldManager=kafka-lag-adapter", "application/json", document)
    assert objects.merge("/x", document)
    assert server.asked == ("PATCH", "/x?fieldManager=kafka-lag-adapter", "application/merge-patch+json", document)
    assert objects.merged("/x", {}) == {"kind": "Secret", "message": "as the test says"}
    assert objects.apply("/x", document, force=False)
    query = "fieldManager=kafka-lag-adapter&force=false"
    assert server.asked == ("PATCH", f"/x?{query}", "application/apply-patch+yaml", document)


def test_a_conflict_is_no_error_and_no_success(objects: ClusterObjects, server: Server) -> None:
    server.code = 409

    assert not objects.replace("/x", {})
    assert not objects.merge("/x", {})
    assert objects.merged("/x", {}) is None
    assert not objects.apply("/x", {}, force=True)
    assert server.connections == 1


def test_an_absent_object_leaves_the_connection_to_the_next_request(objects: ClusterObjects, server: Server) -> None:
    server.code = 404

    assert objects.read("/x") is objects.read("/x") is None
    assert server.connections == 1
