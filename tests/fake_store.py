"""As much of S3 as the history uses: a bucket whose objects are put, listed, looked at and deleted."""

import contextlib
import io
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

DATE = "2026-11-18T12:00:00.000Z"


@dataclass
class FakeStore:
    bucket: str
    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    """(method, path with query), in order."""
    is_silent: bool = False
    ending: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def fake_store(bucket: str) -> Iterator[FakeStore]:
    store = FakeStore(bucket)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"store": store}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield store
    finally:
        store.ending.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: FakeStore

    def do_PUT(self) -> None:
        self._answer(self._put)

    def do_GET(self) -> None:
        self._answer(self._list)

    def do_HEAD(self) -> None:
        self._answer(self._look)

    def do_POST(self) -> None:
        self._answer(self._delete)

    def do_DELETE(self) -> None:
        self._answer(lambda key, _body: (204, self.store.objects.pop(key, b"") and b""))

    def _answer(self, act: Any) -> None:  # noqa: ANN401 - (key, body) -> (status, body)
        body = self._body()
        self.store.requests.append((self.command, self.path))
        if self.store.is_silent:
            self.store.ending.wait()
        bucket, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        status, answer = act(key, body) if bucket == self.store.bucket else (404, _error("NoSuchBucket"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.send_header("Last-Modified", "Wed, 18 Nov 2026 12:00:00 GMT")
        self.send_header("ETag", '"0"')
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(OSError):
                self.wfile.write(answer)

    def _body(self) -> bytes:
        is_chunked = self.headers.get("Transfer-Encoding") == "chunked"
        raw = _unchunked(self.rfile) if is_chunked else self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_chunked_within = "aws-chunked" in self.headers.get("Content-Encoding", "")
        return _unchunked(io.BytesIO(raw)) if is_chunked_within else raw

    def _put(self, key: str, body: bytes) -> tuple[int, bytes]:
        self.store.objects[key] = body
        return 200, b""

    def _look(self, key: str, _body: bytes) -> tuple[int, bytes]:
        return (200, self.store.objects[key]) if key in self.store.objects else (404, b"")

    def _list(self, _key: str, _body: bytes) -> tuple[int, bytes]:
        query = parse_qs(urlsplit(self.path).query)
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        keys = sorted(key for key in self.store.objects if key.startswith(prefix))
        folders = {prefix + key.removeprefix(prefix).partition(delimiter)[0] + delimiter for key in keys if delimiter}
        own = [key for key in keys if not delimiter or delimiter not in key.removeprefix(prefix)]
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.store.objects[key])}</Size>"
            f"<LastModified>{DATE}</LastModified></Contents>"
            for key in own
        )
        common = "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders)
        )
        listing = f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}{common}</ListBucketResult>"
        return 200, listing.encode()

    def _delete(self, _key: str, body: bytes) -> tuple[int, bytes]:
        for element in ET.fromstring(body).iter():  # noqa: S314 - the test's own client wrote it
            if element.tag.endswith("Key"):
                self.store.objects.pop(element.text or "", None)
        return 200, b"<DeleteResult></DeleteResult>"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
        """Nothing: `requests` has them."""


def _unchunked(raw: BufferedIOBase) -> bytes:
    """The content between `SIZE[;signature]` lines; a trailer is read and forgotten."""
    content = b""
    while size := int(raw.readline().partition(b";")[0], 16):
        content += raw.read(size)
        raw.readline()
    while raw.readline().strip():
        pass
    return content


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
