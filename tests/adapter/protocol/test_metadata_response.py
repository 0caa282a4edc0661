"""What is read from a Metadata response is what the library reads; the same bytes give the same value."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from adapter.cluster.topics import Topic, Topology
from adapter.kafka.connections import LARGEST_FRAME_BYTES
from adapter.protocol import offset_requests
from adapter.protocol.apis import METADATA
from adapter.protocol.codes import TOPIC_NOT_AUTHORIZED, MalformedResponse
from adapter.protocol.metadata_response import LatestTopology, topology_in

VERSION = METADATA.newest
_Topic = MetadataResponse.MetadataResponseTopic
_Partition = _Topic.MetadataResponsePartition
_Broker = MetadataResponse.MetadataResponseBroker

names = st.text(min_size=1, max_size=20)
int32 = st.integers(-(2**31), 2**31 - 1)
nodes = st.one_of(st.lists(int32, max_size=3), st.just([1, 2, 3]), st.just(list(range(200))))
errors = st.sampled_from([0, 0, 0, 3, TOPIC_NOT_AUTHORIZED, -1])
versions = st.integers(METADATA.oldest, METADATA.newest)
Plain = tuple[dict[int, str], dict[str, tuple[str | None, list[int], list[int] | None]], frozenset[str]]


def partition(
    index: int,
    leader: int,
    replicas: Sequence[int] = (1, 2),
    isr: Sequence[int] = (1, 2),
    offline: Sequence[int] = (),
    epoch: int = 4,
) -> object:
    return _Partition(
        error_code=5 if leader < 0 else 0, partition_index=index, leader_id=leader, leader_epoch=epoch,
        replica_nodes=list(replicas), isr_nodes=list(isr), offline_replicas=list(offline),
    )  # fmt: skip


def topic(name: str, partitions: Sequence[object], error: int = 0, topic_id: uuid.UUID | None = None) -> object:
    return _Topic(error_code=error, name=name, topic_id=topic_id, is_internal=False, partitions=list(partitions))


def body(
    topics: Sequence[object],
    hosts: Mapping[int, str] | None = None,
    throttle: int = 0,
    controller: int = 1,
    version: int = VERSION,
) -> bytes:
    brokers = [
        _Broker(node_id=node, host=host, port=9092, rack=None)
        for node, host in (hosts or {1: "kafka-1", 2: "kafka-2"}).items()
    ]
    made = MetadataResponse(
        throttle_time_ms=throttle, brokers=brokers, cluster_id="of some length", controller_id=controller,
        topics=list(topics), version=version,
    )  # fmt: skip
    return bytes(made.encode())


def orders(leader: int = 1, throttle: int = 0, controller: int = 1) -> bytes:
    return body([topic("orders", [partition(0, leader)])], throttle=throttle, controller=controller)


def by_library(response: bytes, version: int) -> Plain:
    read = MetadataResponse.decode(response, version=version)
    topics = {one.name: one for one in read.topics if one.partitions}
    return (
        {one.node_id: f"{one.host}:{one.port}" for one in read.brokers},
        {
            name: (
                str(one.topic_id) if one.topic_id and version >= 10 else None,
                [row.leader_id for row in _by_index(one)],
                [row.leader_epoch for row in _by_index(one)] if version >= 7 else None,
            )
            for name, one in topics.items()
        },
        frozenset(one.name for one in read.topics if one.error_code == TOPIC_NOT_AUTHORIZED),
    )


def _by_index(reported: Any) -> list[Any]:  # noqa: ANN401 - the library has no types
    return sorted(reported.partitions, key=lambda row: row.partition_index)


def plain(found: Topology) -> Plain:
    assert all(one.leaders.dtype == np.int32 for one in found.topics.values())
    topics = {name: (one.generation, one.leaders.tolist(), _epochs(one)) for name, one in found.topics.items()}
    return dict(found.brokers), topics, found.hidden


def _epochs(topic: Topic) -> list[int] | None:
    return None if topic.epochs is None else [int(epoch) for epoch in topic.epochs]


rows = st.lists(st.tuples(int32, nodes, nodes, nodes, int32), max_size=7)
shuffled = rows.flatmap(lambda reported: st.permutations(list(enumerate(reported))))
ids = st.one_of(st.none(), st.uuids(), st.just(uuid.UUID(int=0)))
described = st.builds(
    lambda name, reported, error, topic_id: topic(name, [partition(i, *row) for i, row in reported], error, topic_id),
    names, shuffled, errors, ids,
)  # fmt: skip
parts = (st.lists(described, max_size=5), st.dictionaries(int32, names, max_size=4), int32, int32)
bodies = st.builds(body, *parts)
bodies_of_versions = versions.flatmap(
    lambda version: st.tuples(st.builds(body, *parts, st.just(version)), st.just(version))
)


@given(bodies_of_versions)
def test_what_is_read_is_what_the_library_reads(response: tuple[bytes, int]) -> None:
    assert plain(topology_in(*response)) == by_library(*response)


@given(
    st.one_of(bodies_of_versions, st.just((orders(), VERSION))),
    st.lists(st.tuples(st.integers(0, 2**20), st.binary(max_size=3))),
)
def test_a_response_with_other_bytes_in_it_is_a_value_or_malformed(
    response: tuple[bytes, int], changes: list[tuple[int, bytes]]
) -> None:
    spoilt = bytearray(response[0])
    for place, written in changes:
        begin = place % len(spoilt)
        spoilt[begin : begin + len(written)] = written
    try:
        found = LatestTopology().topology(bytes(spoilt), response[1])
    except MalformedResponse:
        return

    assert isinstance(found, Topology)


@given(bodies, st.integers(0, 2**20))
def test_a_response_that_is_cut_off_is_malformed_or_the_whole(response: bytes, cut: int) -> None:
    try:
        shorter = topology_in(response[: cut % len(response)])
    except MalformedResponse:
        return

    pytest.fail(f"read {plain(shorter)}")


@given(st.one_of(st.none(), st.lists(names, max_size=300)), versions)
def test_a_request_is_the_library_s_to_the_byte(topics: list[str] | None, version: int) -> None:
    named = topics if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    expected = MetadataRequest(
        topics=named, allow_auto_topic_creation=False, include_topic_authorized_operations=False, version=version
    )
    request = offset_requests.metadata(topics, version)
    for one in (request, expected):
        one.with_header(correlation_id=7, client_id="someone")

    assert request.encode(framed=True, header=True) == bytes(expected.encode(framed=True, header=True))


@pytest.mark.parametrize("indexes", [[1], [0, 2], [0, 0], [-1, 0], [0, 2**31 - 1]])
def test_partitions_that_are_not_numbered_from_0_on_make_a_response_malformed(indexes: list[int]) -> None:
    reported = [topic("whole", [partition(0, 1)]), topic("orders", [partition(index, 1) for index in indexes])]

    with pytest.raises(MalformedResponse):
        topology_in(body(reported))


def test_a_name_that_is_no_text_makes_a_response_malformed() -> None:
    with pytest.raises(MalformedResponse):
        topology_in(orders().replace(b"orders", b"\xff\xfeders"))
    with pytest.raises(MalformedResponse):
        topology_in(orders().replace(b"kafka-1", b"\xff\xfefka-1"))


@pytest.mark.parametrize("brokers", [b"\0", b"\1"])
def test_null_instead_of_a_list_makes_a_response_malformed(brokers: bytes) -> None:
    """Brokers, then the same for topics: nothing of either would be believed."""
    no_cluster_id, controller, topics, no_tags = b"\0", bytes(4), b"\0", b"\0"

    with pytest.raises(MalformedResponse, match="null"):
        topology_in(bytes(4) + brokers + no_cluster_id + controller + topics + no_tags)


def test_topics_that_we_may_not_describe_are_hidden_and_others_with_an_error_are_left_out() -> None:
    found = topology_in(body([topic("orders", [], TOPIC_NOT_AUTHORIZED), topic("refunds", [], 3)]))

    assert found.hidden == {"orders"}
    assert found.topics == {}


def test_throttle_and_controller_do_not_change_the_topology() -> None:
    known = LatestTopology()
    first = known.topology(orders())

    assert first.topics["orders"].leaders.tolist() == [1]
    assert known.topology(orders(throttle=7)) is first
    assert known.topology(orders(controller=2)) is first


def test_other_bytes_are_read_and_share_what_has_not_changed() -> None:
    known = LatestTopology()
    both = [topic("orders", [partition(0, 1)]), topic("refunds", [partition(0, 2)])]
    first = known.topology(body(both))
    moved = known.topology(body([topic("orders", [partition(0, 2)]), both[1]]))

    assert moved.topics["orders"].leaders.tolist() == [2]
    assert moved.topics["refunds"] is first.topics["refunds"]
    assert first.topics["orders"].leaders.tolist() == [1]


def test_a_cluster_of_more_than_1_000_brokers_is_malformed() -> None:
    """Each broker takes a connection, and a process can open only a limited number."""
    hosts = {node: f"kafka-{node}" for node in range(1000)}

    assert len(topology_in(body([], hosts)).brokers) == 1000
    with pytest.raises(MalformedResponse, match="1,001 brokers"):
        topology_in(body([], {**hosts, 1000: "kafka-1000"}))


def test_the_largest_frame_has_room_for_100_000_topics_with_the_longest_names() -> None:
    topics = [
        topic(f"{number:0249}", [partition(0, 1, (1, 2, 3), (1, 2, 3))], topic_id=uuid.uuid4()) for number in range(100)
    ]

    assert 0.9 * LARGEST_FRAME_BYTES < 1000 * len(body(topics)) < LARGEST_FRAME_BYTES
