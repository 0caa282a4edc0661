"""HTTPS requests to the upstream: with its certificate verified and the adapter's token, limited in time and size.

They block, and belong in threads of their own."""

from collections.abc import Callable
from dataclasses import dataclass

import urllib3
from urllib3 import exceptions

from adapter import clock
from adapter.errors import AdapterError
from adapter.https import body_within, reason_of
from adapter.settings.client_certificate import trusting
from adapter.settings.models import UpstreamSettings
from adapter.settings.secret_files import SecretFile, read_file
from adapter.tls import certificate_fault
from apiservice.http.status import UpstreamUnavailable

AGENT = "kafka-lag-adapter"
MOST_AT_ONCE = 16
"""Requests, each with a thread and a connection."""
CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 5.0
"""One of the HPA controller's five workers waits meanwhile; kube-apiserver would let it wait for 60 s."""
MOST_BYTES = 1024 * 1024
"""Parsing a larger reply would delay reads of our own metrics."""


@dataclass(frozen=True, slots=True)
class Reply:
    code: int
    body: bytes


class UpstreamClient:
    """`authorization` returns the header's value. All methods are for any thread and raise UpstreamUnavailable."""

    def __init__(self, settings: UpstreamSettings, authorization: Callable[[], str]) -> None:
        self.name = f"the upstream {settings.namespace}/{settings.service}"
        self._settings = settings
        self._authorization = authorization
        self._authority: SecretFile | None = None
        self._pool: urllib3.HTTPSConnectionPool | None = None

    def trust(self) -> None:
        """Reads the authority's file again, and connects anew if it has changed."""
        try:
            authority = read_file("caFile", self._settings.ca_file)
            if authority != self._authority:
                # Requests in progress keep the old pool, which closes its connections when it is no longer used.
                self._pool, self._authority = self._pool_trusting(authority), authority
        except AdapterError as error:
            raise self.unavailable(f"cannot be verified: {error}") from error

    def get(self, path: str) -> Reply:
        begun = clock.monotonic()
        if self._pool is None:
            self.trust()
        try:
            headers = {"Accept": "application/json", "User-Agent": AGENT, "Authorization": self._authorization()}
            try:
                return self._sent(path, headers, begun)
            except exceptions.ProtocolError:
                # A connection that was kept open had been closed.
                return self._sent(path, headers, begun)
        except (exceptions.HTTPError, OSError) as error:
            raise self.unavailable(_reason(error)) from error
        except AdapterError as error:
            raise self.unavailable(f"cannot be asked: {error}") from error

    def unavailable(self, reason: str) -> UpstreamUnavailable:
        return UpstreamUnavailable(f"{self.name} {reason}")

    def _pool_trusting(self, authority: SecretFile) -> urllib3.HTTPSConnectionPool:
        return urllib3.HTTPSConnectionPool(
            self._settings.host,
            self._settings.port,
            ssl_context=trusting([authority]),
            maxsize=MOST_AT_ONCE,
            retries=False,
        )

    def _sent(self, path: str, headers: dict[str, str], begun: float) -> Reply:
        pool = self._pool
        left = begun + ANSWER_SECONDS - clock.monotonic()
        if pool is None or left <= 0:
            raise exceptions.TimeoutError
        timeout = urllib3.Timeout(connect=min(CONNECT_SECONDS, left), total=left)
        response = pool.request(
            "GET", path, headers=headers, timeout=timeout, redirect=False, preload_content=False, decode_content=False
        )
        reply = Reply(response.status, body_within(response, MOST_BYTES, begun, ANSWER_SECONDS))
        if headers["Authorization"].split()[-1].encode() in reply.body:
            raise exceptions.HTTPError("repeats the token of this adapter")
        return reply


def _reason(error: Exception) -> str:
    """Returns the end of a sentence about the upstream."""
    match error:
        case exceptions.NameResolutionError():
            return "cannot be found: its name does not resolve"
        case exceptions.NewConnectionError():
            return f"cannot be reached: {reason_of(error)}"
        case exceptions.TimeoutError() | TimeoutError():
            return "does not answer in time"
        case exceptions.SSLError():
            return certificate_fault(error, "caFile") or f"failed the TLS handshake: {reason_of(error)}"
        case exceptions.ProtocolError():
            return "closed the connection"
    return reason_of(error)
