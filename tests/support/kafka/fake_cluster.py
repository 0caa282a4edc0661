"""A Kafka cluster as literal data, which tests change between cycles."""

from collections.abc import Callable
from dataclasses import dataclass, field

from adapter.cluster.groups import Client, Kind, Owned
from adapter.kafka.versions import Versions

Partition = tuple[str, int]


@dataclass
class Kafka:
    """What is true in the cluster; tests change it between cycles."""

    topics: dict[str, list[int]] = field(default_factory=dict)
    """Topic -> the leader of each partition."""
    commits: dict[str, dict[Partition, int]] = field(default_factory=dict)
    """Group -> what it has committed; every group here is listed by its coordinator."""
    coordinators: dict[str, int] = field(default_factory=dict)
    """Group -> node; NOBODY: every broker refuses. Others belong to the leader of their partition of the offsets topic,
    or to the first broker where there is no such topic."""
    place: Callable[[str], int] | None = None
    """Where groups belong if not by the hash of Kafka: their coordinator."""
    are_agents: bool = False
    """Every broker answers for every group and partition and lists all groups, and each Metadata has other leaders."""
    ends: dict[Partition, int] = field(default_factory=dict)
    stable_ends: dict[Partition, int] = field(default_factory=dict)
    """Where they differ from the ends."""
    starts: dict[Partition, int] = field(default_factory=dict)
    """Where they are not 0."""
    generations: dict[str, str] = field(default_factory=dict)
    epochs: dict[str, list[int]] = field(default_factory=dict)
    """Topic -> the leader epoch of each partition, where it is reported."""
    nodes: tuple[int, ...] = (1, 2, 3)
    silent: set[int] = field(default_factory=set)
    refusing: set[int] = field(default_factory=set)
    throttling: set[int] = field(default_factory=set)
    """Nodes to which nothing is sent, because they throttle the adapter."""
    loading: set[int] = field(default_factory=set)
    unlisted: set[str] = field(default_factory=set)
    """Groups that nobody lists, whatever they have committed."""
    describable: set[str] | None = None
    """Groups whose coordinator a broker tells us, where ACLs name single ones."""
    commit_errors: dict[str, int] = field(default_factory=dict)
    end_errors: dict[Partition, int] = field(default_factory=dict)
    start_errors: dict[Partition, int] = field(default_factory=dict)
    ignorant: dict[int, set[str]] = field(default_factory=dict)
    """Node -> topics that its Metadata lacks."""
    behind: dict[int, dict[str, int]] = field(default_factory=dict)
    """Node -> topic -> how many of its partitions the node's Metadata has, where not all."""
    believed: dict[int, dict[str, tuple[list[int], list[int]]]] = field(default_factory=dict)
    """Node -> topic -> leaders and epochs that its Metadata has instead of the true ones."""
    living: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Node -> the brokers that are alive as it knows them, where these are not all."""
    hidden: set[str] = field(default_factory=set)
    """Topics that we may not describe."""
    stale_commits: dict[int, dict[str, dict[Partition, int]]] = field(default_factory=dict)
    """Node -> what it answers for groups instead of the truth, error 0: as after a freeze."""
    members: dict[str, set[str]] = field(default_factory=dict)
    """Group with members -> the topics that they read; groups that are not here are Empty."""
    moving: set[str] = field(default_factory=set)
    """Those of them that are not Stable just now."""
    undescribed: set[str] = field(default_factory=set)
    """Groups whose description is an error: the coordinator is loading or moving, or we may not describe them."""
    lists_phases: bool = True
    """Whether listings tell the state of a group: from ListGroups 4 on."""
    member_counts: dict[str, int] = field(default_factory=dict)
    """Of the groups that do not have one member."""
    owned: dict[str, tuple[Owned, ...]] = field(default_factory=dict)
    """Group -> what is assigned to each of its members."""
    clients: dict[str, tuple[Client, ...]] = field(default_factory=dict)
    """Group -> its members, where these are asked for."""
    kinds: dict[str, Kind] = field(default_factory=dict)
    """Of the groups that are not classic."""
    shares: dict[str, dict[Partition, tuple[int, int]]] = field(default_factory=dict)
    """Share group -> start and lag of every partition that it has begun; it is in `commits` and `kinds` as well."""
    share_errors: dict[str, int] = field(default_factory=dict)
    share_row_errors: dict[Partition, int] = field(default_factory=dict)
    ignorant_of_shares: set[int] = field(default_factory=set)
    """Nodes that do not offer the request for the progress of share groups."""
    versions: dict[int, Versions] = field(default_factory=dict)
    """Node -> the versions of requests that it negotiates, where these are not the newest."""
    unreachable: str | None = None
    """Why no bootstrap server lets us in."""
    delays: dict[tuple[str, int], tuple[float, float]] = field(default_factory=dict)
    """(Kind of request, node) -> seconds until the broker reads it, and from then on until the answer is here."""
    reading_seconds: float = 0.0
    """The time that we take to read each answer with offsets."""
    pace: dict[tuple[str, int], float] = field(default_factory=dict)
    """(Kind of request, node) -> how long the broker works on each, one after another."""
    deadline_seconds: float = 0.0
    """How long a call to a silent broker takes."""
    busy_seconds: float = 0.0
    """How long the adapter takes before it sends requests for log offsets: it is short of CPU."""
    move_on_to: Callable[[float], None] = lambda _: None
    """Make the ends and commits those of a time."""


NOBODY = -1
