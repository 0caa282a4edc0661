"""The content of the fake brokers: groups with their topics, distributed over nodes, and which node knows what.

Nodes are numbered from 1. Every partition's log grows by one message per millisecond, and its group keeps up."""

import dataclasses
import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tests.support.kafka.fake_cluster import Kafka

PARTITIONS_PER_TOPIC = 20
FIRST_OFFSET = 1_000_000
MARKED_PREFIX = b"\x5b\xa1\x9c\x3d\xe7\x42\xf0"
MARKED = int.from_bytes(MARKED_PREFIX + b"\x80")
"""Stands for FIRST_OFFSET in a frame, and those below it for commits; nothing else in a frame looks like them."""
REFUSED_AFTER = 4


class Refusal(StrEnum):
    """What the client may no longer describe."""

    GROUPS = "groups"
    TOPICS = "topics"


@dataclass(frozen=True, slots=True)
class StoredGroup:
    name: str
    topics: int
    partitions: int
    """The partitions of each topic."""

    @property
    def topic_names(self) -> list[str]:
        return [f"{self.name}-topic-{number:03}" for number in range(self.topics)]

    @property
    def places(self) -> list[tuple[str, int]]:
        """Topics and partitions."""
        return [(topic, index) for topic in self.topic_names for index in range(self.partitions)]


@dataclass(frozen=True)
class StoredCluster:
    groups: tuple[StoredGroup, ...]
    ports: tuple[int, ...]
    """The ports of node 1, 2 and so on, on 127.0.0.1."""
    began: float
    """When all logs ended at FIRST_OFFSET, in monotonic seconds."""
    refusal: Refusal | None = None
    """What the client may not describe after `REFUSED_AFTER` answers to each request."""
    takes_groups: bool = True
    """Whether OffsetFetch asks for all groups of a coordinator at once (version 8), not for one (version 7)."""

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @property
    def partitions(self) -> int:
        """The number of partitions, of topics as of groups."""
        return sum(group.topics * group.partitions for group in self.groups)

    def kafka(self) -> Kafka:
        """Returns its truth with marked offsets."""
        nodes = tuple(range(1, len(self.ports) + 1))
        sizes = [(topic, group.partitions) for group in self.groups for topic in group.topic_names]
        return Kafka(
            nodes=nodes,
            topics={
                topic: [nodes[(number + index) % len(nodes)] for index in range(size)]
                for number, (topic, size) in enumerate(sizes)
            },
            coordinators={group.name: nodes[number % len(nodes)] for number, group in enumerate(self.groups)},
            members={group.name: set(group.topic_names) for group in self.groups},
            commits={group.name: {place: MARKED - lag_of(place[1]) for place in group.places} for group in self.groups},
            ends={place: MARKED for group in self.groups for place in group.places},
        )

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


def lag_of(partition: int) -> int:
    """The difference between a commit and a log end at the same moment."""
    return 1 + partition % 10


def cluster_of(document: dict[str, Any]) -> StoredCluster:
    """Returns a cluster from the JSON of `to_json`."""
    groups = tuple(StoredGroup(**group) for group in document["groups"])
    refusal = Refusal(document["refusal"]) if document["refusal"] else None
    return StoredCluster(groups, tuple(document["ports"]), document["began"], refusal, document["takes_groups"])


def cluster_in(file: Path) -> StoredCluster:
    return cluster_of(json.loads(file.read_text()))


def groups_of(partitions: int) -> tuple[StoredGroup, ...]:
    """Returns groups of 100 partitions (5 topics of 20) with this number of partitions in total."""
    count, rest = divmod(partitions, 5 * PARTITIONS_PER_TOPIC)
    assert not rest, partitions
    return tuple(StoredGroup(f"group-{number:04}", 5, PARTITIONS_PER_TOPIC) for number in range(count))
