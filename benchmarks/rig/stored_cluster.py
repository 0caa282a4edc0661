"""What the fake brokers have: groups, each with topics of its own, spread over nodes; and who knows what of it.

Nodes are numbered from 1. Every partition's log grows by one message each millisecond, and its group keeps up.
"""

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

PARTITIONS_PER_TOPIC = 20
FIRST_OFFSET = 1_000_000
REFUSED_AFTER = 4


class Refusal(StrEnum):
    """What the client is no longer authorized to describe."""

    GROUPS = "groups"
    TOPICS = "topics"


@dataclass(frozen=True, slots=True)
class StoredGroup:
    name: str
    topics: int
    partitions: int
    """Of each topic."""

    @property
    def topic_names(self) -> list[str]:
        return [f"{self.name}-topic-{number:03}" for number in range(self.topics)]


@dataclass(frozen=True)
class StoredCluster:
    groups: tuple[StoredGroup, ...]
    ports: tuple[int, ...]
    """Of node 1, 2, and so on, on 127.0.0.1."""
    began: float
    """When all logs ended at FIRST_OFFSET, in seconds of the machine's monotonic clock."""
    refusal: Refusal | None = None
    """What the client may not describe, once each of its requests was answered `REFUSED_AFTER` times."""

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @property
    def partitions(self) -> int:
        """As many of topics as of groups."""
        return sum(group.topics * group.partitions for group in self.groups)

    @cached_property
    def coordinators(self) -> dict[str, int]:
        return {group.name: 1 + number % len(self.ports) for number, group in enumerate(self.groups)}

    @cached_property
    def by_name(self) -> dict[str, StoredGroup]:
        return {group.name: group for group in self.groups}

    @cached_property
    def topics(self) -> dict[str, tuple[int, int]]:
        """Topic -> its number, and how many partitions it has."""
        sizes = ((topic, group.partitions) for group in self.groups for topic in group.topic_names)
        return {topic: (number, size) for number, (topic, size) in enumerate(sizes)}

    def leader(self, topic: str, partition: int) -> int:
        return 1 + (self.topics[topic][0] + partition) % len(self.ports)

    def topic_partitions(self) -> Iterator[tuple[str, int]]:
        return ((topic, index) for topic, (_, size) in self.topics.items() for index in range(size))

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


def lag_of(partition: int) -> int:
    """Between a commit and a log end of the same moment."""
    return 1 + partition % 10


def cluster_of(document: dict[str, Any]) -> StoredCluster:
    """A cluster as `to_json` wrote it."""
    groups = tuple(StoredGroup(**group) for group in document["groups"])
    refusal = Refusal(document["refusal"]) if document["refusal"] else None
    return StoredCluster(groups, tuple(document["ports"]), document["began"], refusal)


def cluster_in(file: Path) -> StoredCluster:
    return cluster_of(json.loads(file.read_text()))


def groups_of(partitions: int) -> tuple[StoredGroup, ...]:
    """Groups of 100 partitions each, 5 topics of 20, that make so many together."""
    count, rest = divmod(partitions, 5 * PARTITIONS_PER_TOPIC)
    assert not rest, partitions
    return tuple(StoredGroup(f"group-{number:04}", 5, PARTITIONS_PER_TOPIC) for number in range(count))
