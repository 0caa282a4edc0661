"""Asks one cluster's brokers concurrently, with a deadline for each call.

kafka-python's public offset calls ask brokers one after another, fail completely if one partition fails, and cache a
group's coordinator without limit. So requests are sent through the library's connection manager. Only this package uses
its private names, and the dependency is pinned to the versions that have them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Condition
from typing import Any, TypeVar

from kafka import errors as kafka_errors
from kafka.future import Future
from kafka.net.compat import KafkaNetClient

from adapter import clock
from adapter.cluster.groups import Description, Kind, Listing
from adapter.cluster.topics import Topology
from adapter.kafka.answers import Answer, Answered, BrokersUnreachable, Failure, FailureCause
from adapter.kafka.calls import Calls, Pending, wait_for
from adapter.kafka.connections import connected, end, is_throttling, started
from adapter.kafka.exchanges import Asked, Make, asked_by, exchanged, metadata_request
from adapter.kafka.failures import explained, failure_of
from adapter.kafka.group_descriptions import descriptions_in
from adapter.kafka.group_requests import DESCRIBE, describe, describe_shares, find_coordinators, list_groups
from adapter.kafka.paced_calls import BrokerTooSlow, PacedCalls
from adapter.kafka.rotation import BrokerAccess, Rotation
from adapter.kafka.versions import NEWEST, Versions
from adapter.protocol import group_responses
from adapter.protocol.apis import (
    DESCRIBE_SHARE_GROUP_OFFSETS,
    FIND_COORDINATOR,
    FIRST_WITH_KEYS,
    LIST_GROUPS,
    METADATA,
    Api,
)
from adapter.protocol.codes import MalformedResponse
from adapter.protocol.group_responses import FoundCoordinator, GroupShares
from adapter.protocol.metadata_response import LatestTopology, topology_in
from adapter.protocol.offset_responses import Columns
from adapter.protocol.prepared_requests import CommitQuestion, OffsetQuestion
from adapter.settings.models import Cluster

Name = TypeVar("Name", bound=int | None)

CALL_SECONDS = 3.0
HEDGE_SECONDS = 0.5
"""If a broker takes longer than this for Metadata, another one is asked as well."""
GRACE_SECONDS = 1.0
"""The client's thread enforces the deadline, but a slow name lookup can block that thread."""
COMMIT_SECONDS = 15.0
"""In a cycle, no OffsetFetch is sent later than this after the first one; the next cycle begins with those left."""
SEARCH_SECONDS = 2.0
"""The same for FindCoordinator, which comes before the OffsetFetch of a cycle."""
CountRequest = Callable[[str], None]


class Brokers:
    """Blocking, for one thread; the library's own thread does the IO. One connection per broker; one to bootstrap."""

    def __init__(self, cluster: Cluster, count_request: CountRequest, call_seconds: float = CALL_SECONDS) -> None:
        self._cluster = cluster
        self._count_request = count_request
        self._call_seconds = call_seconds
        self._rotation = Rotation(cluster.security)
        self._trial: _Attempt | None = None
        self._client: KafkaNetClient | None = None
        self._first_server = 0
        self._last_failures: dict[int, Failure] = {}
        self._addresses: Mapping[int, str] = {}
        self._latest = LatestTopology()
        self._changed = Condition()

    @property
    def is_connected(self) -> bool:
        return self._client is not None

    @property
    def credentials_problem(self) -> str:
        """Why the content of the files with credentials is not in use; empty: it is."""
        return self._rotation.problem

    def connect(self) -> None:
        """Bootstraps from the first server that answers; raises BrokersUnreachable with the failure of each."""
        self._rotation.refresh()
        failures: list[Failure] = []
        for access in self._rotation.candidates:
            failures = self._connect_with(access)
            if not failures:
                return
            if not any(failure.cause.blames_credentials for failure in failures):
                break
        unasked = Failure(FailureCause.CREDENTIALS, f"no broker was asked: {self._rotation.problem}")
        raise BrokersUnreachable(failures or [unasked])

    def _connect_with(self, access: BrokerAccess) -> list[Failure]:
        """Returns why no server was reached; nothing: one was."""
        failures = []
        servers = self._cluster.bootstrap_servers
        access.is_ready(self._call_seconds)
        for _ in servers:
            attempt = self._attempt(access)
            failure = self._outcome(attempt)
            if failure is None:
                self._client = attempt.client
                return []
            failures.append(failure)
        # The next attempt begins with another server, in case this one only costs time.
        self._first_server += 1
        return failures

    def _attempt(self, access: BrokerAccess) -> "_Attempt":
        """Begins to bootstrap from the next server, without waiting."""
        servers = self._cluster.bootstrap_servers
        server = servers[self._first_server % len(servers)]
        self._first_server += 1
        client = started(access, server, self._call_seconds)
        manager, who = client._manager, f"bootstrap server {server}"

        async def let_in() -> None:
            connection = manager.get_connection("bootstrap-0", pop_on_close=False, refresh_metadata_on_err=False)
            await manager.wait_for(connection.init_future, self._call_seconds * 1000)
            await manager.wait_for(manager.bootstrap_async(self._call_seconds * 1000), self._call_seconds * 1000)

        def read(_: int, outcome: object, received: float) -> Answer[None] | Failure:
            if isinstance(outcome, BaseException):
                return explained(outcome, who, access)
            return Answer(None, received)

        calls = Calls((0,), self._changed, 2 * self._call_seconds + GRACE_SECONDS, read)
        _settle(calls, 0, manager.call_soon(let_in))
        return _Attempt(access, client, calls)

    def _outcome(self, attempt: "_Attempt") -> Failure | None:
        """Waits for the attempt; a client that failed is closed."""
        (outcome,) = self.finish(attempt.calls).values()
        if isinstance(outcome, Failure):
            # A cluster that cannot be reached says nothing about credentials, unless it answers with other ones.
            if self._client is not None or outcome.cause.blames_credentials:
                self._rotation.reject(attempt.access, outcome.text)
            end(attempt.client)
            return outcome
        self._rotation.accept(attempt.access)
        self._last_failures = {}
        return None

    def follow_rotation(self) -> bool:
        """Tries changed credentials beside those in use, without waiting; returns whether they have taken over."""
        trial = self._trial
        if trial is None:
            self._rotation.refresh()
            untried = self._rotation.untried
            if untried is not None and untried.is_ready(0):
                self._trial = self._attempt(untried)
            return False
        if not trial.calls.are_settled:
            return False
        self._trial = None
        if self._outcome(trial) is not None:
            return False
        previous, self._client = self._client, trial.client
        if previous is not None:
            end(previous)
        return True

    def close(self) -> None:
        """Drops every connection; `connect` starts again."""
        trial, self._trial = self._trial, None
        client, self._client = self._client, None
        for each in (client, trial and trial.client):
            if each is not None:
                end(each)
        self._rotation.close()

    def topology(
        self, nodes: Sequence[int | None], expected: frozenset[str] = frozenset()
    ) -> dict[int | None, Answer[Topology] | Failure]:
        """Returns all topics as reported by the first of `nodes` (None: any connected broker) to answer.

        Later nodes are asked only if earlier ones are slow or fail; the result lacks nodes that were not waited for.
        Topics that we may not describe are not among all topics, so `expected` ones are requested by name, for which
        the broker reports the error."""
        manager = self._manager
        chosen = {node: manager.least_loaded_node() if node is None else node for node in nodes}
        outcomes = self._first_to_describe(chosen, None, self._latest.topology)
        for node, answer in outcomes.items():
            if isinstance(answer, Answer):
                self._follow_addresses(answer.content.brokers)
                return {**outcomes, node: self._with_hidden(chosen[node], answer, expected)}
        return outcomes

    def living(self, nodes: Sequence[int], topics: Collection[str] = ()) -> dict[int, Answer[Topology] | Failure]:
        """Returns the living brokers and no topics but these, as reported by the first of `nodes` to answer."""
        outcomes = self._first_to_describe({node: node for node in nodes}, sorted(topics), topology_in)
        for answer in outcomes.values():
            if isinstance(answer, Answer):
                self._follow_addresses(answer.content.brokers)
        return outcomes

    def _first_to_describe(
        self, chosen: Mapping[Name, int], topics: Sequence[str] | None, read: Callable[[bytes, int], Answered]
    ) -> dict[Name, Answer[Answered] | Failure]:
        calls: dict[Name, Calls[Answered]] = {}
        outcomes: dict[Name, Answer[Answered] | Failure] = {}
        for name, node in chosen.items():
            asked = (node, metadata_request(topics), lambda raw: read(raw.body, raw.version))
            calls[name] = self._start(METADATA, {0: asked})
            patience = HEDGE_SECONDS if len(calls) < len(chosen) else self._call_seconds + GRACE_SECONDS
            self.wait(*calls.values(), together=0.0, within=patience)
            outcomes |= {name: answer for name, call in calls.items() for answer in call.take().values()}
            if any(isinstance(answer, Answer) for answer in outcomes.values()):
                break
        return outcomes

    def _with_hidden(self, node: int, answer: Answer[Topology], expected: frozenset[str]) -> Answer[Topology] | Failure:
        absent = expected - answer.content.topics.keys()
        if not absent:
            return answer
        named = metadata_request(sorted(absent))
        by_name = self._ask(METADATA, {node: named}, lambda raw: topology_in(raw.body, raw.version))[node]
        if isinstance(by_name, Failure):
            return by_name
        return Answer(replace(answer.content, hidden=by_name.content.hidden), answer.received)

    def _follow_addresses(self, addresses: Mapping[int, str]) -> None:
        """A broker that has come back, or moved, can be called only after the library's own refresh."""
        self._addresses, manager = addresses, self._manager
        known = {broker.node_id: f"{broker.host}:{broker.port}" for broker in manager.cluster.brokers()}
        if any(known.get(node) != address for node, address in addresses.items()):
            manager.call_soon(manager.cluster.request_update)

    @property
    def nodes(self) -> tuple[int, ...]:
        """Returns the brokers that the bootstrap server has named."""
        return tuple(broker.node_id for broker in self._manager.cluster.brokers())

    def versions(self, node: int) -> Versions:
        """Returns what the broker's latest connection has negotiated."""
        known: Mapping[int, Versions] = {} if self._client is None else self._manager.known_versions
        return known.get(node, NEWEST)

    def meet(self, nodes: Iterable[int]) -> dict[int, Answer[None] | Failure]:
        """Connects to brokers whose versions are not known yet."""
        manager, milliseconds = self._manager, 1000 * self._call_seconds

        def read(node: int, outcome: object, received: float) -> Answer[None] | Failure:
            return self._answer(node, outcome, received, lambda _: None)

        strangers = [node for node in nodes if node not in manager.known_versions]
        calls = Calls(strangers, self._changed, self._call_seconds + GRACE_SECONDS, read)
        for node in strangers:
            _settle(calls, node, manager.call_soon(connected, manager, node, milliseconds))
        return self.finish(calls)

    def coordinators(self, node: int, groups: Sequence[str]) -> dict[str, FoundCoordinator] | Failure:
        """Returns what the broker knows of the groups' coordinators; groups that it was not asked for are absent."""
        at_once = (self.versions(node).find_coordinator or 0) >= FIRST_WITH_KEYS
        parts = [groups] if at_once else [[group] for group in groups]
        asked = {
            number: (node, partial(find_coordinators, part), partial(group_responses.coordinators_in, part))
            for number, part in enumerate(parts)
        }
        outcomes = self.finish(self._paced(FIND_COORDINATOR, asked, SEARCH_SECONDS)).values()
        found = [outcome.content for outcome in outcomes if isinstance(outcome, Answer)]
        failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
        return failures[0] if failures and not found else {group: one for part in found for group, one in part.items()}

    def groups(self, nodes: Iterable[int]) -> dict[int, Answer[Listing] | Failure]:
        return self._ask(LIST_GROUPS, dict.fromkeys(nodes, list_groups), group_responses.listing_in)

    def can_describe(self, node: int, kind: Kind) -> bool:
        return not self.lack(node, DESCRIBE[kind][0])

    def lack(self, node: int, api: Api) -> str:
        """Returns what the broker offers instead of a version of the request that is known; empty: it offers one."""
        versions = self.versions(node)
        return "" if versions.of(api) is not None else f"{self._name(node)} {versions.lack(api)}"

    def described(
        self, plan: Mapping[int, Sequence[str]], kind: Kind, *, with_clients: bool = False
    ) -> dict[int, Answer[dict[str, Description | None]] | Failure]:
        """Returns the members of groups of this kind, with one request per coordinator."""
        api, _ = DESCRIBE[kind]
        requests = {node: partial(describe, kind, groups) for node, groups in plan.items()}
        return self._ask(api, requests, lambda response: descriptions_in(response, kind, with_clients=with_clients))

    def shares(self, plan: Mapping[int, Sequence[str]]) -> Calls[dict[str, GroupShares]]:
        """Requests the progress of share groups in every partition, with one request per coordinator."""
        sent = {
            node: (node, partial(describe_shares, groups), group_responses.shares_in) for node, groups in plan.items()
        }
        return self._start(DESCRIBE_SHARE_GROUP_OFFSETS, sent)

    def commits(self, questions: Mapping[int, CommitQuestion]) -> PacedCalls[Columns]:
        asked = {key: asked_by(question) for key, question in questions.items()}
        return self._paced(CommitQuestion.api, asked, COMMIT_SECONDS)

    def offsets(self, questions: Mapping[int, OffsetQuestion]) -> Calls[Columns]:
        return self._start(OffsetQuestion.api, {key: asked_by(question) for key, question in questions.items()})

    def wait(self, *calls: Pending, together: float, within: float = float("inf")) -> bool:
        """Waits at most `within` seconds for a response, then `together` for the others; False: all have been taken."""
        return wait_for(self._changed, calls, together, within)

    def finish(self, calls: Calls[Answered] | PacedCalls[Answered]) -> dict[int, Answer[Answered] | Failure]:
        """Waits for the last answer; returns all in the order in which they were taken."""
        outcomes: dict[int, Answer[Answered] | Failure] = {}
        while self.wait(calls, together=float("inf")):
            outcomes |= calls.take()
        return outcomes

    def probe(self, node: int) -> Future:
        """Returns the pending answer of a silent broker."""
        return self._send(METADATA, node, metadata_request(()), lambda: None)

    @property
    def _manager(self) -> Any:  # noqa: ANN401 - the library has no types
        if self._client is None:
            raise RuntimeError("connect() comes first")
        return self._client._manager

    def _ask(
        self, api: Api, requests: Mapping[int, Make], decode: Callable[[Any], Answered]
    ) -> dict[int, Answer[Answered] | Failure]:
        return self.finish(self._start(api, {node: (node, make, decode) for node, make in requests.items()}))

    def _paced(self, api: Api, asked: Mapping[int, Asked[Answered]], seconds: float) -> PacedCalls[Answered]:
        def send(numbers: Sequence[int]) -> Calls[Answered]:
            return self._start(api, {number: asked[number] for number in numbers})

        def too_slow(node: int) -> Failure:
            throttles = is_throttling(self._manager, node)
            return failure_of(
                kafka_errors.ThrottlingQuotaExceededError() if throttles else BrokerTooSlow(seconds), self._name(node)
            )

        nodes = {number: node for number, (node, _, _) in asked.items()}
        return PacedCalls(nodes, send, too_slow, clock.monotonic, seconds)

    def _start(self, api: Api, asked: Mapping[int, Asked[Answered]]) -> Calls[Answered]:
        """Sends all at once."""

        def read(number: int, outcome: object, received: float) -> Answer[Answered] | Failure:
            node, _, decode = asked[number]
            return self._answer(node, outcome, received, decode)

        calls = Calls(asked.keys(), self._changed, self._call_seconds + GRACE_SECONDS, read)
        for number, (node, make, _) in asked.items():
            note_sent = partial(_note_sent, calls, number)
            _settle(calls, number, self._send(api, node, make, note_sent))
        return calls

    def _send(self, api: Api, node: int, make: Make, note_sent: Callable[[], None]) -> Any:  # noqa: ANN401
        count = partial(self._count_request, api.name)
        return self._manager.call_soon(exchanged, self._manager, node, make, self._call_seconds, note_sent, count)

    def _name(self, node: int) -> str:
        return f"broker {node} at {self._addresses.get(node, 'an unknown address')}"

    def _answer(
        self, node: int, outcome: object, received: float, decode: Callable[[Any], Answered]
    ) -> Answer[Answered] | Failure:
        who = self._name(node)
        if not isinstance(outcome, BaseException):
            self._last_failures.pop(node, None)
            try:
                return Answer(decode(outcome), received)
            except MalformedResponse as error:
                return Failure(FailureCause.MALFORMED, f"{who} sent a malformed response: {error}")
        failure = explained(outcome, who, self._rotation.in_use)
        if isinstance(outcome, kafka_errors.NodeNotReadyError):
            # The library waits before it connects again, because of the earlier failure.
            return self._last_failures.get(node, failure)
        self._last_failures[node] = failure
        return failure


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A client that is being bootstrapped."""

    access: BrokerAccess
    client: KafkaNetClient
    calls: Calls[None]


def _settle(calls: Calls[Any], number: int, future: Any) -> None:  # noqa: ANN401 - the library has no types
    """Settles the call when the future is done, in the client's thread."""
    future.add_both(lambda outcome: calls.settle(number, outcome, clock.monotonic()))


def _note_sent(calls: Calls[Any], number: int) -> None:
    calls.sent[number] = clock.monotonic()
