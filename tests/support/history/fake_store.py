"""As much of S3 as the history uses: a bucket whose objects are put, in parts or as a whole, read, listed, looked at
and deleted."""

import contextlib
import hashlib
import io
import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

DATE = "2026-11-18T12:00:00.000Z"

Answer = tuple[int, bytes]


@dataclass
class FakeStore:
    bucket: str
    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    """Key -> Content-Type of an object that was put as a whole."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """(method, path with query), in order."""
    on_request: Callable[[str, str], None] = lambda _method, _path: None
    """Is told of each before it is answered."""
    page: int = 1000
    """Objects in one answer to a listing, at most."""
    is_silent: bool = False
    is_read_only: bool = False
    ignores_conditions: bool = False
    """As some stores do that do not know conditional writes."""
    ending: threading.Event = field(default_factory=threading.Event)

    def lay(self, root: Path) -> None:
        """Every file below the folder as an object below `history/`."""
        for path in root.rglob("*"):
            if path.is_file():
                self.objects[f"history/{path.relative_to(root)}"] = path.read_bytes()

    def below(self, prefix: str) -> dict[str, bytes]:
        """By the rest of their keys, without what pyarrow marks folders with."""
        return {
            key.removeprefix(prefix): content
            for key, content in self.objects.items()
            if key.startswith(prefix) and not key.endswith("/")
        }

    def changes(self) -> list[tuple[str, str]]:
        """(method, key) of every request that was to change something, without what marks folders and reservations."""
        keys = [(method, unquote(urlsplit(path).path).split("/", 2)[-1]) for method, path in self.requests]
        asked = [(method, key) for method, key in keys if method not in {"GET", "HEAD"}]
        return [(method, key) for method, key in asked if not key.endswith("/") and "/.compacting." not in key]


@contextlib.contextmanager
def fake_store(bucket: str) -> Iterator[FakeStore]:
    """Who shows no credentials is refused."""
    store = FakeStore(bucket)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"store": store, "parts": {}}))
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
    disable_nagle_algorithm = True
    store: FakeStore
    parts: dict[tuple[str, int], bytes]
    """Of uploads that are not complete: (key, number) -> content."""

    def do_PUT(self) -> None:
        self._answer(self._put)

    def do_GET(self) -> None:
        self._answer(lambda key, _body: self._get(key) if key else self._list())

    def do_HEAD(self) -> None:
        self._answer(self._look)

    def do_POST(self) -> None:
        self._answer(self._upload if "upload" in self.path else self._delete)

    def do_DELETE(self) -> None:
        self._answer(lambda key, _body: (204, self.store.objects.pop(key, b"") and b""))

    def _answer(self, act: Callable[[str, bytes], Answer]) -> None:
        body = self._body()
        self.store.requests.append((self.command, self.path))
        self.store.on_request(self.command, self.path)
        if self.store.is_silent:
            self.store.ending.wait()
        bucket, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        if "Authorization" not in self.headers:
            status, answer = 403, _error("AccessDenied")
        else:
            status, answer = act(key, body) if bucket == self.store.bucket else (404, _error("NoSuchBucket"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.send_header("Last-Modified", "Wed, 18 Nov 2026 12:00:00 GMT")
        self.send_header("ETag", _etag(self.store.objects.get(key, b"")))
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(OSError):
                self.wfile.write(answer)

    def _body(self) -> bytes:
        is_chunked = self.headers.get("Transfer-Encoding") == "chunked"
        raw = _unchunked(self.rfile) if is_chunked else self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_chunked_within = "aws-chunked" in self.headers.get("Content-Encoding", "")
        return _unchunked(io.BytesIO(raw)) if is_chunked_within else raw

    def _query(self, name: str) -> str:
        return parse_qs(urlsplit(self.path).query).get(name, [""])[0]

    def _put(self, key: str, body: bytes) -> Answer:
        if self.store.is_read_only:
            return 403, _error("AccessDenied")
        if number := self._query("partNumber"):
            self.parts[key, int(number)] = body
        elif source := unquote(self.headers.get("x-amz-copy-source", "")):
            copied = self.store.objects.get(source.lstrip("/").partition("/")[2])
            if copied is None:
                return 404, _error("NoSuchKey")
            self.store.objects[key] = copied
            return 200, b"<CopyObjectResult><ETag>0</ETag></CopyObjectResult>"
        elif not self._holds_for(key):
            return 412, _error("PreconditionFailed")
        else:
            self.store.objects[key] = body
            self.store.kinds[key] = self.headers.get("Content-Type", "")
        return 200, b""

    def _holds_for(self, key: str) -> bool:
        there = self.store.objects.get(key)
        is_new = self.headers.get("If-None-Match") != "*" or there is None
        wanted = self.headers.get("If-Match")
        is_same = wanted is None or (there is not None and wanted == _etag(there))
        return self.store.ignores_conditions or (is_new and is_same)

    def _upload(self, key: str, _body: bytes) -> Answer:
        """Begun, or complete: then its parts are an object."""
        if self._query("uploadId"):
            numbers = sorted(number for of, number in self.parts if of == key)
            self.store.objects[key] = b"".join(self.parts.pop((key, number)) for number in numbers)
            return 200, b"<CompleteMultipartUploadResult><ETag>0</ETag></CompleteMultipartUploadResult>"
        return 200, b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"

    def _look(self, key: str, _body: bytes) -> Answer:
        if not key:
            return 200, b""
        return (200, self.store.objects[key]) if key in self.store.objects else (404, b"")

    def _get(self, key: str) -> Answer:
        if key not in self.store.objects:
            return 404, _error("NoSuchKey")
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        return 206, self.store.objects[key][int(first) : int(last) + 1 if last else None]

    def _list(self) -> Answer:
        prefix, delimiter = self._query("prefix"), self._query("delimiter")
        after = self._query("continuation-token")
        keys = sorted(key for key in list(self.store.objects) if key.startswith(prefix) and key > after)
        page = keys[: self.store.page]
        own = [key for key in page if not delimiter or delimiter not in key.removeprefix(prefix)]
        folders = {prefix + key.removeprefix(prefix).partition(delimiter)[0] + delimiter for key in page if delimiter}
        contents = (
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.store.objects[key])}</Size>"
            f"<LastModified>{DATE}</LastModified><ETag>{escape(_etag(self.store.objects[key]))}</ETag></Contents>"
            for key in own
        )
        common = (f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders))
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if page != keys else ""
        truncated = f"<IsTruncated>{str(page != keys).lower()}</IsTruncated>{more}"
        listing = "".join(itertools.chain(["<ListBucketResult>", truncated], contents, common, ["</ListBucketResult>"]))
        return 200, listing.encode()

    def _delete(self, _key: str, body: bytes) -> Answer:
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


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
