"""How far a new client gets with each server of a cluster, and what each broker offers, for troubleshooting.

A cycle stops at the first server that answers. Here, every server is asked, each on its own connection."""

import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from adapter.kafka.answers import Answer, BrokersUnreachable, Failure, FailureCause
from adapter.kafka.client import Brokers
from adapter.kafka.versions import NEWEST, Versions
from adapter.protocol.apis import FIRST_WITH_GROUPS, FIRST_WITH_TOPIC_IDS
from adapter.settings.models import Cluster

AT_ONCE = 8
MOST_ASKED = 3
"""Brokers that are asked for Metadata, one after the other while they are silent."""
CALL_SECONDS = 5.0
"""More patience than a cycle has, which comes again."""


@dataclass(frozen=True, slots=True)
class Met:
    """One bootstrap server, or one broker at its advertised address."""

    address: str
    failure: Failure | None = None
    accepts: bool = True
    """Whether its port accepts connections; False only if nothing answered there."""


@dataclass(frozen=True, slots=True)
class Passport:
    """What one broker offers."""

    node: int
    met: Met
    versions: Versions = NEWEST

    @property
    def quirks(self) -> Iterator[str]:
        """Yields what works less well with such a broker than with a current one."""
        if (self.versions.metadata or 0) < FIRST_WITH_TOPIC_IDS:
            yield "it reports no topic ids: a topic that is created again is recognised by its offsets alone"
        if (self.versions.offset_fetch or 0) < FIRST_WITH_GROUPS:
            yield "it takes one group per OffsetFetch: a cycle needs one request for each group"


@dataclass(frozen=True, slots=True)
class Meeting:
    cluster: Cluster
    servers: tuple[Met, ...]
    brokers: tuple[Passport, ...]
    """Those that Metadata of the first server to answer names; empty if none did."""
    failure: Failure | None = None
    """Why a server that let us in could not name the brokers."""


def meet(cluster: Cluster, call_seconds: float = CALL_SECONDS) -> Meeting:
    """Returns within a few times `call_seconds`, even if nothing answers."""
    alone = [cluster.model_copy(update={"bootstrap_servers": (server,)}) for server in cluster.bootstrap_servers]
    with _closed([Brokers(each, lambda _: None, call_seconds) for each in alone]) as clients:
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="meet") as threads:
            servers = tuple(threads.map(lambda at: _met(at, call_seconds), zip(clients, alone, strict=True)))
        connected = next((client for client in clients if client.is_connected), None)
        if connected is None:
            return Meeting(cluster, servers, ())
        outcomes = connected.topology(connected.nodes[:MOST_ASKED] or [None]).values()
        addresses = next((each.content.brokers for each in outcomes if isinstance(each, Answer)), None)
        if addresses is None:
            return Meeting(cluster, servers, (), next(each for each in outcomes if isinstance(each, Failure)))
        return Meeting(cluster, servers, tuple(_passports(connected, addresses, call_seconds)))


@contextmanager
def _closed(clients: list[Brokers]) -> Iterator[list[Brokers]]:
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


def _met(at: tuple[Brokers, Cluster], call_seconds: float) -> Met:
    client, cluster = at
    (server,) = cluster.bootstrap_servers
    try:
        client.connect()
    except BrokersUnreachable as error:
        return _failed(server, error.failures[0], call_seconds)
    return Met(server)


def _passports(client: Brokers, addresses: Mapping[int, str], call_seconds: float) -> Iterator[Passport]:
    outcomes = client.meet(addresses)
    for node, address in sorted(addresses.items()):
        outcome = outcomes.get(node)
        if outcome is None or isinstance(outcome, Answer):
            yield Passport(node, Met(address), client.versions(node))
        else:
            yield Passport(node, _failed(address, outcome, call_seconds))


def _failed(address: str, failure: Failure, call_seconds: float) -> Met:
    is_silent = failure.cause is FailureCause.TIMED_OUT
    return Met(address, failure, accepts=not is_silent or _accepts(address, call_seconds))


def _accepts(address: str, seconds: float) -> bool:
    """A frozen broker's port still does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), seconds).close()
    except (OSError, ValueError):
        return False
    return True
