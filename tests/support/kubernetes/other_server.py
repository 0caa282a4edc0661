"""Another server of external metrics in this process, over TLS, that answers what a test says."""

import datetime
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.kubernetes.authorities import SERVER, Authority

SERVICE, NAMESPACE = "other", "others"
HOST = f"{SERVICE}.{NAMESPACE}.svc"
VALUES = b'{"kind": "ExternalMetricValueList", "items": [{"metricName": "queue", "value": "7500m"}]}'


@dataclass
class Answer:
    """`gate`: what must be set before the server answers. `length`: what it announces, if not the body's."""

    code: int = 200
    body: bytes = VALUES
    headers: Mapping[str, str] = field(default_factory=dict)
    gate: threading.Event | None = None
    length: int | None = None
    hangs_up: bool = False
    """Closes the connection after the answer, without having said so."""
    retry_after: str | None = "1"


class OtherServer:
    """Start and stop with `with`. `asked` has each request's target and headers."""

    def __init__(
        self,
        folder: Path,
        authority: Authority,
        host: str = HOST,
        valid_for: datetime.timedelta = datetime.timedelta(hours=1),
    ) -> None:
        self.answer = Answer()
        self.asked: list[tuple[str, dict[str, str]]] = []
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issued = authority.issue("other", usages=(SERVER,), valid_for=valid_for, dns_names=(host,))
        tls.load_cert_chain(*issued.write(folder, f"other-{issued.certificate.serial_number}"))
        self._server = _Server(tls, self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="other-server")

    def answer_to(self, _path: str) -> Answer:
        """Returns the answer to one request, which may take as long as it likes."""
        return self.answer

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.answer.gate is not None:
            self.answer.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> "type[BaseHTTPRequestHandler]":
        other = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                other.asked.append((self.path, {name.lower(): text for name, text in self.headers.items()}))
                answer = other.answer_to(self.path)
                if answer.gate is not None:
                    answer.gate.wait(60)
                self.send_response(answer.code)
                length = len(answer.body) if answer.length is None else answer.length
                retry = {} if answer.retry_after is None else {"Retry-After": answer.retry_after}
                for name, text in {**answer.headers, "Content-Length": str(length), **retry}.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(answer.body)
                if answer.hangs_up or length > len(answer.body):
                    self.close_connection = True

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def log_message(self, *_: object) -> None:
                pass

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, tls: ssl.SSLContext, handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        self._tls = tls
        super().__init__(("127.0.0.1", 0), handler)

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        return self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - as the library calls it
        request.close()  # without the TLS farewell, as a process that ends

    def handle_error(self, *_: object) -> None:
        """Clients that leave are part of the tests."""
