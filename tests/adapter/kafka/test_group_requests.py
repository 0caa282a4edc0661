"""Our own forms of requests that the library does not have; brokers read and write the others in tests/end_to_end."""

from adapter.cluster.groups import Description, Kind
from adapter.kafka.group_descriptions import descriptions_in
from adapter.kafka.group_requests import StreamsGroupDescribeResponse

NO_TAGS = b"\0"
NULL = b"\0"
NOTHING = b"\1"
"""A list without entries."""


def text(value: str) -> bytes:
    return bytes([len(value) + 1]) + value.encode()


def number(value: int, size: int) -> bytes:
    return value.to_bytes(size, "big", signed=True)


def described_group(name: str, topology: bytes) -> bytes:
    error, epochs, operations = number(0, 2) + NULL, number(3, 4) * 2, number(-(2**31), 4)
    return b"".join((error, text(name), text("Stable"), epochs, topology, NOTHING, operations, NO_TAGS))


def test_a_streams_group_without_a_topology_is_described_without_topics() -> None:
    unknown, unresolved = b"\xff", b"\1" + number(1, 4) + NULL + NO_TAGS
    groups = described_group("a", unknown) + described_group("b", unresolved)
    body = number(0, 4) + b"\3" + groups + NO_TAGS

    reported = descriptions_in(StreamsGroupDescribeResponse.decode(body, version=0), Kind.STREAMS)
    assert reported == {"a": Description(0), "b": Description(0)}
