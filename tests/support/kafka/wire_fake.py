"""Brokers on loopback sockets that answer a `fake_cluster.Kafka` in Kafka's own bytes, and spoil what is asked.

One thread serves all connections of all brokers. A fault stands for a
broker and a kind of request; it turns the right frame into what is sent instead.
"""

import asyncio
import contextlib
import struct
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest

from adapter.protocol.apis import FIRST_WITH_GROUPS, FIRST_WITH_KEYS
from adapter.protocol.codes import COORDINATOR_LOADING, NOT_COORDINATOR
from adapter.protocol.prepared_requests import EARLIEST
from tests.support.kafka import responses
from tests.support.kafka.fake_cluster import Kafka
from tests.support.kafka.responses import (
    NO_ERROR,
    NO_OFFSET,
    NOT_LEADER,
    UNKNOWN_TOPIC_OR_PARTITION,
    Place,
    Response,
    Row,
    by_topic,
)

LIST_OFFSETS, METADATA, OFFSET_FETCH, FIND_COORDINATOR, DESCRIBE_GROUPS = 2, 3, 9, 10, 15
LIST_GROUPS, API_VERSIONS = 16, 18
VERSIONS = {
    LIST_OFFSETS: (0, 7),
    METADATA: (0, 12),
    OFFSET_FETCH: (0, 8),
    FIND_COORDINATOR: (0, 4),
    DESCRIBE_GROUPS: (0, 5),
    LIST_GROUPS: (0, 5),
    API_VERSIONS: (0, 4),
}
UNSUPPORTED_VERSION = 35
_REQUESTS = {
    LIST_OFFSETS: ListOffsetsRequest,
    METADATA: MetadataRequest,
    OFFSET_FETCH: OffsetFetchRequest,
    FIND_COORDINATOR: FindCoordinatorRequest,
    DESCRIBE_GROUPS: DescribeGroupsRequest,
    API_VERSIONS: ApiVersionsRequest,
}


@dataclass(frozen=True)
class Spoilt:
    """What is sent instead of a frame, and whether the connection is closed after it."""

    frame: bytes = b""
    then_close: bool = False


Fault = Callable[[bytes], Spoilt]


@dataclass(frozen=True)
class Asked:
    node: int
    key: int
    version: int
    correlation: int
    body: bytes


@dataclass
class WireFake:
    """Made by `wire_fake`. What is true is in `kafka`, what goes wrong in `faults`; both may change at any time."""

    kafka: Kafka
    faults: dict[tuple[int, int], Fault] = field(default_factory=dict)
    """(node, key of the request) -> what happens to the answer."""
    versions: Mapping[int, tuple[int, int]] = field(default_factory=lambda: dict(VERSIONS))
    """Key of a request -> the oldest and newest version that every broker offers."""
    versions_of: dict[int, Mapping[int, tuple[int, int]]] = field(default_factory=dict)
    """Node -> the same, where it differs."""
    answered: "set[tuple[int, int, int]]" = field(default_factory=set)
    """(node, key, version) of all requests that were answered."""
    row_errors: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """(group, topic, partition) -> the error in its row of an answer to OffsetFetch."""
    throttle_ms: int = 0
    """In every answer to OffsetFetch and ListOffsets."""
    is_muted: bool = False
    """Whether the connection is not read for so long after such an answer, as from Kafka 2.0 on."""
    pace: dict[tuple[int, int], float] = field(default_factory=dict)
    """(node, key) -> the seconds that each answer takes; meanwhile the connection is not read."""
    hosts: dict[int, str] = field(default_factory=dict)
    """Node -> the name that Metadata tells, where it is not 127.0.0.1."""
    ports: dict[int, int] = field(default_factory=dict)
    identities: dict[int, int] = field(default_factory=dict)
    """Node -> the node that has taken its port."""
    asked: "Counter[tuple[int, int]]" = field(default_factory=Counter)
    """(node, key) -> how often."""
    mistakes: list[Exception] = field(default_factory=list)
    """Of the fake itself; `wire_fake` raises the first."""
    _open: "set[asyncio.StreamWriter]" = field(default_factory=set)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    @property
    def connections(self) -> int:
        return len(self._open)

    def address(self, node: int) -> str:
        return f"127.0.0.1:{self.ports[node]}"

    def cluster(self, name: str = "main", nodes: Sequence[int] = ()) -> dict[str, object]:
        """As in the settings file."""
        return {"name": name, "bootstrapServers": [self.address(node) for node in nodes or self.kafka.nodes]}

    def cut_all(self) -> None:
        """Close every connection, as a network does."""
        self._loop.call_soon_threadsafe(self._cut_all)

    def _cut_all(self) -> None:
        for writer in set(self._open):
            writer.transport.abort()

    # -- the server ------------------------------------------------------------------------------

    async def serve(self, started: threading.Event, stopping: asyncio.Event) -> None:
        servers = []
        for node in self.kafka.nodes:
            server = await asyncio.start_server(self._handler(node), "127.0.0.1", self.ports.get(node, 0))
            servers.append(server)
            self.ports[node] = server.sockets[0].getsockname()[1]
        started.set()
        await stopping.wait()
        await self._end_connections()
        for server in servers:
            server.close()

    async def _end_connections(self) -> None:
        """Clients have gone, but some connections may not be accepted yet: a transport that is left over is a warning,
        and so an error of whichever test runs when it is collected."""
        await _some_rounds()
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            self._cut_all()
            await asyncio.wait(tasks, timeout=0.05)
        await _some_rounds()

    def _handler(self, node: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._open.add(writer)
            try:
                while True:
                    (size,) = struct.unpack(">i", await reader.readexactly(4))
                    asked = _asked(self.identities.get(node, node), await reader.readexactly(size))
                    await asyncio.sleep(self.pace.get((asked.node, asked.key), 0.0))
                    sent = self._answered(asked)
                    writer.write(sent.frame)
                    await writer.drain()
                    if sent.then_close:
                        return
                    if self.is_muted and asked.key in {OFFSET_FETCH, LIST_OFFSETS}:
                        await asyncio.sleep(self.throttle_ms / 1000)
            except (asyncio.IncompleteReadError, ConnectionError):
                return  # the client went, or `cut_all` did it
            except Exception as error:  # noqa: BLE001 - shown to the test at its end
                self.mistakes.append(error)
            finally:
                self._open.discard(writer)
                writer.close()

        return handle

    def _answered(self, asked: Asked) -> Spoilt:
        self.asked[asked.node, asked.key] += 1
        if asked.node in self.kafka.silent:
            return Spoilt()
        if asked.node in self.kafka.refusing:
            return Spoilt(then_close=True)
        lowest, highest = self._versions(asked.node).get(asked.key, (0, -1))
        if not lowest <= asked.version <= highest:
            # As a broker does that does not know the version.
            return Spoilt(self._all_versions(asked)) if asked.key == API_VERSIONS else Spoilt(then_close=True)
        self.answered.add((asked.node, asked.key, asked.version))
        frame = self.frame(asked)
        fault = self.faults.get((asked.node, asked.key))
        return Spoilt(frame) if fault is None else fault(frame)

    def _versions(self, node: int) -> Mapping[int, tuple[int, int]]:
        return self.versions_of.get(node, self.versions)

    def _all_versions(self, asked: Asked) -> bytes:
        return responses.frame(
            responses.api_versions(self._versions(asked.node), UNSUPPORTED_VERSION), 0, asked.correlation
        )

    # -- what is true ----------------------------------------------------------------------------

    def frame(self, asked: Asked) -> bytes:
        return responses.frame(self._response(asked), asked.version, asked.correlation)

    def _response(self, asked: Asked) -> Response:
        if asked.key == API_VERSIONS:
            return responses.api_versions(self._versions(asked.node))
        if asked.key == LIST_GROUPS:
            return self._groups(asked.node)
        question = _REQUESTS[asked.key].decode(asked.body, version=asked.version)
        if asked.key == METADATA:
            return self._metadata(question)
        if asked.key == FIND_COORDINATOR:
            keys = question.coordinator_keys if asked.version >= FIRST_WITH_KEYS else [question.key]
            nodes = {group: self._coordinator(group) for group in keys}
            return responses.coordinators(self._brokers, nodes, asked.version)
        if asked.key == DESCRIBE_GROUPS:
            return responses.described_groups({group: self._assigned(group) for group in question.groups})
        return self._commits(asked, question) if asked.key == OFFSET_FETCH else self._ends(asked.node, question)

    def _metadata(self, question: MetadataRequest) -> Response:
        names = list(self.kafka.topics) if question.topics is None else [topic.name for topic in question.topics]
        named = {name: self.kafka.topics.get(name, []) for name in names}
        return responses.metadata(
            self._brokers, {name: (self._topic_id(name), leaders) for name, leaders in named.items()}
        )

    @property
    def _brokers(self) -> dict[int, tuple[str, int]]:
        return {node: (self.hosts.get(node, "127.0.0.1"), self.ports[node]) for node in self.kafka.nodes}

    def _topic_id(self, topic: str) -> uuid.UUID:
        generation = self.kafka.generations.get(topic)
        return uuid.UUID(generation) if generation else uuid.uuid5(uuid.NAMESPACE_OID, topic)

    def _groups(self, node: int) -> Response:
        if node in self.kafka.loading:
            return responses.listed_groups({}, COORDINATOR_LOADING)
        own = [group for group in self.kafka.commits if self._coordinator(group) == node]
        listed = (group for group in own if group not in self.kafka.unlisted)
        return responses.listed_groups({each: "Stable" if each in self.kafka.members else "Empty" for each in listed})

    def _assigned(self, group: str) -> Mapping[str, Sequence[int]]:
        return {topic: range(len(self.kafka.topics[topic])) for topic in self.kafka.members.get(group, ())}

    def _coordinator(self, group: str) -> int:
        return self.kafka.coordinators.get(group, self.kafka.nodes[0])

    def _commits(self, asked: Asked, question: OffsetFetchRequest) -> Response:
        has_groups = asked.version >= FIRST_WITH_GROUPS
        groups = {}
        for group in [one.group_id for one in question.groups] if has_groups else [question.group_id]:
            error = self._group_error(asked.node, group)
            commits = {} if error else self.kafka.commits.get(group, {})
            errors = {place: self.row_errors.get((group, *place), NO_ERROR) for place in commits}
            groups[group] = error, by_topic(commits, errors)
        return responses.commits(groups, self.throttle_ms, asked.version)

    def _group_error(self, node: int, group: str) -> int:
        if self._coordinator(group) != node:
            return NOT_COORDINATOR
        return COORDINATOR_LOADING if node in self.kafka.loading else self.kafka.commit_errors.get(group, NO_ERROR)

    def _ends(self, node: int, question: ListOffsetsRequest) -> Response:
        topics = {
            topic.name: [
                self._end(node, (topic.name, each.partition_index), each.timestamp) for each in topic.partitions
            ]
            for topic in question.topics
        }
        return responses.log_offsets(topics, self.throttle_ms)

    def _end(self, node: int, place: Place, timestamp: int) -> Row:
        offsets, error = self.kafka.starts if timestamp == EARLIEST else self.kafka.ends, self._end_error(node, place)
        return place[1], NO_OFFSET if error else offsets.get(place, 0), error

    def _end_error(self, node: int, one: Place) -> int:
        leaders = self.kafka.topics.get(one[0], [])
        if one[1] >= len(leaders):
            return UNKNOWN_TOPIC_OR_PARTITION
        return self.kafka.end_errors.get(one, NO_ERROR) if leaders[one[1]] == node else NOT_LEADER


async def _some_rounds() -> None:
    """Of the loop: one accepts, the next one begins to serve; and an aborted transport closes in the next one."""
    for _ in range(3):
        await asyncio.sleep(0)


def _asked(node: int, frame: bytes) -> Asked:
    key, version, correlation, client = struct.unpack_from(">hhih", frame)
    begin = 10 + max(client, 0)
    request = _REQUESTS.get(key)
    is_flexible = version >= 3 if request is None else request.flexible_version_q(version)
    return Asked(node, key, version, correlation, frame[begin + is_flexible :])


@contextlib.contextmanager
def wire_fake(kafka: Kafka) -> Iterator[WireFake]:
    """Brokers for every node of `kafka` on ports of 127.0.0.1; ended with the block."""
    fake = WireFake(kafka)
    started, stopping = threading.Event(), asyncio.Event()
    thread = threading.Thread(
        target=lambda: fake._loop.run_until_complete(fake.serve(started, stopping)), name="wire-fake"
    )
    thread.start()
    try:
        assert started.wait(60), "the fake brokers did not start"
        yield fake
    finally:
        fake._loop.call_soon_threadsafe(stopping.set)
        thread.join()
        fake._loop.close()
    if fake.mistakes:
        raise fake.mistakes[0]
