"""kafka-python's connections with a deadline for every step, whatever a peer, a decoder or a quota does."""

import ssl
import time
from typing import Any

from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection
from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.sasl import SaslHandshakeRequest

from adapter import clock
from adapter.errors import quoted_words
from adapter.kafka.logins import PREPARED, Logins
from adapter.kafka.rotation import BrokerAccess
from adapter.kafka.versions import NotOffered, Versions, negotiated

ASK_AGAIN_FOR_BROKERS_MS = 60_000
"""The library refreshes its list of brokers this often, and whenever the adapter sees that it is outdated."""
LARGEST_FRAME_BYTES = 32 * 1024 * 1024
"""Of a response, which anyone in a broker's place may send. Metadata of 100,000 topics with the longest names fits."""
LONGEST_THROTTLE_MS = 60_000
"""More than a quota requires: at most its window, 11 s by default."""
ANSWER_SECONDS = 1.0
"""A broker that throttled has so long after it before it counts as silent."""
SHOWING_TOKENS = ("OAUTHBEARER", "AWS_MSK_IAM")


def started(access: BrokerAccess, server: str, call_seconds: float) -> KafkaNetClient:
    """Returns a client with a running thread that knows its bootstrap server only."""
    options = options_of(access, server, call_seconds)
    net = NetworkSelector(**options)
    client = KafkaNetClient(net, Manager(net, **options))
    net.start()
    return client


def library_seconds() -> float:
    """Returns the time of the library's clock. Unlike the adapter's, it stands still while the machine is suspended."""
    return time.monotonic()  # noqa: TID251 - see above


def end(client: KafkaNetClient) -> None:
    """Closes connections and ends the library's thread; waits at most a second if a slow name lookup holds it."""
    client._manager.call_soon(client._manager.close)
    thread = client._net._io_thread
    client._net.stop(timeout_ms=1000)
    # A thread that is still held ends by itself; closing its loop would raise an error there.
    if thread is None or not thread.is_alive():
        client._net.close()


def options_of(access: BrokerAccess, server: str, call_seconds: float) -> dict[str, Any]:
    credentials, login = access.credentials, access.credentials.login
    return {
        "bootstrap_servers": server,
        "client_id": "kafka-lag-adapter",
        "security_protocol": credentials.protocol.value,
        "ssl_context": credentials.tls,
        "sasl_mechanism": login.mechanism,
        "sasl_plain_username": login.username,
        "sasl_plain_password": login.password,
        "sasl_oauth_token_provider": access.tokens,
        "metadata_max_age_ms": ASK_AGAIN_FOR_BROKERS_MS,
        "reconnect_backoff_max_ms": 1000,
        "receive_message_max_bytes": LARGEST_FRAME_BYTES,
        # By default a sixth request on a connection fails at once instead of waiting.
        "max_in_flight_requests_per_connection": 100,
        "socket_connection_setup_timeout_ms": call_seconds * 1000,
        "socket_connection_setup_timeout_max_ms": call_seconds * 1000,
    }


async def quota_wait(manager: Any, node: int, limit: float) -> float:  # noqa: ANN401
    """Waits as long as a quota requires, and returns the seconds.

    The library would fail every request meanwhile, and so the second half of every cycle. Raises
    ThrottlingQuotaExceededError if the wait would leave the request no time."""
    begun = clock.monotonic()
    connection = manager._conns.get(node)
    while connection is not None and "throttle" in connection.paused:
        seconds = max(connection._throttle_time - library_seconds(), 0.001)
        if clock.monotonic() - begun + seconds >= limit:
            raise kafka_errors.ThrottlingQuotaExceededError
        await manager._net.sleep(seconds)
    return clock.monotonic() - begun


def is_throttling(manager: Any, node: int) -> bool:  # noqa: ANN401
    connection = manager._conns.get(node)
    return connection is not None and "throttle" in connection.paused


async def connected(manager: Any, node: int, milliseconds: float) -> Any:  # noqa: ANN401
    """Returns the node's connection once its versions are known; raises the library's error if it cannot be made."""
    connection = manager.get_connection(node)
    if connection.initializing:
        await manager.wait_for(connection.init_future, milliseconds)
    return connection


class _PlainTransport(KafkaTCPTransport):  # type: ignore[misc]  # the library has no types
    """Closes on any decoder error: the library would stop reading, and the broker would seem to be silent.

    A broker that refuses a client says why and closes at once: the library would report the closed connection alone."""

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received, error = super()._sock_recv()
        return received, None if received else error

    def _sock_send(self) -> tuple[int, Exception | None]:
        sent, error = super()._sock_send()
        return sent, (super()._sock_recv()[1] or error) if error and self._sock is not None else error

    async def _read_from_sock(self) -> None:
        try:
            await super()._read_from_sock()
        except Exception as error:  # noqa: BLE001 - IndexError, struct.error, UnicodeDecodeError, MemoryError, …
            self.abort(kafka_errors.KafkaProtocolError(f"Unable to decode response: {error!r}"))


class _Transport(_PlainTransport, KafkaSSLTransport):  # type: ignore[misc]  # as above
    """Limits the time of the TLS handshake: the library waits without limit for a peer that sends nothing."""

    async def handshake_until(self, timeout_at: float | None) -> None:
        while True:
            try:
                self._sock.do_handshake()
            except ssl.SSLWantReadError:
                await self._net.wait_read(self._sock, timeout_at)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(self._sock, timeout_at)
            else:
                return


class _Connection(KafkaConnection):  # type: ignore[misc]  # as above
    """Negotiates with its own broker, has its login ready before it needs it, and reports which mechanisms a broker
    offers if it refuses ours."""

    logins: Logins
    known_versions: dict[int, Versions]
    versions = Versions()
    negotiated_in: frozenset[int] = frozenset()
    """The versions of ApiVersions in which the broker was asked."""
    broker_version_data: Any
    throttled_until = 0.0
    """When the latest throttle ends or ended, by the library's clock."""
    _throttle_time: float

    async def _get_api_versions(self, timeout_at: float | None = None) -> None:
        # The library would otherwise prefer what the bootstrap server has offered.
        self.broker_version_data = None
        await super()._get_api_versions(timeout_at)
        self.versions = negotiated(self.broker_version_data.api_versions)
        self.known_versions[self.node_id] = self.versions

    def _maybe_throttle(self, response: Any) -> None:  # noqa: ANN401
        """Waits as the response says, whatever Kafka the library takes the broker for, but not for 24 days."""
        seconds = min(getattr(response, "throttle_time_ms", 0) or 0, LONGEST_THROTTLE_MS) / 1000
        ends = library_seconds() + seconds
        if seconds > 0 and ends > self._throttle_time:
            self._throttle_time = self.throttled_until = ends
            self.net.call_at(ends, self._maybe_unthrottle)
            self.pause("throttle")

    def has_throttled_until(self, deadline: float) -> bool:
        """Whether a throttle left the broker less than ANSWER_SECONDS before this time of the library's clock."""
        return self.throttled_until + ANSWER_SECONDS > deadline

    def _request_timed_out(self, future: Any, sent_at: float, timeout_at: float) -> None:  # noqa: ANN401
        """A connection that the broker throttles is not closed: it would begin anew, and seem to be silent."""
        if self.has_throttled_until(timeout_at):
            later = self.throttled_until + ANSWER_SECONDS
            self.net.call_at(later, lambda: self._request_timed_out(future, sent_at, later))
        else:
            super()._request_timed_out(future, sent_at, timeout_at)

    def _send_request(self, request: object, *others: object, **options: object) -> Any:  # noqa: ANN401
        if isinstance(request, ApiVersionsRequest):
            self._note_negotiation(request.API_VERSION)
        sent = super()._send_request(request, *others, **options)
        if isinstance(request, SaslHandshakeRequest):
            sent.add_callback(self._note_offer)
        return sent

    def _note_negotiation(self, version: int) -> None:
        """Raises NotOffered for a repetition: the library would ask without end, as fast as the broker answers."""
        if version in self.negotiated_in:
            raise NotOffered("answers ApiVersions in no version that the adapter knows")
        self.negotiated_in |= {version}

    def _note_offer(self, response: Any) -> None:  # noqa: ANN401
        self._offer = f"{self.config['sasl_mechanism']}, only {', '.join(sorted(response.mechanisms))}"

    async def _sasl_authenticate(self, timeout_at: float | None = None) -> None:
        mechanism = self.config["sasl_mechanism"]
        if mechanism in PREPARED:
            host = self.transport.host
            self.config["prepared_login"] = await self.logins.prepared(mechanism, host, self.config)
        try:
            await super()._sasl_authenticate(timeout_at)
        except kafka_errors.UnsupportedSaslMechanismError as error:
            raise kafka_errors.UnsupportedSaslMechanismError(self._offer) from error
        except kafka_errors.SaslAuthenticationFailedError as error:
            said = quoted_words(error.args[0], self.config["sasl_plain_password"])
            if mechanism in SHOWING_TOKENS:
                said = f"its words are not shown, because with {mechanism} they may repeat a token"
            raise kafka_errors.SaslAuthenticationFailedError(said) from None


class Manager(KafkaConnectionManager):  # type: ignore[misc]  # as above
    """Connects within the deadline, TLS included."""

    def __init__(self, net: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(net, **options)
        self._logins = Logins(self)
        self.known_versions: dict[int, Versions] = {}
        """Node -> what its latest connection has negotiated."""

    async def _connect(self, node: Any, conn: Any, **options: Any) -> None:  # noqa: ANN401
        conn.__class__ = _Connection  # the library names the class where it makes one
        conn.logins, conn.known_versions = self._logins, self.known_versions
        await super()._connect(node, conn, **options)

    def maybe_raise_auth_failure(self, node_id: object) -> None:
        """Does nothing. Otherwise the library would not connect to this node again, even after the cause is gone."""

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:  # noqa: ANN401
        sock = await create_connection(
            self._net, node.host, node.port, self.config["socket_options"], timeout_at=timeout_at
        )
        if not self.ssl_enabled:
            return _PlainTransport(self._net, sock, host=node.host)
        options = {key: value for key, value in self.config.items() if key.startswith("ssl_")}
        transport = _Transport(self._net, sock, host=node.host, **options)
        try:
            await transport.handshake_until(timeout_at)
        except OSError as error:
            transport.close()
            raise kafka_errors.KafkaConnectionError(f"Handshake failed: {error}") from error
        except kafka_errors.KafkaTimeoutError:
            transport.close()
            raise
        return transport
