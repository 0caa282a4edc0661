"""Our own forms of requests that the library does not have: bytes as brokers write them, made by hand."""

from adapter.cluster.groups import Description, Kind, Owned
from adapter.kafka.describe_messages import (
    ConsumerGroupDescribeRequest,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from adapter.kafka.group_descriptions import descriptions_in
from adapter.protocol import group_responses

NO_TAGS = b"\0"
NULL = b"\0"
TOPIC_ID = bytes(range(16))


def text(value: str) -> bytes:
    return bytes([len(value) + 1]) + value.encode()


def number(value: int, size: int) -> bytes:
    return value.to_bytes(size, "big", signed=True)


def several(*entries: bytes) -> bytes:
    return bytes([len(entries) + 1]) + b"".join(entries)


def response(*groups: bytes) -> bytes:
    throttle = number(0, 4)
    return throttle + several(*groups) + NO_TAGS


def share_partition(partition: int, start: int, *lag: int) -> bytes:
    error = number(0, 2) + NULL
    epoch = number(0, 4)
    reported = (number(one, 8) for one in lag)
    return b"".join((number(partition, 4), number(start, 8), epoch, *reported, error, NO_TAGS))


def share_group(*partitions: bytes) -> bytes:
    topic = text("orders") + TOPIC_ID + several(*partitions) + NO_TAGS
    return text("workers") + several(topic) + number(0, 2) + NULL + NO_TAGS


def test_newer_brokers_count_what_a_share_group_has_not_done() -> None:
    body = response(share_group(share_partition(0, 10, 7), share_partition(1, -1, -1)))
    reported = group_responses.shares_in(DescribeShareGroupOffsetsResponse.decode(body, version=1))

    orders = reported["workers"].topics["orders"]
    assert (orders.partition.tolist(), orders.start.tolist(), orders.lag.tolist()) == ([0, 1], [10, -1], [7, -1])


def test_older_brokers_do_not() -> None:
    body = response(share_group(share_partition(0, 10)))
    reported = group_responses.shares_in(DescribeShareGroupOffsetsResponse.decode(body, version=0))

    orders = reported["workers"].topics["orders"]
    assert (orders.partition.tolist(), orders.start.tolist(), orders.lag.tolist()) == ([0], [10], [-1])


def described_group(name: str, state: str, *middle: bytes) -> bytes:
    error = number(0, 2) + NULL
    operations = number(-(2**31), 4)
    return b"".join((error, text(name), text(state), number(3, 4), number(3, 4), *middle, operations, NO_TAGS))


def test_a_share_group_is_described_with_what_its_members_subscribe_to() -> None:
    assigned = several(TOPIC_ID + text("orders") + several(number(0, 4)) + NO_TAGS) + NO_TAGS
    member = text("m1") + NULL + number(3, 4) + text("client") + text("/127.0.0.1")
    member += several(text("orders"), text("refunds")) + assigned + NO_TAGS
    body = response(described_group("workers", "Stable", text("simple"), several(member)))

    reported = descriptions_in(ShareGroupDescribeResponse.decode(body, version=1), Kind.SHARE)
    assert reported == {"workers": Description(1, frozenset({"orders", "refunds"}), (Owned("m1", "orders", (0,)),))}


def topic_info(name: str) -> bytes:
    partitions, replication = number(4, 4), number(1, 2)
    return text(name) + partitions + replication + several(text("retention.ms") + text("-1") + NO_TAGS) + NO_TAGS


def test_a_streams_group_is_described_with_what_its_topology_reads() -> None:
    first = text("0") + several(text("orders")) + several(text("by-key")) + several() + several() + NO_TAGS
    changelog, repartition = several(topic_info("store-changelog")), several(topic_info("by-key"))
    second = text("1") + several() + several() + changelog + repartition + NO_TAGS
    topology = b"\1" + number(1, 4) + several(first, second) + NO_TAGS
    task = text("0") + several(number(0, 4)) + NO_TAGS
    tasks = several(task) + several() + several() + NO_TAGS
    endpoint = b"\1" + text("127.0.0.1") + (60_000).to_bytes(2, "big") + NO_TAGS
    tag = text("zone") + text("a") + NO_TAGS
    position = text("1") + number(0, 4) + number(9, 8) + NO_TAGS
    member = text("m1") + number(3, 4) + NULL + NULL + text("client") + text("/127.0.0.1") + number(1, 4) + text("p1")
    member += endpoint + several(tag) + several(position) + several(position) + tasks + tasks + b"\0" + NO_TAGS
    body = response(described_group("app", "Stable", topology, several(member)))

    reported = descriptions_in(StreamsGroupDescribeResponse.decode(body, version=0), Kind.STREAMS)
    assert reported == {"app": Description(1, frozenset({"orders", "by-key"}), (Owned("m1", "orders", (0,)),))}


def test_a_streams_group_without_a_topology_is_described_without_topics() -> None:
    unknown, unresolved = b"\xff", b"\1" + number(1, 4) + NULL + NO_TAGS
    groups = (
        described_group(name, "Stable", reported, several()) for name, reported in (("a", unknown), ("b", unresolved))
    )

    reported = descriptions_in(StreamsGroupDescribeResponse.decode(response(*groups), version=0), Kind.STREAMS)
    assert reported == {"a": Description(0), "b": Description(0)}


def test_requests_are_encoded_as_brokers_read_them() -> None:
    every_offset = text("workers") + NULL + NO_TAGS
    asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id="workers", topics=None)
    assert DescribeShareGroupOffsetsRequest(groups=[asked], version=1).encode() == several(every_offset) + NO_TAGS

    for form, version in (
        (ConsumerGroupDescribeRequest, 0),
        (ShareGroupDescribeRequest, 1),
        (StreamsGroupDescribeRequest, 0),
    ):
        request = form(group_ids=["workers"], include_authorized_operations=False, version=version)
        assert request.encode() == several(text("workers")) + b"\0" + NO_TAGS
