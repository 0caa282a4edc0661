"""Responses that describe groups -> their members, the topics that these read, and the partitions that each one owns.

Members of classic groups send their subscription and assignment as bytes, which the client library decodes. Any client
may send anything: what cannot be decoded is unknown, and affects only its own group."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from adapter.cluster.groups import Client, Description, Kind, Owned, Phase, phase_in
from adapter.protocol.codes import GROUP_NOT_FOUND, NO_ERROR, MalformedResponse
from adapter.protocol.group_responses import Decoded
from adapter.protocol.reader import malformed_as_ours
from adapter.verdicts.assignment import SHARING_BY_ASSIGNOR, Sharing, is_spread

Decoding = TypeVar("Decoding")
_DEFAULT_CLIENT = "consumer-"
"""Kafka's Java client names itself by this, its group and a number, which is the same in every pod."""
Assigned = tuple[tuple[str, tuple[int, ...]], ...]
"""Topics, each with its partitions."""
Assignment = Iterable[Owned]
Read = tuple[frozenset[str], Assignment]
"""The topics that the members of a group read, and what is assigned to them."""


@malformed_as_ours()
def descriptions_in(response: Decoded, kind: Kind, *, with_clients: bool = False) -> dict[str, Description | None]:
    """Returns group -> members; None: no group of that kind exists. Groups that could not be described are omitted."""
    return {
        group.group_id: _description_of(group, kind, with_clients=with_clients)
        for group in response.groups
        if group.error_code in {NO_ERROR, GROUP_NOT_FOUND}
    }


def _description_of(group: Decoded, kind: Kind, *, with_clients: bool) -> Description | None:
    phase = phase_in(group.group_state)
    # Brokers report a missing group as Dead without an error (DescribeGroups before version 6), or as not found.
    if group.error_code == GROUP_NOT_FOUND or phase is Phase.DEAD:
        return None
    if phase is not Phase.STABLE:
        return Description(len(group.members))
    topics, assignment = _READERS[kind](group)
    owned = tuple(sorted(assignment))
    sharing = _sharing_of(group, kind, owned)
    clients = tuple(_client_of(member, group.group_id) for member in group.members) if with_clients else ()
    return Description(len(group.members), topics=topics, owned=owned, sharing=sharing, clients=clients)


def _sharing_of(group: Decoded, kind: Kind, owned: Sequence[Owned]) -> Sharing:
    match kind:
        case Kind.SHARE:
            return Sharing.SEVERAL_READERS
        case Kind.STREAMS:
            # A task reads one partition of each topic of its subtopology.
            return Sharing.TOGETHER if len(_sources_of(group)) > 1 else Sharing.BY_TOPIC
    assignor = group.protocol_data if kind is Kind.CLASSIC else group.assignor_name
    return SHARING_BY_ASSIGNOR.get(assignor) or _sharing_shown_by(owned)


def _sharing_shown_by(owned: Sequence[Owned]) -> Sharing:
    """An assignor that is not known is judged by what it has done."""
    owners: dict[str, list[str]] = {}
    for part in owned:
        owners.setdefault(part.topic, []).extend([part.member] * len(part.partitions))
    return Sharing.TOGETHER if is_spread(owners.values()) else Sharing.BY_TOPIC


def _client_of(member: Decoded, group: str) -> Client:
    """Classic groups and the later ones name the instance differently; members of share groups have none."""
    instance = getattr(member, "group_instance_id", None) or getattr(member, "instance_id", None)
    client = member.client_id or ""
    is_default = client.startswith(_DEFAULT_CLIENT) and client.removeprefix(f"{_DEFAULT_CLIENT}{group}-").isdecimal()
    return Client(member.member_id, instance or "", "" if is_default else client, member.client_host or "")


def _read_by_classic(group: Decoded) -> Read:
    try:
        subscribed = _union(_topics_subscribed(bytes(member.member_metadata)) for member in group.members)
        owned = [
            Owned(member.member_id, topic, partitions)
            for member in group.members
            for topic, partitions in _partitions_assigned(bytes(member.member_assignment))
        ]
    except MalformedResponse:
        return frozenset(), ()
    return subscribed | {part.topic for part in owned}, _non_empty(owned)


def _kept(decode: Callable[[bytes], Decoding]) -> Callable[[bytes], Decoding]:
    """Members' subscriptions and assignments rarely change, and decoding 1,000 of 100 partitions each takes 50 ms. Long
    ones are decoded each time, so that members cannot fill the memory: 2,000 of 600 bytes take up to 30 MB."""
    kept = lru_cache(2000)(decode)
    return lambda body: (kept if len(body) <= 600 else decode)(body)


@_kept
@malformed_as_ours()
def _topics_subscribed(body: bytes) -> frozenset[str]:
    return frozenset(ConsumerProtocolSubscription.decode(_of_version_0(body)).topics) if body else frozenset()


@_kept
@malformed_as_ours()
def _partitions_assigned(body: bytes) -> Assigned:
    assigned = ConsumerProtocolAssignment.decode(_of_version_0(body)).assigned_partitions if body else ()
    return tuple((part.topic, tuple(part.partitions)) for part in assigned)


def _of_version_0(body: bytes) -> bytes:
    """Returns the fields of every version: some clients announce later versions without theirs, or no user data."""
    return b"\0\0" + body[2:] + b"\xff\xff\xff\xff"


def _read_by_consumers(group: Decoded) -> Read:
    targets = _union(_topics_in(member.target_assignment) for member in group.members)
    topics, owned = _read_by_subscribers(group)
    return topics | targets, owned


def _read_by_subscribers(group: Decoded) -> Read:
    topics = _union(
        frozenset(member.subscribed_topic_names) | _topics_in(member.assignment) for member in group.members
    )
    owned = (
        Owned(member.member_id, part.topic_name, tuple(part.partitions))
        for member in group.members
        for part in member.assignment.topic_partitions
    )
    return topics, _non_empty(owned)


def _read_by_share_group(group: Decoded) -> Read:
    """Several members may share a partition, which then has no owner."""
    topics, owned = _read_by_subscribers(group)
    owned = list(owned)
    members = Counter((part.topic, partition) for part in owned for partition in part.partitions)
    alone = (
        part._replace(partitions=tuple(number for number in part.partitions if members[part.topic, number] == 1))
        for part in owned
    )
    return topics, _non_empty(alone)


def _read_by_streams(group: Decoded) -> Read:
    """All members of an application run the same topology; it is null while topics are missing. The task of a
    partition number reads that partition of each source topic."""
    sources = _sources_of(group)
    owned = (
        Owned(member.member_id, topic, tuple(tasks.partitions))
        for member in group.members
        for tasks in member.assignment.active_tasks
        for topic in sources.get(tasks.subtopology_id, ())
    )
    return _union(map(frozenset, sources.values())), _non_empty(owned)


def _sources_of(group: Decoded) -> dict[str, set[str]]:
    """Returns the topics that each subtopology reads."""
    subtopologies = (group.topology.subtopologies or ()) if group.topology else ()
    return {
        part.subtopology_id: {*part.source_topics, *(topic.name for topic in part.repartition_source_topics)}
        for part in subtopologies
    }


def _topics_in(assignment: Decoded) -> frozenset[str]:
    return frozenset(part.topic_name for part in assignment.topic_partitions)


def _non_empty(owned: Assignment) -> Assignment:
    return (part for part in owned if part.partitions)


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


_READERS: Mapping[Kind, Callable[[Decoded], Read]] = {
    Kind.CLASSIC: _read_by_classic,
    Kind.CONSUMER: _read_by_consumers,
    Kind.SHARE: _read_by_share_group,
    Kind.STREAMS: _read_by_streams,
}
