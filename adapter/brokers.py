"""The only `import kafka`: one cluster's brokers, asked side by side, each call with a deadline of its own.

kafka-python's public offset calls ask brokers one after another, fail whole when one partition fails, and keep a
group's first coordinator for ever; so requests are built here and sent through the library's connection manager. Its
private names are used in this module alone, and the dependency is pinned to the versions that have them.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Condition
from typing import Any, Generic, TypeVar

from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.api_message import ApiMessage

from adapter import frames, wire
from adapter.directory import Description, Kind, Listing
from adapter.frames import RawRequest
from adapter.metadata import Descriptions, topology_in
from adapter.questions import CommitQuestion, OffsetQuestion
from adapter.responses import Columns
from adapter.settings import Cluster, Protocol
from adapter.topology import Topology
from adapter.wire import GroupShares

Answered = TypeVar("Answered")

ASK_AGAIN_FOR_BROKERS_MS = 15_000
"""A broker that Metadata had dropped can be called only after the library's own next refresh (5 min by default)."""
LARGEST_FRAME_BYTES = 100_000_000
CALL_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a broker gave no answer."""

    cause: str
    """One of the few words that `docs/metrics.md` lists, for counting."""
    text: str
    """For people; names the broker and its address, never a credential."""

    @property
    def was_silence(self) -> bool:
        return self.cause == "timed_out"


@dataclass(frozen=True, slots=True)
class Answer(Generic[Answered]):
    """What a broker said, and when it had been received (monotonic seconds)."""

    content: Answered
    received: float


class ClusterUnreachable(Exception):
    """No bootstrap server let us in; `failures` has one for each that was tried."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        super().__init__("; ".join(failure.text for failure in failures))
        self.failures = tuple(failures)


CountRequest = Callable[[str], None]


class Brokers:
    """A client of one cluster. Blocking, for one thread; the library's own thread does the IO.

    Connections: one per broker, and one more while bootstrapping.
    """

    def __init__(self, cluster: Cluster, count_request: CountRequest, call_seconds: float = CALL_SECONDS) -> None:
        self._cluster = cluster
        self._count_request = count_request
        self._call_seconds = call_seconds
        self._client: KafkaNetClient | None = None
        self._first_server = 0
        self._last_failures: dict[int, Failure] = {}
        self._addresses: Mapping[int, str] = {}
        self._descriptions = Descriptions()

    # -- connecting ------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        return self._client is not None

    def connect(self) -> None:
        """Bootstrap from the first server that answers; raises ClusterUnreachable with what each one did."""
        failures = []
        servers = self._cluster.bootstrap_servers
        for step in range(len(servers)):
            failure = self._bootstrap(servers[(self._first_server + step) % len(servers)])
            if failure is None:
                return
            failures.append(failure)
        # A server that only costs time is not the first one every time.
        self._first_server = (self._first_server + 1) % len(servers)
        raise ClusterUnreachable(failures)

    def _bootstrap(self, server: str) -> Failure | None:
        try:
            options = self._client_options(server)
        except (OSError, UnicodeDecodeError) as error:
            # A mounted secret may have gone since the start. What is in it is not told.
            reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else "it is not UTF-8 text"
            return Failure("other", f"bootstrap server {server} cannot be asked, as a secret cannot be read: {reason}")
        net = NetworkSelector(**options)
        manager = _Manager(net, **options)
        client = KafkaNetClient(net, manager)
        net.start()

        async def let_in() -> None:
            connection = manager.get_connection("bootstrap-0", pop_on_close=False, refresh_metadata_on_err=False)
            await manager.wait_for(connection.init_future, self._call_seconds * 1000)
            await manager.wait_for(manager.bootstrap_async(self._call_seconds * 1000), self._call_seconds * 1000)

        gathering = _Gathering(1)
        gathering.collect("bootstrap", manager.call_soon(let_in))
        gathering.wait(2 * self._call_seconds + 1)
        outcome = gathering.outcomes.get("bootstrap", kafka_errors.KafkaTimeoutError())
        if isinstance(outcome, BaseException):
            _close(client)
            return failure_of(outcome, f"bootstrap server {server}")
        self._client = client
        self._last_failures = {}
        return None

    def _client_options(self, server: str) -> dict[str, Any]:
        security = self._cluster.security
        options: dict[str, Any] = {
            "bootstrap_servers": server,
            "client_id": "kafka-lag-adapter",
            "security_protocol": security.protocol.value,
            "metadata_max_age_ms": ASK_AGAIN_FOR_BROKERS_MS,
            "reconnect_backoff_max_ms": 1000,
            "receive_message_max_bytes": LARGEST_FRAME_BYTES,
            # A sixth request on a connection fails at once by default, instead of waiting.
            "max_in_flight_requests_per_connection": 100,
            "socket_connection_setup_timeout_ms": self._call_seconds * 1000,
            "socket_connection_setup_timeout_max_ms": self._call_seconds * 1000,
        }
        if security.protocol.authenticates:
            options["sasl_mechanism"] = security.mechanism
            options["sasl_plain_username"] = security.username
            options["sasl_plain_password"] = security.password
        if security.protocol in {Protocol.SSL, Protocol.SASL_SSL}:
            options["ssl_cafile"] = str(security.ca_file) if security.ca_file else None
            options["ssl_certfile"] = str(security.cert_file) if security.cert_file else None
            options["ssl_keyfile"] = str(security.key_file) if security.key_file else None
            options["ssl_password"] = security.key_password
        return options

    def close(self) -> None:
        """Drop every connection; `connect` begins anew, with secrets and certificates read again."""
        client, self._client = self._client, None
        if client is not None:
            _close(client)

    # -- asking ----------------------------------------------------------------------------------

    def topology(self, node: int | None, expected: frozenset[str] = frozenset()) -> Answer[Topology] | Failure:
        """All topics, as `node` knows them; None: as any broker that is connected does.

        Topics that we may not describe are not among all topics; those of them that are `expected` are asked for by
        name, where the broker says what is the matter.
        """
        manager = self._manager
        chosen = node if node is not None else manager.least_loaded_node()
        read = partial(self._descriptions.topology, chosen)
        answer = self._ask("Metadata", {chosen: frames.metadata(None)}, lambda raw: read(raw.body))[chosen]
        if isinstance(answer, Failure):
            return answer
        self._addresses = answer.content.brokers
        self._tell_library(manager)
        absent = expected - answer.content.topics.keys()
        if not absent:
            return answer
        named = frames.metadata(sorted(absent))
        by_name = self._ask("Metadata", {chosen: named}, lambda raw: topology_in(raw.body))[chosen]
        if isinstance(by_name, Failure):
            return by_name
        return Answer(replace(answer.content, hidden=by_name.content.hidden), answer.received)

    def _tell_library(self, manager: Any) -> None:  # noqa: ANN401
        """A broker that has come back, or moved, can be called only once the library's own refresh has seen it."""
        known = {broker.node_id: f"{broker.host}:{broker.port}" for broker in manager.cluster.brokers()}
        if any(known.get(node) != address for node, address in self._addresses.items()):
            manager.call_soon(manager.cluster.request_update)

    def groups(self, nodes: Iterable[int]) -> dict[int, Answer[Listing] | Failure]:
        """The groups that each of the brokers coordinates."""
        requests = {node: ListGroupsRequest(min_version=0, max_version=5) for node in nodes}
        return self._ask("ListGroups", requests, wire.listing_in)

    def described(
        self, plan: Mapping[int, Sequence[str]], kind: Kind
    ) -> dict[int, Answer[dict[str, Description]] | Failure]:
        """The members of groups, all of this kind: one request per coordinator."""
        name = _DESCRIBE[kind].__name__.removesuffix("Request")
        requests = {node: _describe(kind, groups) for node, groups in plan.items()}
        return self._ask(name, requests, lambda response: wire.descriptions_in(response, kind))

    def shares(self, plan: Mapping[int, Sequence[str]]) -> dict[int, Answer[dict[str, GroupShares]] | Failure]:
        """How far share groups are in every partition that they have begun: one request per coordinator."""
        asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
        requests = {
            node: DescribeShareGroupOffsetsRequest(groups=[asked(group_id=group, topics=None) for group in groups])
            for node, groups in plan.items()
        }
        return self._ask("DescribeShareGroupOffsets", requests, wire.shares_in)

    def commits(self, questions: Sequence[CommitQuestion]) -> list[Answer[Columns] | Failure]:
        """Everything that groups have committed (KIP-709), question by question: all are sent at once."""
        return self._ask_each("OffsetFetch", [(one.node, one.request(), _read_by(one)) for one in questions])

    def offsets(self, questions: Sequence[OffsetQuestion]) -> list[Answer[Columns] | Failure]:
        """Log ends or starts, question by question: all are sent at once."""
        return self._ask_each("ListOffsets", [(one.node, one.request(), _read_by(one)) for one in questions])

    def probe(self, node: int) -> Probe:
        """Ask a silent broker for a sign of life, without waiting for it."""
        self._count_request("Metadata")
        return Probe(self._send(node, frames.metadata(())))

    @property
    def _manager(self) -> Any:  # noqa: ANN401 - the library has no types
        if self._client is None:
            raise RuntimeError("connect() comes first")
        return self._client._manager

    def _ask(
        self, kind: str, requests: Mapping[int, object], decode: Callable[[Any], Answered]
    ) -> dict[int, Answer[Answered] | Failure]:
        """One request per node."""
        answers = self._ask_each(kind, [(node, request, decode) for node, request in requests.items()])
        return dict(zip(requests, answers, strict=True))

    def _ask_each(
        self, kind: str, asked: Sequence[tuple[int, object, Callable[[Any], Answered]]]
    ) -> list[Answer[Answered] | Failure]:
        """Send all (node, request, how to read the answer) at once and wait for the last, or for the deadline."""
        gathering = _Gathering(len(asked))
        for number, (node, request, _) in enumerate(asked):
            self._count_request(kind)
            gathering.collect(number, self._send(node, request))
        # The library's thread enforces the deadline; a name that resolves slowly can hold that thread itself.
        gathering.wait(self._call_seconds + 1)
        return [self._answer(number, node, gathering, decode) for number, (node, _, decode) in enumerate(asked)]

    def _send(self, node: int, request: object) -> Any:  # noqa: ANN401
        manager, milliseconds = self._manager, self._call_seconds * 1000

        async def exchange() -> Any:  # noqa: ANN401
            left = milliseconds - 1000 * await _quota_wait(manager, node, self._call_seconds)
            sent: Awaitable[Any] = manager.send(request, node_id=node, request_timeout_ms=left)
            try:
                return await manager.wait_for(sent, left + 100)
            except kafka_errors.KafkaConnectionError as error:
                if _is_foreign(request, manager):
                    raise kafka_errors.IncompatibleBrokerVersion(str(error)) from error
                raise

        return manager.call_soon(exchange)

    def _answer(
        self, number: int, node: int, gathering: _Gathering, decode: Callable[[Any], Answered]
    ) -> Answer[Answered] | Failure:
        outcome = gathering.outcomes.get(number, kafka_errors.KafkaTimeoutError())
        who = f"broker {node} at {self._addresses.get(node, 'an unknown address')}"
        if not isinstance(outcome, BaseException):
            self._last_failures.pop(node, None)
            try:
                return Answer(decode(outcome), gathering.received[number])
            except wire.MalformedResponse as error:
                return Failure("malformed", f"{who} sent what cannot be read: {error}")
        failure = failure_of(outcome, who)
        if isinstance(outcome, kafka_errors.NodeNotReadyError):
            # The library waits before it connects again; what it waits for is the failure before.
            return self._last_failures.get(node, failure)
        self._last_failures[node] = failure
        return failure


def _is_foreign(request: object, manager: Any) -> bool:  # noqa: ANN401
    """Whether this was none of the versions that the bootstrap server knew: brokers close the connection on it."""
    if not isinstance(request, RawRequest) or manager.broker_version_data is None:
        return False
    lowest, highest = manager.broker_version_data.api_versions.get(request.API_KEY, (0, -1))
    return not lowest <= request.API_VERSION <= highest


# What the library does not have yet; the forms stand in `schemas/`. It finds a response by its request's key.


class ConsumerGroupDescribeRequest(ApiMessage, load_json="adapter.schemas"):  # type: ignore[call-arg, misc]
    """KIP-848."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json="adapter.schemas"):  # type: ignore[call-arg, misc]
    pass


class ShareGroupDescribeRequest(ApiMessage, load_json="adapter.schemas"):  # type: ignore[call-arg, misc]
    """KIP-932."""


class ShareGroupDescribeResponse(ApiMessage, load_json="adapter.schemas"):  # type: ignore[call-arg, misc]
    pass


class StreamsGroupDescribeRequest(ApiMessage, load_json="adapter.schemas"):  # type: ignore[call-arg, misc]
    """KIP-1071."""


class StreamsGroupDescribeResponse(ApiMessage, load_json="adapter.schemas"):  # type: ignore[call-arg, misc]
    pass


class DescribeShareGroupOffsetsRequest(ApiMessage, load_json="adapter.schemas"):  # type: ignore[call-arg, misc]
    """KIP-932, and KIP-1226 for the lag."""


class DescribeShareGroupOffsetsResponse(ApiMessage, load_json="adapter.schemas"):  # type: ignore[call-arg, misc]
    pass


_DESCRIBE = {
    Kind.CLASSIC: DescribeGroupsRequest,
    Kind.CONSUMER: ConsumerGroupDescribeRequest,
    Kind.SHARE: ShareGroupDescribeRequest,
    Kind.STREAMS: StreamsGroupDescribeRequest,
}


def _describe(kind: Kind, groups: Sequence[str]) -> object:
    if kind is Kind.CLASSIC:
        return DescribeGroupsRequest(groups=list(groups), max_version=5)
    return _DESCRIBE[kind](group_ids=list(groups), include_authorized_operations=False)


class _PlainTransport(KafkaTCPTransport):  # type: ignore[misc]  # the library has no types
    """Closes on whatever a decoder raises: the library's stops reading then, and the broker seems to be silent."""

    async def _read_from_sock(self) -> None:
        try:
            await super()._read_from_sock()
        except Exception as error:  # noqa: BLE001 - IndexError, struct.error, UnicodeDecodeError, MemoryError, …
            self.abort(kafka_errors.KafkaProtocolError(f"Unable to decode response: {error!r}"))


class _Transport(_PlainTransport, KafkaSSLTransport):  # type: ignore[misc]  # as above
    """TLS whose handshake ends: the library's waits for ever for a peer that accepts and says nothing."""

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


class _Manager(KafkaConnectionManager):  # type: ignore[misc]  # as above
    """Connections that are made within the deadline, TLS included."""

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


def _read_by(question: CommitQuestion | OffsetQuestion) -> Callable[[Any], Columns]:
    return lambda response: question.columns(response.body)


class Probe:
    """A request to a silent broker that is on its way."""

    def __init__(self, future: Any) -> None:  # noqa: ANN401
        self._future = future

    @property
    def is_done(self) -> bool:
        return bool(self._future.is_done)

    @property
    def was_answered(self) -> bool:
        return self.is_done and self._future.exception is None


class _Gathering:
    """Outcomes of futures of the library's thread, waited for in ours."""

    def __init__(self, expected: int) -> None:
        self.outcomes: dict[object, Any] = {}
        self.received: dict[object, float] = {}
        self._expected = expected
        self._changed = Condition()

    def collect(self, key: object, future: Any) -> None:  # noqa: ANN401
        def settle(outcome: object) -> None:
            with self._changed:
                self.received[key] = time.monotonic()
                self.outcomes[key] = outcome
                self._changed.notify()

        future.add_both(settle)

    def wait(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self.outcomes) >= self._expected, timeout=seconds)


async def _quota_wait(manager: Any, node: int, limit: float) -> float:  # noqa: ANN401
    """Wait as long as the broker asked for, where a quota is used up, and give the seconds that took.

    The library would fail every request meanwhile, and so the second half of every cycle. Raises
    ThrottlingQuotaExceededError at once where the wait would leave the request no time.
    """
    begun = time.monotonic()
    connection = manager._conns.get(node)
    while connection is not None and "throttle" in connection.paused:
        seconds = max(connection._throttle_time - time.monotonic(), 0.001)
        if time.monotonic() - begun + seconds >= limit:
            raise kafka_errors.ThrottlingQuotaExceededError
        await manager._net.sleep(seconds)
    return time.monotonic() - begun


def failure_of(error: BaseException, who: str) -> Failure:
    """The library's error as one of ours: a word to count by, a sentence to read."""
    text = str(error)
    words = {"text": text.removeprefix("KafkaConnectionError: ").removeprefix("Handshake failed: ")}
    by_type = ((cause, said) for kinds, cause, said in _KINDS if isinstance(error, kinds))
    by_text = ((cause, said) for sign, cause, said in _SIGNS if sign in text)
    cause, said = next(by_text, None) or next(by_type, None) or ("other", f"gave {type(error).__name__}")
    return Failure(cause, f"{who} {said.format(**words)}")


_KINDS: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
    ((kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError), "timed_out", "does not answer"),
    (
        (kafka_errors.SaslAuthenticationFailedError, kafka_errors.UnsupportedSaslMechanismError),
        "authentication",
        "refuses the credentials: {text}",
    ),
    ((kafka_errors.ThrottlingQuotaExceededError,), "throttled", "makes us wait, as a quota of it is used up"),
    ((UnicodeError,), "dns", "cannot be found: what it is named is no host's name"),
    ((kafka_errors.IncompatibleBrokerVersion,), "version", "is too old: Kafka 3.0 or newer is needed"),
    (
        (kafka_errors.InvalidReceiveError, kafka_errors.KafkaProtocolError, kafka_errors.CorrelationIdError),
        "malformed",
        "sent what cannot be read as Kafka's protocol",
    ),
    ((kafka_errors.NodeNotReadyError, kafka_errors.UnknownBrokerIdError), "connection", "is not connected"),
    ((kafka_errors.KafkaConnectionError, OSError), "connection", "closed the connection"),
)
_SIGNS = (
    ("DNS", "dns", "cannot be found: the name does not resolve"),
    ("ECONNREFUSED", "refused", "refuses the connection"),
    ("Connection refused", "refused", "refuses the connection"),
    ("Connection timed out", "timed_out", "does not answer"),
    ("Handshake failed", "tls", "and we cannot agree on TLS: {text}"),
)


def _close(client: KafkaNetClient) -> None:
    """End connections and the library's thread; a thread held by a slow name is not waited for longer than a second."""
    client._manager.call_soon(client._manager.close)
    thread = client._net._io_thread
    client._net.stop(timeout_ms=1000)
    # One that is still held ends by itself; to close its loop under it is an error.
    if thread is None or not thread.is_alive():
        client._net.close()
