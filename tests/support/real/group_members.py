"""Members of groups that the client library cannot join: Kafka's own console tools, and two at protocol level.

Kafka Streams and Kafka Connect are no part of the local Kafka; what their members send to join is sent here.
"""

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer import JoinGroupRequest

from local.downloads import KAFKA_RELEASE
from local.kafka.admin import admin
from local.kafka.broker import Kafka
from local.kafka.java import java
from local.kafka.tools import IS_MOVED
from local.processes import Process, scratch, start, wait_until

WAIT_SECONDS = 120.0
BEAT_SECONDS = 5.0
CONSUMER = f"{'org.apache.kafka.tools.consumer' if IS_MOVED else 'kafka.tools'}.ConsoleConsumer"
SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
KIP_848 = ("--command-property" if KAFKA_RELEASE >= (4, 2) else "--consumer-property", "group.protocol=consumer")


class StreamsGroupHeartbeatRequest(ApiMessage, load_json="tests.support.schemas"):  # type: ignore[call-arg, misc]
    """KIP-1071; the form stands in `tests/support/schemas`."""


class StreamsGroupHeartbeatResponse(ApiMessage, load_json="tests.support.schemas"):  # type: ignore[call-arg, misc]
    pass


def console(tool: str, cluster: Kafka, group: str, topic: str, log: Path, *arguments: str) -> Process:
    """One of Kafka's own consumers as a member of the group; a context manager that ends it."""
    own = ("--bootstrap-server", cluster.bootstrap_servers, "--topic", topic, "--group", group, *arguments)
    return start(f"a member of {group}", java(tool, *own, heap_megabytes=64), log=log)


def lines(member: Process) -> int:
    """How many messages it has printed."""
    return sum(line.isdigit() for line in member.log.read_text().splitlines())


def set_group_property(cluster: Kafka, group: str, name: str, value: str) -> None:
    """Of a group that need not exist yet."""
    tool = "kafka.admin.ConfigCommand"
    change = ("--alter", "--add-config", f"{name}={value}")
    _run(tool, cluster, "--entity-type", "groups", "--entity-name", group, *change)


def share_lags(cluster: Kafka, group: str) -> dict[tuple[str, int], int]:
    """(topic, partition) -> lag, as Kafka's own command says."""
    tool = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
    output = _run(tool, cluster, "--describe", "--offsets", "--group", group)
    rows = (line.split() for line in output.splitlines() if line.startswith(group))
    return {(topic, int(partition)): int(lag) for _, topic, partition, _, lag in rows}


def _run(tool: str, cluster: Kafka, *arguments: str) -> str:
    own = ("--bootstrap-server", cluster.bootstrap_servers, *arguments)
    with scratch("tool") as folder, start(tool, java(tool, *own, heap_megabytes=128), log=folder / "output") as process:
        assert process.wait(WAIT_SECONDS) == 0, process.log_tail()
        return process.log.read_text()


@contextlib.contextmanager
def streams_member(cluster: Kafka, application: str, sources: Sequence[str], internal: str) -> Iterator[None]:
    """The only member of a Stable streams group, which reads `sources` and a repartition topic of its own.

    It does what a Kafka Streams client does to join, and nothing else.
    """
    name = str(uuid.uuid4())
    with admin(cluster.bootstrap_servers) as client:
        tasks = _joined(client, application, name, _topology(sources, internal))
        try:
            wait_until(lambda: _holds(client, application, name, tasks), f"{application} to be Stable", WAIT_SECONDS)
            with _beating(lambda: _holds(client, application, name, tasks)):
                yield
        finally:
            _beat(client, application, name, -1)


@contextlib.contextmanager
def _beating(beat: Callable[[], object]) -> Iterator[None]:
    """Sends heartbeats, without which the member is dropped after 45 s."""
    ending = threading.Event()

    def run() -> None:
        while not ending.wait(BEAT_SECONDS):
            beat()

    thread = threading.Thread(target=run, name="streams-heartbeats")
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def _topology(sources: Sequence[str], internal: str) -> Any:  # noqa: ANN401 - the library has no types
    form = StreamsGroupHeartbeatRequest.Topology
    nothing: dict[str, list[Any]] = {
        name: [] for name in ("source_topic_regex", "state_changelog_topics", "copartition_groups")
    }
    repartition = form.Subtopology.TopicInfo(name=internal, partitions=1, replication_factor=1, topic_configs=[])
    first = form.Subtopology(
        subtopology_id="0",
        source_topics=list(sources),
        repartition_sink_topics=[internal],
        repartition_source_topics=[],
        **nothing,
    )
    second = form.Subtopology(
        subtopology_id="1",
        source_topics=[],
        repartition_sink_topics=[],
        repartition_source_topics=[repartition],
        **nothing,
    )
    return form(epoch=1, subtopologies=[first, second])


def _joined(client: KafkaAdminClient, application: str, name: str, topology: Any) -> dict[str, Any]:  # noqa: ANN401
    """What the member is and has to do, renewed by every heartbeat."""
    return _beat(
        client,
        application,
        name,
        0,
        topology=topology,
        rebalance_timeout_ms=10_000,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id=name,
        client_tags=[],
    )


def _holds(client: KafkaAdminClient, application: str, name: str, tasks: dict[str, Any]) -> bool:
    """Take what the coordinator gives; whether it gives nothing more, having given something."""
    reported = _beat(
        client, application, name, tasks["epoch"], active_tasks=tasks["active"], standby_tasks=[], warmup_tasks=[]
    )
    is_settled = bool(tasks["active"]) and reported["active"] is None
    tasks["epoch"] = reported["epoch"]
    if reported["active"] is not None:
        tasks["active"] = reported["active"]
    return is_settled


def _beat(client: KafkaAdminClient, application: str, name: str, epoch: int, **parts: Any) -> dict[str, Any]:  # noqa: ANN401
    request = StreamsGroupHeartbeatRequest(
        group_id=application, member_id=name, member_epoch=epoch, endpoint_information_epoch=-1, **parts
    )
    # The library's admin client has no method for it.
    response = client._manager.run(client._manager.send, request)
    assert response.error_code == 0, response.error_message
    return {"epoch": response.member_epoch, "active": response.active_tasks}


def join_as_connect_worker(cluster: Kafka, group: str) -> None:
    """What a worker of Kafka Connect sends first; the group waits for it to go on, until its session ends."""
    form = JoinGroupRequest.JoinGroupRequestProtocol
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        protocol_type="connect",
        protocols=[form(name="sessioned", metadata=b"\0\1")],
        max_version=3,
    )
    with admin(cluster.bootstrap_servers) as client:
        response = client._manager.run(client._manager.send, request)
    assert response.error_code == 0
