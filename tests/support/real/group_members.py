"""Members of groups that the client library cannot join: Kafka's own console tools, and two at protocol level.

Kafka Connect is no part of the local Kafka; what its workers send to join is sent here.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NoError,
    NotCoordinatorError,
)
from kafka.protocol.consumer import JoinGroupRequest

from local.downloads import KAFKA_RELEASE
from local.kafka.admin import admin
from local.kafka.broker import Kafka
from local.kafka.java import java
from local.kafka.streams_member import STABLE
from local.kafka.tools import IS_MOVED
from local.processes import Process, scratch, start, wait_until

WAIT_SECONDS = 120.0
LOADING = (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError)
CONSUMER = f"{'org.apache.kafka.tools.consumer' if IS_MOVED else 'kafka.tools'}.ConsoleConsumer"
SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
KIP_848 = ("--command-property" if KAFKA_RELEASE >= (4, 2) else "--consumer-property", "group.protocol=consumer")


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


def streams_command(cluster: Kafka, application: str, source: str, internal: str) -> list[str]:
    options = {"bootstrap-servers": cluster.bootstrap_servers, "group": application, "source": source}
    own = (f"--{name}={value}" for name, value in {**options, "internal": internal}.items())
    return [sys.executable, "-m", "local.kafka.streams_member", *own]


@contextlib.contextmanager
def streams_member(cluster: Kafka, application: str, source: str, internal: str) -> Iterator[None]:
    """The only member of a Stable streams group, which reads `source` and a repartition topic of its own."""
    command = streams_command(cluster, application, source, internal)
    with scratch("streams") as folder, start(f"a member of {application}", command, log=folder / "log") as process:
        wait_until(lambda: STABLE in process.log.read_text(), f"{application} to be Stable", WAIT_SECONDS)
        yield


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

    def has_joined() -> bool:
        """False while the group's coordinator still loads, as it does at a cluster's first commit."""
        error = client._manager.run(client._manager.send, request).error_code
        assert error in {NoError.errno, *(each.errno for each in LOADING)}, error
        return bool(error == NoError.errno)

    with admin(cluster.bootstrap_servers) as client:
        wait_until(has_joined, f"a worker to join {group}", WAIT_SECONDS)
