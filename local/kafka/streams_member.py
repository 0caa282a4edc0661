"""A member of a streams group (KIP-1071): it joins as Kafka Streams does, and reads nothing.

python -m local.kafka.streams_member --bootstrap-servers HOST:PORT --group APPLICATION --source T --internal T

Kafka Streams is no part of the local Kafka, so what its members send is sent here, to the only broker of a cluster. It
prints `stable` as soon as it has its tasks, and leaves its group on SIGTERM."""

import argparse
import signal
import sys
import threading
import uuid
from types import FrameType
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.protocol.api_message import ApiMessage

from local.kafka.admin import admin

STABLE = "stable"
JOINING_SECONDS, BEAT_SECONDS = 0.2, 5.0
"""Between two heartbeats; without any, the member is dropped after 45 s."""
REBALANCE_MILLISECONDS = 10_000
JOINS, LEAVES = 0, -1
"""Epochs of a member."""


class StreamsGroupHeartbeatRequest(ApiMessage, load_json="local.kafka.schemas"):  # type: ignore[call-arg, misc]
    pass


class StreamsGroupHeartbeatResponse(ApiMessage, load_json="local.kafka.schemas"):  # type: ignore[call-arg, misc]
    """The library finds it by its name."""


class StreamsMember:
    def __init__(self, client: KafkaAdminClient, group: str) -> None:
        self._client = client
        self._group = group
        self._name = str(uuid.uuid4())
        self._epoch = JOINS
        self._tasks: list[Any] = []

    def join(self, topology: Any) -> None:  # noqa: ANN401 - the library has no types
        timeout = {"rebalance_timeout_ms": REBALANCE_MILLISECONDS}
        self._beat(topology=topology, process_id=self._name, client_tags=[], active_tasks=[], **timeout)

    def beat(self) -> bool:
        """Reports and takes tasks; returns whether it has some, and is given no others."""
        had_tasks = bool(self._tasks)
        return not self._beat(active_tasks=self._tasks) and had_tasks

    def leave(self) -> None:
        self._epoch = LEAVES
        self._beat(active_tasks=None)

    def _beat(self, active_tasks: list[Any] | None, **parts: object) -> bool:
        """Returns whether the coordinator has given other tasks."""
        others: list[Any] | None = None if active_tasks is None else []
        request = StreamsGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._name,
            member_epoch=self._epoch,
            endpoint_information_epoch=-1,
            active_tasks=active_tasks,
            standby_tasks=others,
            warmup_tasks=others,
            **parts,
        )
        # The library's admin client has no method for it.
        response = self._client._manager.run(self._client._manager.send, request)
        if response.error_code:
            sys.exit(f"group {self._group}: error {response.error_code}: {response.error_message}")
        self._epoch = response.member_epoch
        if response.active_tasks is None:
            return False
        self._tasks = response.active_tasks
        return True


def topology_of(source: str, internal: str) -> Any:  # noqa: ANN401 - the library has no types
    """Returns two subtopologies: one that reads `source` and writes the repartition topic `internal`, which the other
    one reads."""
    form = StreamsGroupHeartbeatRequest.Topology
    lists = (
        "source_topics",
        "source_topic_regex",
        "state_changelog_topics",
        "repartition_sink_topics",
        "repartition_source_topics",
        "copartition_groups",
    )
    nothing: dict[str, list[Any]] = {name: [] for name in lists}
    repartition = form.Subtopology.TopicInfo(name=internal, partitions=1, replication_factor=1, topic_configs=[])
    first = {**nothing, "source_topics": [source], "repartition_sink_topics": [internal]}
    second = {**nothing, "repartition_source_topics": [repartition]}
    parts = [form.Subtopology(subtopology_id=str(number), **each) for number, each in enumerate((first, second))]
    return form(epoch=1, subtopologies=parts)


def run(member: StreamsMember, topology: Any, ending: threading.Event) -> None:  # noqa: ANN401 - as above
    member.join(topology)
    pause = JOINING_SECONDS
    while not ending.wait(pause):
        if member.beat() and pause == JOINING_SECONDS:
            sys.stdout.write(f"{STABLE}\n")
            sys.stdout.flush()
            pause = BEAT_SECONDS
    member.leave()


def main() -> None:
    arguments = _arguments()
    ending = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ending.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    with admin(arguments.bootstrap_servers, client_id=arguments.client_id) as client:
        run(StreamsMember(client, arguments.group), topology_of(arguments.source, arguments.internal), ending)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.kafka.streams_member", description="Join a streams group.")
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--group", required=True, help="the application's id")
    parser.add_argument("--source", required=True, help="the topic that the application reads")
    parser.add_argument("--internal", required=True, help="its repartition topic, of one partition")
    parser.add_argument("--client-id", default="streams", help="streams by default")
    return parser.parse_args()


if __name__ == "__main__":
    main()
